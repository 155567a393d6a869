"""Waiting for a statement: it runs in a thread of its own, so that Ctrl-C is heard at once and progress can be shown.

Ctrl-C cancels it, and nothing that other threads do in the same database. A third Ctrl-C gives up waiting.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from stepwell.database import Database, Progress, RunningStatement

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds before somebody at a terminal is told what is going on."""

_GIVE_UP = 3
_BEGINS = 5.0
"""Seconds in which a statement has begun, if it ever will."""

_SIGNS = "|/-\\"


def wait_for(database: Database, action: Callable[[], T]) -> T:
    """What `action` returns, or what it raises; KeyboardInterrupt cancels it first."""
    statements: list[RunningStatement] = []
    results: list[T] = []
    failures: list[BaseException] = []
    begun = threading.Event()  # it has a statement, or could not even begin
    done = threading.Event()  # and no join(): interrupted, it may take a running thread for one that has ended

    def run() -> None:
        try:
            with database.statement() as statement:
                statements.append(statement)
                begun.set()
                results.append(action())
        except BaseException as error:
            failures.append(error)
        finally:
            begun.set()
            done.set()

    def cancel() -> None:
        begun.wait()
        for statement in statements:
            database.cancel(statement)

    presses = 0
    spinner: _Spinner | None = None
    worker: threading.Thread | None = None
    try:
        while not done.is_set():
            try:
                if worker is None:
                    worker = threading.Thread(target=run, name="stepwell-statement", daemon=True)
                    worker.start()  # interrupted here, it runs all the same, or never will
                if not begun.wait(_BEGINS) and presses:
                    raise KeyboardInterrupt
                if spinner is None and statements and sys.stderr.isatty():
                    spinner = _Spinner(database, statements[0])
                done.wait(0.1)
            except KeyboardInterrupt:
                presses += 1
                if presses >= _GIVE_UP:
                    raise
                # not here: a call to Spark may swallow the next Ctrl-C
                threading.Thread(target=cancel, daemon=True).start()
    finally:
        if spinner:
            spinner.stop()
    if failures:
        raise failures[0]
    return results[0]


class _Spinner:
    """A line on standard error that says what a statement is at, while it takes long."""

    def __init__(self, database: Database, statement: RunningStatement) -> None:
        self._database = database
        self._statement = statement
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stepwell-spinner", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        if self._done.wait(PATIENCE):
            return
        turn = 0
        while not self._done.is_set():
            line = describe(self._database.progress_of(self._statement), time.monotonic() - began)
            sys.stderr.write(f"\r\x1b[K{_SIGNS[turn % len(_SIGNS)]} {line}")
            sys.stderr.flush()
            turn += 1
            self._done.wait(0.2)
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def describe(progress: Progress, elapsed: float) -> str:
    """What a statement is at, in one line."""
    parts = [progress.what or "working"]
    if progress.rows:
        parts.append(f"{progress.rows:,} rows")
    if progress.tasks:
        parts.append(f"{progress.tasks_done} of {progress.tasks} Spark tasks")
    parts.append(f"{elapsed:.0f} s")
    return " · ".join(parts)[:78]

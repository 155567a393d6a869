"""Statements in flight: each has its own progress and its own cancellation, whatever other threads do meanwhile.

A statement belongs to the thread that runs it. What the barrier loop does for all of them is shown to whoever waits for
an epoch.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stepwell.engine.session import Spark
from stepwell.model.errors import CancelledError
from stepwell.sql import BoundArguments


@dataclass(frozen=True, slots=True)
class Progress:
    """What a statement is at: in words, the rows it is about if that is known, and its Spark tasks in flight."""

    what: str
    rows: int | None
    tasks_done: int
    tasks: int


class RunningStatement:
    """One statement in flight. A cancellation belongs to it alone and stays until it has ended."""

    def __init__(self, spark: Spark, interrupt_seconds: float) -> None:
        self.what = ""
        self.rows: int | None = None
        self.arguments: BoundArguments = {}
        """What the parameters in its text stand for."""
        self.waits = False
        """Whether it has done its own part and waits for an epoch to become readable."""
        self.group = f"stepwell-statement-{uuid.uuid4().hex[:12]}"
        self._spark = spark
        self._interrupt_seconds = interrupt_seconds
        self._cancelled = threading.Event()
        self._over = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Stop it at the next place where it can be stopped; from any thread, any number of times."""
        if self._cancelled.is_set() or self._over.is_set():
            return
        self._cancelled.set()
        self._spark.interrupt(self.group)
        threading.Thread(target=self._interrupt_until_over, name="stepwell-cancel", daemon=True).start()

    def end(self) -> None:
        """Say that there is nothing left to stop."""
        self._over.set()

    def _interrupt_until_over(self) -> None:
        while not self._over.wait(self._interrupt_seconds):
            self._spark.interrupt(self.group)


class RunningStatements:
    """The statements of a database that are in flight, and what its barrier loop is at."""

    def __init__(self, spark: Spark, interrupt_seconds: float) -> None:
        self._spark = spark
        self._interrupt_seconds = interrupt_seconds
        self._lock = threading.Lock()
        self._in_flight: list[RunningStatement] = []
        self._background: dict[int, str] = {}
        self._of_thread = threading.local()

    @property
    def current(self) -> RunningStatement | None:
        """The statement that the calling thread runs."""
        found: RunningStatement | None = getattr(self._of_thread, "statement", None)
        return found

    def in_flight(self) -> list[RunningStatement]:
        """All of them, the oldest first."""
        with self._lock:
            return list(self._in_flight)

    @contextmanager
    def begin(self) -> Iterator[RunningStatement]:
        """Make what this thread does inside the block one statement; inside another one it is part of that."""
        outer = self.current
        if outer is not None:
            yield outer
            return
        statement = RunningStatement(self._spark, self._interrupt_seconds)
        self._of_thread.statement = statement
        with self._lock:
            self._in_flight.append(statement)
        try:
            with self._spark.grouped(statement.group):
                yield statement
        finally:
            statement.end()
            with self._lock:
                self._in_flight.remove(statement)
            self._of_thread.statement = None

    @contextmanager
    def beside(self) -> Iterator[RunningStatement]:
        """Make what this thread does inside the block work in the background: it is cancelled by itself, and no user
        waits for it as such."""
        work = RunningStatement(self._spark, self._interrupt_seconds)
        self._of_thread.statement = work
        try:
            with self._spark.grouped(work.group):
                yield work
        finally:
            work.end()
            self._of_thread.statement = None

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Say what goes on inside the block, to whoever asks."""
        statement = self.current
        if statement is not None:
            before, statement.what, statement.rows = statement.what, what, None
            try:
                yield
            finally:
                statement.what, statement.rows = before, None
            return
        me = threading.get_ident()
        with self._lock:
            self._background[me] = what
        try:
            yield
        finally:
            with self._lock:
                self._background.pop(me, None)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Say that this thread's statement waits for the barrier loop inside the block."""
        statement = self.current
        if statement is None:
            yield
            return
        statement.waits = True
        try:
            yield
        finally:
            statement.waits = False

    def require_wanted(self) -> None:
        """Stop here if this thread's statement was cancelled: between two jobs there is nothing to interrupt."""
        if self.current is not None and self.current.is_cancelled:
            raise CancelledError("the statement was cancelled", detail="Nothing of it was applied.")

    def progress(self, statement: RunningStatement | None = None) -> Progress:
        """What a statement is at; None is the oldest in flight, or the barrier loop if there is none."""
        in_flight = self.in_flight()
        if statement is None and in_flight:
            statement = in_flight[0]
        with self._lock:
            background = next(reversed(self._background.values()), "")
        others = [each.group for each in in_flight]
        if statement is None:
            return Progress(background, None, *self._spark.tasks_beside(others))
        if self._spark.is_starting:
            return Progress("starting Spark", statement.rows, 0, 0)
        if statement.waits:
            return Progress(background or statement.what, statement.rows, *self._spark.tasks_beside(others))
        return Progress(statement.what, statement.rows, *self._spark.tasks_of(statement.group))

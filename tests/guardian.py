"""A guardian: whatever a test process has started is ended with it, also if it is killed.

It is a process of its own that hears of the end through a pipe. What was started is known by a mark in its environment,
or by its number where a program writes over its environment, as PostgreSQL does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid

import psutil

MARK = "STEPWELL_TEST_RUN"
_MERCY = 2.0
"""Seconds for what ends by itself."""

_pipe: list[int] = []


def start() -> None:
    """Let all that this process starts from now on end with it."""
    mark = uuid.uuid4().hex
    reading, writing = os.pipe()
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    process = subprocess.Popen(
        [sys.executable, __file__, mark], stdin=reading, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    process.returncode = 0  # nobody waits for it: it ends after us
    os.close(reading)
    os.environ[MARK] = mark
    _pipe[:] = [writing]


def guard(pid: int) -> None:
    """Let a process end that cannot be told by its mark."""
    if _pipe:
        os.write(_pipe[0], f"{pid}\n".encode())


def watch(mark: str) -> None:
    """Wait for the end of whoever holds the other end of standard input, and end what it has left."""
    named = {int(line) for line in sys.stdin}
    time.sleep(_MERCY)
    for process in psutil.process_iter():
        try:
            if process.pid in named or process.environ().get(MARK) == mark:
                process.kill()
        except psutil.Error:
            continue


if __name__ == "__main__":
    watch(sys.argv[1])

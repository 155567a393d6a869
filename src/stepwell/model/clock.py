"""Clocks: time is handed in, never reached for."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Says what time it is, in microseconds since 1970, UTC."""

    def now(self) -> int: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> int:
        return time.time_ns() // 1000


class ManualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, at: int = 1_700_000_000_000_000) -> None:
        self.at = at

    def now(self) -> int:
        return self.at

    def advance(self, *, seconds: float = 0, hours: float = 0, days: float = 0) -> None:
        self.at += round((seconds + 3600 * hours + 86_400 * days) * 1_000_000)

"""Epochs: the numbered barriers of a database, and the life of one.

An epoch is open while writers acknowledge into it, aligned once its input is captured, committed once nothing of it can
be lost, and readable once it is published. Readers only ever see readable ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

Epoch = NewType("Epoch", int)

FIRST_EPOCH = Epoch(1)


class EpochState(StrEnum):
    """How far an epoch has come; each state follows the one before it."""

    OPEN = "open"
    ALIGNED = "aligned"
    COMMITTED = "committed"
    READABLE = "readable"


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One epoch as the catalog remembers it; times are microseconds since 1970, UTC."""

    epoch: Epoch
    state: EpochState
    committed_at: int | None
    readable_at: int | None
    changed: int
    inserted: int
    retracted: int
    aligned_at: int | None = None

    @property
    def took(self) -> int | None:
        """Microseconds by the clock from its close until it could be read."""
        if self.aligned_at is None or self.readable_at is None:
            return None
        return self.readable_at - self.aligned_at

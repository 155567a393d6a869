"""Writes: what a statement asks the catalog to acknowledge, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NewType

from stepwell.model.files import NewFile
from stepwell.model.intervals import Intervals
from stepwell.model.loads import Label
from stepwell.model.views import RelationId

Position = NewType("Position", int)
"""The number of an acknowledgement; they are counted through the whole database, without gaps in their order."""


@dataclass(frozen=True, slots=True)
class Touch:
    """What a write touches of a relation: chunks by number, or rows by hashes of their keys; None means all of it."""

    chunks: frozenset[int] | None = None
    keys: frozenset[int] | None = None

    def meets(self, other: Touch) -> bool:
        """Whether two writes may have met on a row."""
        if self.keys is not None and other.keys is not None:
            return not self.keys.isdisjoint(other.keys)
        if self.chunks is not None and other.chunks is not None:
            return not self.chunks.isdisjoint(other.chunks)
        return True

    def union(self, other: Touch, most_keys: int) -> Touch:
        """What both touch together; all of it, if that is more than so many keys."""
        return Touch(
            None if self.chunks is None or other.chunks is None else self.chunks | other.chunks,
            None if self.keys is None or other.keys is None or len(self.keys) + len(other.keys) > most_keys
            else self.keys | other.keys,
        )  # fmt: skip


EVERYTHING = Touch()


@dataclass(frozen=True, slots=True)
class RelationWrite:
    """The files a write adds to one relation.

    `read_at` is the position the statement had read when it decided what to change, or None for plain inserts, which
    look at nothing and so conflict with nobody.
    """

    relation: RelationId
    files: tuple[NewFile, ...]
    touch: Touch = EVERYTHING
    read_at: Position | None = None
    numbers: tuple[int, int] | None = None
    """The row numbers that it was given, [start, end), as far as they are in one piece."""
    labels: tuple[Label, ...] = ()
    """The loads that this is, by the names they go by."""
    times: tuple[tuple[str, Intervals], ...] = ()
    """The times that it touches, by time column, for continuous aggregates; what is not known touches all."""

    def then(self, later: RelationWrite, most_keys: int) -> RelationWrite:
        """This write followed by `later`, as one that is known to touch at most so many keys."""
        reads = [at for at in (self.read_at, later.read_at) if at is not None]
        return RelationWrite(
            self.relation,
            self.files + later.files,
            self.touch.union(later.touch, most_keys),
            min(reads, default=None),
            _together(self.numbers, later.numbers),
            self.labels + later.labels,
        )


def _together(first: tuple[int, int] | None, second: tuple[int, int] | None) -> tuple[int, int] | None:
    """Both ranges where they meet, else the second."""
    if first is None or second is None:
        return first or second
    return (first[0], second[1]) if first[1] == second[0] else second


@dataclass(frozen=True, slots=True)
class Write:
    """All that one acknowledgement brings: a statement, or a whole transaction."""

    relations: tuple[RelationWrite, ...] = field(default=())

    @property
    def is_empty(self) -> bool:
        return not any(each.files or each.labels for each in self.relations)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The acknowledgement: which epoch a write will be part of, and its place in the order."""

    epoch: int
    position: Position

"""Ranges of event time, half-open, and sets of them.

Moments are whole numbers as in `model.watermarks`; `NEVER` and `FOREVER` are the ends of time, and a range that reaches
one of them reaches over it. A set of ranges is a tuple in order, in which no two meet or touch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepwell.model.watermarks import FOREVER, NEVER


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The moments [start, end)."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not NEVER <= self.start < self.end <= FOREVER:
            raise ValueError(f"a range of time must not be empty: [{self.start}, {self.end})")

    def meets(self, other: Interval) -> bool:
        return self.start < other.end and other.start < self.end

    def common(self, other: Interval) -> Interval | None:
        """What is in both, if anything is."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Interval(start, end) if start < end else None

    def cut(self, other: Interval) -> tuple[Interval, ...]:
        """What is left of this range without `other`: none, one or two pieces."""
        pieces = ((self.start, min(self.end, other.start)), (max(self.start, other.end), self.end))
        return tuple(Interval(start, end) for start, end in pieces if start < end)


Intervals = tuple[Interval, ...]

ALWAYS = Interval(NEVER, FOREVER)


def united(ranges: Iterable[Interval]) -> Intervals:
    """All moments that are in one of the ranges."""
    found: list[Interval] = []
    for each in sorted(ranges):
        if found and each.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, each.end))
        else:
            found.append(each)
    return tuple(found)


def common(some: Intervals, others: Intervals) -> Intervals:
    """The moments that are in both sets."""
    return united(both for one in some for other in others if (both := one.common(other)) is not None)


def without(some: Intervals, others: Intervals) -> Intervals:
    """The moments of a set that are not in the other."""
    left: tuple[Interval, ...] = some
    for other in others:
        left = tuple(piece for each in left for piece in each.cut(other))
    return united(left)


def clusters(times: Sequence[int], width: int | None, most: int) -> list[Interval]:
    """Ranges that hold all of some times, which are in order: cut at the widest gaps, if these are wider than a chunk.

    Where there are no chunks, a gap counts that is a good part of the whole.
    """
    far = width or (times[-1] - times[0]) // most
    gaps = [(after - before, at) for at, (before, after) in enumerate(itertools.pairwise(times), 1)]
    widest = sorted(gaps, reverse=True)[: most - 1]
    ends = [0, *sorted(at for apart, at in widest if apart > max(far, 1)), len(times)]
    return [Interval(times[first], times[last - 1] + 1) for first, last in itertools.pairwise(ends)]

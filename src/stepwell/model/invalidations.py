"""Logs of invalidations: for each moment of event time the last epoch that has touched it, as a step function.

Merging two logs takes the later epoch at each moment; cutting removes what an epoch has seen. So in whatever order logs
are merged, cut and shortened, a later epoch is never forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stepwell.model.epochs import Epoch
from stepwell.model.intervals import Interval, Intervals, common, united, without


@dataclass(frozen=True, slots=True, order=True)
class Invalidation:
    """A range of time that was last touched in an epoch."""

    range: Interval
    epoch: Epoch


InvalidationLog = tuple[Invalidation, ...]
"""In the order of time; no two meet, and neighbours of one epoch are one."""


def merged(entries: Iterable[Invalidation]) -> InvalidationLog:
    """The log of some entries: at each moment the last epoch."""
    found: list[Invalidation] = []
    for each in sorted(entries, key=lambda entry: entry.epoch):  # a later one lies over those before it
        found = [
            Invalidation(piece, other.epoch) for other in found for piece in other.range.cut(each.range)
        ] + [each]  # fmt: skip
    return _joined(found)


def cut(log: InvalidationLog, ranges: Intervals, upto: Epoch) -> InvalidationLog:
    """The log without what is inside some ranges and was touched no later than an epoch."""
    kept: list[Invalidation] = []
    for each in log:
        left = (each.range,) if each.epoch > upto else without((each.range,), ranges)
        kept += [Invalidation(piece, each.epoch) for piece in left]
    return _joined(kept)


def within(log: InvalidationLog, ranges: Intervals) -> InvalidationLog:
    """The part of a log that is inside some ranges."""
    return _joined([Invalidation(piece, each.epoch) for each in log for piece in common((each.range,), ranges)])


def touched(log: Iterable[Invalidation]) -> Intervals:
    """The ranges that a log speaks of."""
    return united(each.range for each in log)


def shortened(log: InvalidationLog, most: int) -> InvalidationLog:
    """A log of at most so many entries that says at least as much: neighbours become one, of their later epoch."""
    found = list(log)
    while len(found) > most:
        at = min(range(len(found) - 1), key=lambda index: found[index + 1].range.start - found[index].range.end)
        one, other = found[at], found[at + 1]
        found[at : at + 2] = [
            Invalidation(Interval(one.range.start, other.range.end), max(one.epoch, other.epoch))
        ]  # fmt: skip
    return _joined(found)


def _joined(entries: Iterable[Invalidation]) -> InvalidationLog:
    found: list[Invalidation] = []
    for each in sorted(entries):
        if found and found[-1].epoch == each.epoch and found[-1].range.end == each.range.start:
            found[-1] = Invalidation(Interval(found[-1].range.start, each.range.end), each.epoch)
        else:
            found.append(each)
    return tuple(found)

"""Buckets of event time: which of them a range of times touches, and which lie inside it.

A bucket is known by its start, its *label*. Ranges of labels and ranges of times are different things where clocks are
set back: an hour that comes twice is one hour of labels. So what is computed for some labels is always looked for in
times that reach a little further, and then chosen by label.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stepwell.model.intervals import Interval, Intervals, united
from stepwell.model.watermarks import FOREVER, NEVER, Transfer

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_FURTHER = 3 * _HOUR
"""How far a zone's clock may be moved at once, and more."""

_FIRST, _LAST = -62_072_000_000_000_000, 253_300_000_000_000_000
"""Early in the year 3 and late in 9996: instants before and after are in no bucket that is ever stored."""

_FURTHEST = 2**62
"""The same for times that are numbers."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of a view; `integer` if time is a number and not microseconds."""

    transfer: Transfer
    integer: bool = False
    chunk: int = 0
    """How wide the chunks are for which partial results are kept; 0 if buckets are stored as a whole."""

    @property
    def storable(self) -> Interval:
        """The labels that may be stored: all but the ends of a type, which are computed whenever they are read."""
        low, high = (-_FURTHEST, _FURTHEST) if self.integer else (_FIRST, _LAST)
        return Interval(self._next(self._label(low)), self._label(high))

    def around(self, ranges: Iterable[Interval]) -> Intervals:
        """The labels of all buckets that hold a moment of some ranges."""
        return united(self._around(each) for each in ranges)

    def logged(self, ranges: Iterable[Interval]) -> Intervals:
        """What a log says of times that were touched: their chunks, or their buckets where these are one piece."""
        return self.chunks(ranges) if self.chunk else self.around(ranges)

    def stale(self, logged: Iterable[Interval]) -> Intervals:
        """The labels of the buckets that a log speaks of."""
        return self.around(logged) if self.chunk else united(logged)

    def chunks(self, ranges: Iterable[Interval]) -> Intervals:
        """The times of all chunks that hold a moment of some ranges."""
        return united(
            Interval(_floored(each.start, self.chunk), -_floored(-each.end, self.chunk)) for each in ranges
        )  # fmt: skip

    def inside(self, wanted: Interval) -> Interval | None:
        """The labels of the buckets that lie wholly inside a range."""
        start = wanted.start if wanted.start == NEVER else self._ceiling(wanted.start)
        end = wanted.end if wanted.end == FOREVER else self._label(wanted.end)
        return Interval(start, end) if start < end else None

    def times(self, labels: Iterable[Interval]) -> Intervals:
        """Times that have all rows of the buckets of some labels, and perhaps a few others."""
        further = _FURTHER if self.transfer.zone else 0
        return united(
            Interval(_moved(each.start, -further), _moved(each.end, further)) for each in labels
        )  # fmt: skip

    def count(self, labels: Intervals, most: int) -> int:
        """How many buckets there are in ranges of labels, counted up to so many."""
        number = 0
        for each in labels:
            at = max(each.start, self.storable.start)
            while at < min(each.end, self.storable.end) and number < most:
                number, at = number + 1, self._next(at)
        return number

    def label(self, moment: int) -> int:
        """The start of the bucket of a moment, at the latest."""
        return self._label(min(max(moment, self.storable.start), self.storable.end))

    def newest_first(self, labels: Intervals, most: int) -> list[Interval]:
        """Ranges of labels in pieces of at most so many buckets, the newest first."""
        pieces: list[Interval] = []
        for each in labels:
            start, number, at = each.start, 0, each.start
            while at < each.end:
                at, number = min(self._next(at), each.end), number + 1
                if number == most or at == each.end:
                    pieces.append(Interval(start, at))
                    start, number = at, 0
        return pieces[::-1]

    def _around(self, wanted: Interval) -> Interval:
        low, high = self.storable.start, self.storable.end
        if wanted.end <= low:
            return Interval(NEVER, low)
        if wanted.start >= high:
            return Interval(high, FOREVER)
        start = NEVER if wanted.start < low else self._label(wanted.start)
        if wanted.end > high:
            return Interval(start, FOREVER)
        # where a zone's clocks are set back, a moment just before a label may belong to it
        return Interval(start, self._next(self._label(wanted.end)) if self.transfer.zone else self._ceiling(wanted.end))

    def _label(self, moment: int) -> int:
        return self.transfer(moment)

    def _ceiling(self, moment: int) -> int:
        """The first label that is not before a moment."""
        label = self._label(moment)
        return label if label == moment else self._next(label)

    def _next(self, label: int) -> int:
        """The label after one: the first moment from which on nothing belongs to it any more."""
        transfer = self.transfer
        step = transfer.months * 28 * _DAY if transfer.months else transfer.every
        at = label + step
        if not transfer.months and not transfer.zone:
            return at
        while self._label(at) <= label:  # longer months, and days of 25 hours
            at += min(step, _HOUR) if transfer.zone and not transfer.months else _DAY
        return self._label(at)


def _floored(moment: int, width: int) -> int:
    """The last multiple of a width that is not after a moment; an end of time stays one."""
    if abs(moment) >= FOREVER - width:
        return max(NEVER, min(moment, FOREVER))
    return moment // width * width


def _moved(moment: int, by: int) -> int:
    return moment if moment in (NEVER, FOREVER) else moment + by

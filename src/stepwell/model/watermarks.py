"""Watermarks: the claim that nothing before a moment is still to come, and what becomes of it on the way to a view.

Moments are whole numbers: microseconds since 1970 UTC, or the integers of an integer time column. `NEVER` says that
nothing is claimed yet, `FOREVER` that nothing comes any more.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from zoneinfo import ZoneInfo

NEVER = -(2**63)
FOREVER = 2**63 - 1

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FIRST, _LAST = (
    (moment - _EPOCH) // _MICROSECOND for moment in (datetime.datetime(2, 1, 1), datetime.datetime(9998, 12, 31))
)
_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class MarkRecord:
    """Where a relation stands. `incoming` is the least watermark of what a view reads.

    `requested` is how far somebody wants it to be at least: in event time a table, in epochs a view that emits by the
    clock. `emitted_epoch` and `emitted_at` say when such a view has last shown all that was known of it.
    """

    relation: int
    mark: int = NEVER
    incoming: int = NEVER
    requested: int | None = None
    seen_at: int | None = None
    idle: bool = False
    rows_ahead: int = 0
    null_times: int = 0
    emitted_epoch: int | None = None
    emitted_at: int | None = None


@dataclass(frozen=True, slots=True)
class LateCount:
    """How many changes of an epoch came too late for a view."""

    relation: int
    epoch: int
    inserted: int
    retracted: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """From the watermark of what a view reads to its own: the first of its windows that is still open.

    Windows are `size` long and begin every `every`, counted from `origin`; or they are as many `months`, from January
    2000. Local times are those of `zone`. Without windows a row is its own, [t, t + 1). In the end `shift` is added:
    the time column may be the end of a window, or any constant later.
    """

    every: int = 0
    size: int = 0
    origin: int = 0
    shift: int = 0
    months: int = 0
    zone: str = ""

    def __call__(self, mark: int) -> int:
        if mark in (NEVER, FOREVER):
            return mark
        if self.every or self.months:
            mark = self._zoned(mark) if self.zone else self._open(mark)
        return min(max(mark + self.shift, NEVER), FOREVER)

    def shifted(self, by: int) -> Transfer:
        return Transfer(self.every, self.size, self.origin, self.shift + by, self.months, self.zone)

    def after(self, inner: Transfer) -> Transfer | None:
        """This one behind another, as one; None if that takes two."""
        if inner.every or inner.months:
            return inner.shifted(self.shift) if not (self.every or self.months) else None
        if self.months or self.zone:
            return self if not inner.shift else None
        return (
            Transfer(self.every, self.size, self.origin + inner.shift, self.shift, 0, "")
            if self.every
            else (self.shifted(inner.shift))
        )

    @property
    def is_window(self) -> bool:
        return bool(self.every or self.months)

    def nests(self, outer: Transfer) -> bool:
        """Whether every window of this kind lies inside one of `outer`, so that a bar of bars is whole."""
        if not outer.is_window:
            return True
        if outer.months or self.months:
            return bool(outer.months and not outer.months % (self.months or 1)) and self.zone == outer.zone
        return outer.every % self.every == 0 and (outer.origin - self.origin) % self.every == 0 if self.every else True

    def _open(self, mark: int) -> int:
        if self.months:
            return _start_of_months(mark, self.months)
        return (mark - self.size - self.origin) // self.every * self.every + self.every + self.origin

    def _zoned(self, mark: int) -> int:
        zone = ZoneInfo(self.zone)
        mark = min(max(mark, _FIRST), _LAST)
        offset = _offset(mark, zone)
        back = offset - _offset(mark + _HOUR, zone)  # clocks that are set back show these local times again
        local = self._open(mark + offset - max(back, 0))
        moment = (_EPOCH + local * _MICROSECOND).replace(tzinfo=zone)
        return local - moment.utcoffset() // _MICROSECOND  # type: ignore[operator]  # a zone always has an offset


@dataclass(frozen=True, slots=True)
class HeldTransfer:
    """A transfer that goes no further than a moment, however far what is read has come."""

    transfer: Transfer
    upto: int

    def __call__(self, mark: int) -> int:
        return min(self.transfer(mark), self.upto)


def _offset(mark: int, zone: ZoneInfo) -> int:
    moment = (_EPOCH + mark * _MICROSECOND).replace(tzinfo=datetime.UTC).astimezone(zone)
    return moment.utcoffset() // _MICROSECOND  # type: ignore[operator]  # a zone always has an offset


def _start_of_months(mark: int, months: int) -> int:
    moment = _EPOCH + min(max(mark, _FIRST), _LAST) * _MICROSECOND
    number = (moment.year - 2000) * 12 + moment.month - 1
    years, month = divmod(number - number % months, 12)
    return (datetime.datetime(2000 + years, month + 1, 1) - _EPOCH) // _MICROSECOND


def moment_of(value: object) -> int:
    """A value of a time column as a whole number; a time without a zone is UTC."""
    if isinstance(value, bool) or not isinstance(value, int | datetime.date):
        raise TypeError(f"{value!r} is no moment")
    if isinstance(value, int):
        return value
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return (value - _EPOCH) // _MICROSECOND


def written(mark: int, *, integer: bool) -> str:
    """A watermark in words."""
    if mark == NEVER:
        return "-infinity"
    if mark == FOREVER:
        return "infinity"
    if integer:
        return str(mark)
    try:
        return (_EPOCH + mark * _MICROSECOND).isoformat(" ")
    except OverflowError:
        return f"{mark} microseconds"

"""Durations in words: `5 seconds`, `1 day 12 hours`, `250 ms`, to microseconds."""

from __future__ import annotations

import re

from stepwell.model.errors import InvalidSettingError

_UNITS = {
    "microsecond": 1, "us": 1, "millisecond": 1_000, "ms": 1_000, "second": 1_000_000, "sec": 1_000_000, "s": 1_000_000,
    "minute": 60_000_000, "min": 60_000_000, "m": 60_000_000, "hour": 3_600_000_000, "h": 3_600_000_000,
    "day": 86_400_000_000, "d": 86_400_000_000, "week": 604_800_000_000, "w": 604_800_000_000,
}  # fmt: skip

_LONGEST = 2.0**62
"""In microseconds: two of them can be added in a BIGINT."""


def parse_duration(text: str) -> int:
    """Microseconds in `text`. Months and years have no fixed length and are refused."""
    parts = re.findall(r"([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)", text)
    rest = re.sub(r"([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)", "", text)
    total = 0.0
    for number, unit in parts:
        size = _UNITS.get(unit.lower()) or _UNITS.get(unit.lower().removesuffix("s"))
        if size is None:
            months = unit.lower().startswith(("month", "year", "quarter"))
            raise InvalidSettingError(
                f'"{text}" is not a duration',
                detail=f"A {unit.lower().removesuffix('s')} has no fixed length."
                if months
                else f'"{unit}" is no unit.',
                hint="Write it in weeks, days, hours, minutes, seconds or milliseconds, such as '1 day 12 hours'.",
            )
        total += float(number) * size
    if abs(total) > _LONGEST:
        raise InvalidSettingError(
            f'"{text}" is too long', detail="The longest duration is some hundred thousand years."
        )
    if not parts or rest.strip(" ,"):
        raise InvalidSettingError(f'"{text}" is not a duration', hint="Write it as '5 seconds' or '1 day 12 hours'.")
    return round(total)


def format_duration(microseconds: int) -> str:
    """The shortest exact way to write a duration: `36 hours`, `250 milliseconds`."""
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        if microseconds % _UNITS[unit] == 0:
            count = microseconds // _UNITS[unit]
            return f"{count} {unit}{'' if abs(count) == 1 else 's'}"
    raise AssertionError("every whole number is a count of microseconds")

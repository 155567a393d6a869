"""Values: what can stand in a row, and when two of them are the same.

Python's `True == 1 == 1.0` must not confuse: what is compared carries its type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from stepwell.algebra.aggregates import GroupResult


@dataclass(frozen=True, slots=True)
class Struct:
    """Named values."""

    fields: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Id:
    """The identity of a row that is made of others: just these, so that no two can collide."""

    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class StateValue:
    """What is kept of rows for an aggregate: cells, and how often each."""

    result: GroupResult
    items: tuple[tuple[tuple[Value, ...], int], ...]


Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | Struct | Id | StateValue | None"
Row = dict[int, Value]
"""A row: its values by the numbers of their columns."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A row of a relation: its values by name, its own identity, and in a delta whether it came (1) or went (-1)."""

    values: Mapping[str, Value]
    id: Value
    sign: int = 1


def key(value: Value) -> tuple[Any, ...]:
    """What two values share that are the same key: NULL is NULL, NaN is NaN and greatest, -0.0 is 0.0."""
    match value:
        case None:
            return ("",)  # before all others, where it is inside another value
        case bool():
            return ("BOOLEAN", value)
        case int():
            return ("INT", value)
        case float():
            return ("DOUBLE", 1, 0.0) if math.isnan(value) else ("DOUBLE", 0, value + 0.0)
        case str():
            return ("STRING", value)
        case tuple():
            return ("ARRAY", tuple(map(key, value)))
        case Struct(fields):
            return ("STRUCT", tuple(key(each) for _, each in fields))
        case Id(parts):
            return ("ID", tuple(("~missing",) if each is None else key(each) for each in parts))
        case StateValue(_, items):
            return ("STATE", tuple((tuple(map(exact, cells)), count) for cells, count in items))


def exact(value: Value) -> tuple[Any, ...]:
    """What two values share that look the same: as a key, but -0.0 is not 0.0."""
    match value:
        case float():
            return ("DOUBLE", repr(value))
        case tuple():
            return ("ARRAY", tuple(map(exact, value)))
        case Struct(fields):
            return ("STRUCT", tuple((name, exact(each)) for name, each in fields))
        case _:
            return key(value)


def as_key(value: Value) -> Value:
    """The value that a group shows of its key: -0.0 has become 0.0."""
    match value:
        case float():
            return value + 0.0
        case tuple():
            return tuple(map(as_key, value))
        case Struct(fields):
            return Struct(tuple((name, as_key(each)) for name, each in fields))
        case _:
            return value


def compared(left: Value, right: Value) -> int | None:
    """-1, 0 or 1, as the one is before, the same as, or behind the other; None if either is NULL."""
    if left is None or right is None:
        return None
    one, other = key(left), key(right)
    assert one[0] == other[0], f"{left!r} and {right!r} are of different types"
    return (one > other) - (one < other)

"""The types of generated expressions, and values of each.

They are Spark's but for one: DOUBLE holds small multiples of a quarter, whose sums are exact in any order; ROUGH is a
double too, and may be anything: NaN, an infinity, -0.0, or the result of a division. It is compared and never added up.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from querygen.dice import Dice

INT, BIGINT, DECIMAL, DOUBLE, ROUGH = "INT", "BIGINT", "DECIMAL", "DOUBLE", "ROUGH"
STRING, BOOLEAN, DATE, TIMESTAMP = "STRING", "BOOLEAN", "DATE", "TIMESTAMP"
ARRAY, MAP, STRUCT = "ARRAY", "MAP", "STRUCT"

SPARK = {
    INT: "INT", BIGINT: "BIGINT", DECIMAL: "DECIMAL(10,2)", DOUBLE: "DOUBLE", ROUGH: "DOUBLE", STRING: "STRING",
    BOOLEAN: "BOOLEAN", DATE: "DATE", TIMESTAMP: "TIMESTAMP", ARRAY: "ARRAY<INT>", MAP: "MAP<STRING, INT>",
    STRUCT: "STRUCT<x: INT, y: STRING>",
}  # fmt: skip
"""What each type is called in a CREATE TABLE or a CAST."""

PLAIN = (INT, BIGINT, DECIMAL, DOUBLE, ROUGH, STRING, BOOLEAN, DATE, TIMESTAMP)
ORDERED = (*PLAIN, ARRAY, STRUCT)
"""What can be compared, and so grouped by, joined on and sorted."""
ALL = (*ORDERED, MAP)

WIDER: dict[str, tuple[str, ...]] = {
    INT: (INT, BIGINT, DOUBLE, DECIMAL), BIGINT: (BIGINT, INT), DOUBLE: (DOUBLE, INT), DECIMAL: (DECIMAL, INT),
    DATE: (DATE, TIMESTAMP), TIMESTAMP: (TIMESTAMP, DATE), ROUGH: (ROUGH, DOUBLE, INT, DECIMAL),
}  # fmt: skip
"""What may stand in another branch of a set operation beside a column of this type."""


def common(one: str, other: str) -> str:
    """The type that two branches agree on."""
    for wide in (ROUGH, DOUBLE, DECIMAL, BIGINT, TIMESTAMP):
        if wide in (one, other):
            return wide
    return one


LITERALS: dict[str, tuple[str, ...]] = {
    INT: ("0", "1", "2", "3"),
    BIGINT: ("BIGINT(1)", "BIGINT(5)", "1099511627776", "0L"),
    DECIMAL: ("1.50", "0.25", "-2.75", "2.50BD"),
    DOUBLE: ("DOUBLE(0.5)", "DOUBLE(1.25)", "DOUBLE(-2)", "0.25D"),
    ROUGH: ("DOUBLE(1.5)", "DOUBLE('NaN')", "DOUBLE('Infinity')", "DOUBLE('-0.0')", "0.0D"),
    STRING: ("'a'", "'b'", "'ab'", "''", "'7'"),
    BOOLEAN: ("true", "false"),
    DATE: ("DATE '2024-02-28'", "DATE '2024-03-01'"),
    TIMESTAMP: ("TIMESTAMP '2024-02-28 23:30:00'", "TIMESTAMP '2024-02-29 00:00:00.000001'"),
    ARRAY: ("array(1, 2)", "CAST(array() AS ARRAY<INT>)"),
    MAP: ("map('a', 1)", "CAST(map() AS MAP<STRING, INT>)"),
    STRUCT: ("named_struct('x', 1, 'y', 'a')",),
}

_MIDNIGHT = datetime(2024, 2, 29, tzinfo=UTC)
_DOMAINS: dict[str, tuple[Any, ...]] = {
    INT: (0, 1, 2, 3, 4),
    BIGINT: (0, 1, -3, 5, 2**40),
    DECIMAL: tuple(map(Decimal, ("0.00", "0.25", "1.50", "-2.75", "7.00"))),
    DOUBLE: (0.0, 0.25, 1.5, -2.75, 8.0),
    ROUGH: (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, 0.1),
    STRING: ("a", "b", "ab", "", "7", "A"),
    BOOLEAN: (True, False),
    DATE: tuple(date(2024, 2, 27) + timedelta(days) for days in range(4)),
    TIMESTAMP: tuple(_MIDNIGHT + timedelta(microseconds=each) for each in (-1_800_000_000, 0, 1, 3_600_000_000)),
    ARRAY: ([], [1], [1, 2], [2, 2], [None, 3]),
    MAP: ({}, {"a": 1}, {"a": 2, "b": None}),
    STRUCT: ({"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 2, "y": None}),
}


def value(rng: Dice, type_: str, nulls: float = 0.15) -> Any:
    """A value of a type from its small domain."""
    return None if rng.random() < nulls else rng.choice(_DOMAINS[type_])


def written(held: Any, type_: str) -> str:
    """A value as a literal in SQL."""
    match held:
        case None:
            return "NULL"
        case bool():
            return str(held).lower()
        case float():
            return f"DOUBLE('{held!r}')"
        case str():
            return f"'{held}'"
        case Decimal():
            return f"{held}BD"
        case datetime():
            return f"TIMESTAMP '{held:%Y-%m-%d %H:%M:%S.%f}Z'"
        case date():
            return f"DATE '{held}'"
        case list():
            return f"CAST(array({', '.join(written(each, INT) for each in held)}) AS ARRAY<INT>)"
        case dict() if type_ == MAP:
            inside = ", ".join(f"{written(key, STRING)}, {written(each, INT)}" for key, each in held.items())
            return f"CAST(map({inside}) AS MAP<STRING, INT>)"
        case dict():
            return f"CAST(named_struct('x', {written(held['x'], INT)}, 'y', {written(held['y'], STRING)}) AS {SPARK[STRUCT]})"
    return f"{held}L" if type_ == BIGINT else str(held)

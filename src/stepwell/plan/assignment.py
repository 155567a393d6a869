"""Store assignment: whether a value of one type may be put into a column of another, by the ANSI rules.

A number fits any number (too large a value fails when it is met), everything atomic fits STRING, dates and instants fit
each other, nested types fit part by part. A string never turns into something else unasked.
"""

from __future__ import annotations

from stepwell.model.errors import TypeMismatchError
from stepwell.model.relations import Column
from stepwell.model.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INSTANTS,
    INTEGERS,
    STRING,
    VOID,
    Array,
    DataType,
    Decimal,
    Map,
    Primitive,
    Struct,
)


def check_assignment(column: Column, type_: DataType, table: str) -> None:
    """Refuse to put a `type_` into `column` unless it fits."""
    if _fits(type_, column.type):
        return
    raise TypeMismatchError(
        f'column "{column.name}" of table "{table}" is {column.type}, and the value is {type_}',
        hint=f"Write CAST(… AS {column.type}) if that is what you mean.",
    )


def _fits(source: DataType, target: DataType) -> bool:
    if source in (target, VOID):
        return True
    match source, target:
        case Array(a), Array(b):
            return _fits(a, b)
        case Map(ka, va), Map(kb, vb):
            return _fits(ka, kb) and _fits(va, vb)
        case Struct(fa), Struct(fb):
            return len(fa) == len(fb) and all(_fits(a, b) for (_, a), (_, b) in zip(fa, fb, strict=True))
        case ((Primitive() | Decimal()), Primitive()) if target == STRING:
            return source != BINARY
    times = INSTANTS | {DATE}
    return (_is_number(source) and _is_number(target)) or (source in times and target in times)


def _is_number(type_: DataType) -> bool:
    return isinstance(type_, Decimal) or type_ in INTEGERS or type_ in (FLOAT, DOUBLE)

"""Canonical form: a column to compare by, so that two values are equal only if they are the same value.

Spark takes 0.0 and −0.0 for equal and refuses to compare maps; for "did this row change" both matter.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from stepwell.model.relations import Column as RelationColumn
from stepwell.model.types import DOUBLE, FLOAT, Array, DataType, Map, Struct


def canonical(value: Column, type_: DataType) -> Column:
    """`value` in a form in which `<=>` means identity."""
    match type_:
        case Array(element):
            return value if _is_plain(element) else F.transform(value, lambda each: canonical(each, element))
        case Map(key, held):
            entries = F.transform(
                F.map_entries(value),
                lambda each: F.struct(
                    canonical(each["key"], key).alias("key"), canonical(each["value"], held).alias("value")
                ),
            )
            return F.array_sort(entries)
        case Struct(fields):
            if _is_plain(type_):
                return value
            parts = F.struct(*(canonical(value[name], field).alias(name) for name, field in fields))
            return F.when(value.isNotNull(), parts)
    return value.cast("string") if type_ in (FLOAT, DOUBLE) else value


def differs(columns: list[tuple[Column, Column, RelationColumn]]) -> Column:
    """Whether any of these pairs of values is not the same value twice."""
    tests = [~canonical(old, column.type).eqNullSafe(canonical(new, column.type)) for old, new, column in columns]
    return reduce(lambda one, other: one | other, tests, F.lit(False))


def _is_plain(type_: DataType) -> bool:
    """Whether Spark's own equality is identity for this type."""
    match type_:
        case Array(element):
            return _is_plain(element)
        case Map():
            return False
        case Struct(fields):
            return all(_is_plain(field) for _, field in fields)
    return type_ not in (FLOAT, DOUBLE)

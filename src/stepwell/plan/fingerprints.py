"""Fingerprints: a number for what a row is, by which its retraction finds it.

Spark's own hash skips NULLs, takes −0.0 for 0.0 and refuses maps; here every value counts as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.model.types import DOUBLE, FLOAT, Array, DataType, Map, Struct


def fingerprint(values: Sequence[tuple[str, DataType]], *seeds: str) -> str:
    """The SQL of a number for these values, and for the identities `seeds`, none of which is NULL."""
    parts = list(seeds)
    for value, type_ in values:
        parts.extend((f"isnull({value})", *_hashable(value, type_)))
    return f"xxhash64({', '.join(parts)})" if parts else "xxhash64(0L)"


def _hashable(value: str, type_: DataType) -> tuple[str, ...]:
    if isinstance(type_, Array | Map | Struct):
        return (f"to_json(named_struct('v', {value}), map('ignoreNullFields', 'false'))",)
    if type_ in (FLOAT, DOUBLE):
        return value, f"IF({value} = 0, CAST({value} AS STRING), NULL)"
    return (value,)

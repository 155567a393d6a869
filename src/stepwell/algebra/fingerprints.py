"""Fingerprints: a number for what a row is, by which its retraction finds it.

Spark's own hash skips NULLs, also inside arrays and structs, takes −0.0 for 0.0 and refuses maps; to_json writes
instants to the millisecond. Here every value counts as it is: two values have one fingerprint if they are the same
value, byte by byte for strings of whatever collation. NaN is one value whatever its bits, and a map is the set of its
entries, in whatever order it has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepwell.model.types import DOUBLE, FLOAT, Array, DataType, Map, Struct, quote


def fingerprint(values: Sequence[tuple[str, DataType]], *ids: str) -> str:
    """The SQL of a number for these values, and for the identities `ids`, none of which is NULL."""
    parts = [*ids, *(part for value, type_ in values for part in _parts(value, type_, depth=0))]
    return f"xxhash64({', '.join(parts)})" if parts else "xxhash64(0L)"


def _parts(value: str, type_: DataType, depth: int) -> Iterator[str]:
    """What to hash, one after the other, so that a value is told from all others of its type and from NULL."""
    yield f"isnull({value})"
    match type_:
        case Struct(fields):
            for name, field in fields:
                yield from _parts(f"({value}).{quote(name)}", field, depth)
        case Array(element):
            each = f"_sw_each{depth}"
            # A number for each element, so that NULL is one, too; how many tells where the next column begins.
            yield f"size({value})"
            yield f"transform({value}, {each} -> {_hash(each, element, depth=depth + 1)})"
        case Map(key, held):
            entry = f"_sw_each{depth}"
            both = Struct((("key", key), ("value", held)))
            yield f"size({value})"
            yield f"array_sort(transform(map_entries({value}), {entry} -> {_hash(entry, both, depth=depth + 1)}))"
        case _ if type_ in (FLOAT, DOUBLE):
            yield value
            yield f"IF({value} = 0, CAST({value} AS STRING), NULL)"
        case _:
            yield value


def _hash(value: str, type_: DataType, depth: int) -> str:
    return f"xxhash64({', '.join(_parts(value, type_, depth))})"

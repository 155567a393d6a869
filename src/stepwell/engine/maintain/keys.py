"""Keys: the few that are wanted of a relation, so that no more is read of it than can matter."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from stepwell.model.limits import Limits
from stepwell.model.types import literal, quote
from stepwell.plan import Content
from stepwell.storage import Narrowing, Warehouse, column_range

KeyValue = int | str | datetime.date
Ranges = tuple[tuple[KeyValue, KeyValue], ...]
"""From the least to the greatest value of each, both included."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The rows of `frame` have the keys, in the columns `names`; the relation has them in `columns`."""

    frame: DataFrame
    names: tuple[str, ...]
    columns: tuple[str, ...]
    ranges: Ranges | None = None
    """Where the values of the first key lie, if that is known."""
    nulls: bool = False
    """Whether NULL is a key like any other. A plain comparison of numbers is much the faster one."""
    condition: str | None = None
    """What the rows have to fulfil besides."""

    def narrowing(self, warehouse: Warehouse, content: Content, limits: Limits) -> Narrowing:
        """The rows of a relation that have one of the keys."""
        conditions = [each for each in (self.condition, self._bounds(warehouse, content, limits.bounds_share)) if each]
        same = "<=>" if self.nulls else "="
        columns = [f"_sw_wanted{index}" for index in range(len(self.names))]
        ours = [f"{quote(name)} AS {column}" for name, column in zip(self.names, columns, strict=True)]
        on = " AND ".join(f"{quote(own)} {same} {key}" for own, key in zip(self.columns, columns, strict=True))

        def narrow(rows: DataFrame) -> DataFrame:
            within = rows.where(" AND ".join(f"({each})" for each in conditions)) if conditions else rows
            return within.join(F.broadcast(self.frame.selectExpr(*ours)), F.expr(on), "left_semi")

        return narrow

    def _bounds(self, warehouse: Warehouse, content: Content, most: float) -> str | None:
        """A condition that lets row groups be skipped, if it is worth its while."""
        if self.ranges is None:
            return None
        there = column_range(warehouse, content.files, self.columns[0])
        if there is not None and sum(_share(each, there) for each in self.ranges) > most:
            return None
        column = quote(self.columns[0])
        return " OR ".join(f"{column} BETWEEN {literal(low)} AND {literal(high)}" for low, high in self.ranges)


def ranges_of(batch: pa.Table, column: str, most: int) -> Ranges | None:
    """At most so many ranges that hold all values of a column of a small table, if plain: cut at the widest gaps."""
    values = batch.column(column).to_pylist()
    if not values or not all(isinstance(value, int | str | datetime.date) for value in values):
        return None
    values = sorted(set(values))
    ends = [0, len(values)]
    if not isinstance(values[0], str):
        gaps = sorted(range(1, len(values)), key=lambda index: values[index] - values[index - 1])
        ends = sorted([*ends, *gaps[len(gaps) - min(len(gaps), most - 1) :]])
    return tuple((values[first], values[last - 1]) for first, last in itertools.pairwise(ends))


def united(ranges: Sequence[Ranges | None]) -> Ranges | None:
    """Ranges that hold all of these, if all are known and of one type."""
    found = [each for some in ranges if some is not None for each in some]
    if not found or None in ranges or len({type(value) for each in found for value in each}) > 1:
        return None
    merged = [min(found)]
    for low, high in sorted(found)[1:]:
        first, last = merged[-1]
        if low <= last:  # type: ignore[operator]  # they are of one type, as was just asked
            merged[-1] = first, max(last, high)
        else:
            merged.append((low, high))
    return tuple(merged)


def _share(wanted: tuple[KeyValue, KeyValue], there: tuple[KeyValue, KeyValue]) -> float:
    """How much of a range is wanted, as far as that can be said."""
    match wanted, there:
        case (int(low), int(high)), (int(first), int(last)):
            return max(0, min(high, last) - max(low, first)) / max(1, last - first)
        case (datetime.date() as low, datetime.date() as high), (datetime.date() as first, datetime.date() as last):
            days = (min(high, last) - max(low, first)).days
            return max(0, days) / max(1, (last - first).days)
    return 0.0

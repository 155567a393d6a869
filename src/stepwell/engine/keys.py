"""Keys: the few that are wanted of a relation, so that no more is read of it than can matter."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from stepwell.plan import Content
from stepwell.storage import Narrowing, Warehouse, column_range
from stepwell.types import literal, quote

Value = int | str | datetime.date

MOST = 0.5
"""Bounds that leave more than this share of a range are not said: Spark would compile the text anew for them."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The rows of `frame` have the keys, in the columns `names`; the relation has them in `columns`."""

    frame: DataFrame
    names: tuple[str, ...]
    columns: tuple[str, ...]
    range: tuple[Value, Value] | None = None
    """The least and the greatest value of the first key, if that is known."""
    nulls: bool = False
    """Whether NULL is a key like any other. A plain comparison of numbers is much the faster one."""
    condition: str | None = None
    """What the rows have to fulfil besides."""

    def narrowing(self, warehouse: Warehouse, content: Content) -> Narrowing:
        """The rows of a relation that have one of the keys."""
        conditions = [each for each in (self.condition, self._bounds(warehouse, content)) if each]
        same = "<=>" if self.nulls else "="
        columns = [f"_sw_wanted{index}" for index in range(len(self.names))]
        ours = [f"{quote(name)} AS {column}" for name, column in zip(self.names, columns, strict=True)]
        on = " AND ".join(f"{quote(own)} {same} {key}" for own, key in zip(self.columns, columns, strict=True))

        def narrow(rows: DataFrame) -> DataFrame:
            within = rows.where(" AND ".join(f"({each})" for each in conditions)) if conditions else rows
            return within.join(F.broadcast(self.frame.selectExpr(*ours)), F.expr(on), "left_semi")

        return narrow

    def _bounds(self, warehouse: Warehouse, content: Content) -> str | None:
        """A condition that lets row groups be skipped, if it is worth its while."""
        if self.range is None:
            return None
        low, high = self.range
        there = column_range(warehouse, content.files, self.columns[0])
        if there is not None and _share(self.range, there) > MOST:
            return None
        return f"{quote(self.columns[0])} BETWEEN {literal(low)} AND {literal(high)}"


def range_of(batch: pa.Table, column: str) -> tuple[Value, Value] | None:
    """The least and the greatest value of a column of a small table, where these are plain."""
    values = batch.column(column).to_pylist()
    is_plain = values and all(isinstance(value, int | str | datetime.date) for value in values)
    return (min(values), max(values)) if is_plain else None


def united(ranges: Sequence[tuple[Value, Value] | None]) -> tuple[Value, Value] | None:
    """The range that holds all of these, if all are known and of one type."""
    found = [each for each in ranges if each is not None]
    if not found or len(found) < len(ranges) or len({type(value) for each in found for value in each}) > 1:
        return None
    lows, highs = [each[0] for each in found], [each[1] for each in found]
    return min(lows), max(highs)


def _share(wanted: tuple[Value, Value], there: tuple[Value, Value]) -> float:
    """How much of a range is wanted, as far as that can be said."""
    match wanted, there:
        case (int(low), int(high)), (int(first), int(last)):
            return (min(high, last) - max(low, first)) / max(1, last - first)
        case (datetime.date() as low, datetime.date() as high), (datetime.date() as first, datetime.date() as last):
            if isinstance(first, datetime.datetime) == isinstance(low, datetime.datetime):
                return (min(high, last) - max(low, first)) / max(datetime.timedelta(days=1), last - first)
    return 0.0

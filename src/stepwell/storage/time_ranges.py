"""Times in files and in filters: which files can hold rows of some ranges of time, and how Spark is asked for them."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from stepwell.model.files import DataFile
from stepwell.model.intervals import ALWAYS, Interval, Intervals, clusters, united
from stepwell.model.limits import Limits
from stepwell.model.relations import Relation
from stepwell.model.types import DATE, INSTANTS, INTEGERS, TIMESTAMP_NTZ, DataType, quote
from stepwell.model.watermarks import FOREVER, NEVER
from stepwell.plan import Content
from stepwell.storage.parquet import TimeReach, time_reach
from stepwell.storage.warehouse import Warehouse

_DAY = 86_400_000_000
_EPOCH = datetime.datetime(1970, 1, 1)


def reach_of(warehouse: Warehouse, relation: Relation, files: tuple[DataFile, ...], column: str) -> TimeReach:
    """How far the times of some files reach, by their footers."""
    return time_reach(warehouse, relation, files, relation.column(column).name)


def touched_times(
    warehouse: Warehouse, relation: Relation, files: tuple[DataFile, ...], column: str, limits: Limits
) -> Intervals:
    """The ranges of time of the rows in some files; rows without a time have none.

    The times of a small file are looked at one by one, so that a late row among new ones does not touch all that lies
    between them: there is a range for each chunk, or for each cluster of times. A large file is one range.
    """
    found: list[Interval] = []
    for file in files:
        reach = reach_of(warehouse, relation, (file,), column)
        if not reach.is_known:
            return (ALWAYS,)
        if reach.low is None or reach.high is None:
            continue
        width = _chunk_width(relation, column)
        is_narrow = width is not None and reach.high - reach.low <= width
        if file.statistics.rows <= limits.exact_times_rows and not is_narrow:
            found += clusters(_times(warehouse, relation, file, column), width, limits.time_clusters)
        else:
            found.append(Interval(reach.low, reach.high + 1))
    return united(found)


def _times(warehouse: Warehouse, relation: Relation, file: DataFile, column: str) -> list[int]:
    """The times of the rows in a file, in order, each once."""
    type_, name = relation.column(column).type, relation.column(column).name
    with warehouse.open_input(warehouse.path(file.relation, file.store, file.path)) as source:
        held = pq.read_table(source, columns=[name]).column(0)
    if type_ == DATE:
        held = held.cast(pa.int32())
    days = _DAY if type_ == DATE else 1
    return [int(each) * days for each in np.unique(held.cast(pa.int64()).drop_null().to_numpy())]


def _chunk_width(relation: Relation, column: str) -> int | None:
    chunking = relation.chunking
    return chunking.width if chunking is not None and chunking.column.lower() == column.lower() else None


def content_within(
    warehouse: Warehouse, relation: Relation, content: Content, column: str, wanted: Intervals, *, nulls: bool
) -> Content:
    """The files of some content that can hold rows of these times, or rows without one."""

    def may(file: DataFile) -> bool:
        reach = reach_of(warehouse, relation, (file,), column)
        if not reach.is_known or (nulls and reach.nulls):
            return True
        if reach.low is None or reach.high is None:
            return False
        held = Interval(reach.low, reach.high + 1)
        return any(each.meets(held) for each in wanted)

    rows = tuple(file for file in content.rows if may(file))
    return Content(rows, tuple(file for file in content.changes if may(file)), content.upto)


def chunk_number(relation: Relation) -> Column:
    """The chunk each row belongs to; NULL without event time."""
    assert relation.chunking is not None
    column = relation.column(relation.chunking.column)
    value = quote(column.name)
    if column.type in INSTANTS or column.type == DATE:
        value = f"unix_micros(CAST({value} AS TIMESTAMP))"
    width = relation.chunking.width
    return F.expr(f"CAST({value} AS BIGINT) DIV {width} - IF(CAST({value} AS BIGINT) % {width} < 0, 1, 0)")


def is_within(column: str, type_: DataType, wanted: Intervals, *, nulls: bool) -> str:
    """The condition that a column of time is in one of some ranges, or NULL."""
    name = quote(column)
    ranges = [_in_range(name, type_, each) for each in wanted]
    found = [*ranges, f"{name} IS NULL"] if nulls else ranges
    return " OR ".join(f"({each})" for each in found) or "false"


def _in_range(name: str, type_: DataType, wanted: Interval) -> str:
    ends = []
    if wanted.start != NEVER:
        ends.append(f"{name} >= {_literal(type_, wanted.start)}")
    if wanted.end != FOREVER:
        ends.append(f"{name} < {_literal(type_, wanted.end)}")
    return " AND ".join(ends) or f"{name} IS NOT NULL"


def _literal(type_: DataType, moment: int) -> str:
    if type_ in INTEGERS:
        return f"{moment}L"
    if type_ == DATE:
        return f"date_from_unix_date({-(-moment // _DAY)})"
    if type_ == TIMESTAMP_NTZ:
        return f"TIMESTAMP_NTZ '{_EPOCH + datetime.timedelta(microseconds=moment)}'"
    return f"timestamp_micros({moment}L)"

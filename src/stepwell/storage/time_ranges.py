"""Times in files and in filters: which files can hold rows of some ranges of time, and how Spark is asked for them."""

from __future__ import annotations

import datetime

from stepwell.model.files import DataFile
from stepwell.model.intervals import ALWAYS, Interval, Intervals, united
from stepwell.model.relations import Relation
from stepwell.model.types import DATE, INTEGERS, TIMESTAMP_NTZ, DataType, quote
from stepwell.model.watermarks import FOREVER, NEVER
from stepwell.plan import Content
from stepwell.storage.parquet import TimeReach, time_reach
from stepwell.storage.warehouse import Warehouse

_DAY = 86_400_000_000
_EPOCH = datetime.datetime(1970, 1, 1)


def reach_of(warehouse: Warehouse, relation: Relation, files: tuple[DataFile, ...], column: str) -> TimeReach:
    """How far the times of some files reach, by their footers."""
    return time_reach(warehouse, relation, files, relation.column(column).name)


def touched_times(warehouse: Warehouse, relation: Relation, files: tuple[DataFile, ...], column: str) -> Intervals:
    """The ranges of time of the rows in some files, a range a file; rows without a time have none."""
    found = [reach_of(warehouse, relation, (file,), column) for file in files]
    if not all(each.is_known for each in found):
        return (ALWAYS,)
    return united(Interval(each.low, each.high + 1) for each in found if each.low is not None and each.high is not None)


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

"""Time columns: which output of a view is its event time.

It is the first output that is a parent's time column, or a bucket of it: the start or the end of its window, or any
other value that follows from it alone and that the view groups by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from stepwell.plan.blocks import Block, Group, Partitioned, Plan, Select, UnionAll, Whole


def time_of_plan(plan: Plan, times: Mapping[int, str]) -> str | None:
    """The time column of a view, given those of the relations it reads."""
    known = dict(times)
    for index, block in enumerate(plan.hidden):
        found = time_of(block, known)
        if found is not None:
            known[-1 - index] = found
    return time_of(plan.root, known)


def time_of(block: Block, times: Mapping[int, str]) -> str | None:
    match block:
        case Select():
            return next(
                (name for name, column in zip(block.names, _times_of(block, times), strict=False) if column), None
            )
        case Partitioned(rows=Select() as rows):
            columns = {name for name, is_time in zip(rows.names, _times_of(rows, times), strict=False) if is_time}
            return next((name for item, name in zip(block.items, block.names, strict=True) if item in columns), None)
        case Group(time_key=int(key)):
            pattern = re.compile(rf"\(?_sw_g{key}( \+ INTERVAL .*)?\)?")
            return next(
                (name for item, name in zip(block.items, block.names, strict=True) if pattern.fullmatch(item)), None
            )
        case UnionAll() | Group() | Partitioned() | Whole():
            return None


def _times_of(select: Select, times: Mapping[int, str]) -> list[bool]:
    """Which items of a SELECT are time columns of its sources."""
    return [origin is not None and is_time(select, origin.source, origin.column, times) for origin in select.origins]


def is_time(select: Select, source: int, column: str, times: Mapping[int, str]) -> bool:
    """Whether a column of a source is its time column."""
    relation = select.sources[source].input
    if isinstance(relation, int):
        return times.get(relation, "").lower() == column.lower()
    return (time_of(relation, times) or "").lower() == column.lower()

"""Time columns: which output of a view is its event time, and what becomes of a watermark on the way there.

A view's time column is its first output that is a parent's time column, the start or the end of its window, a bucket,
or one of these plus a constant. What else is made of a time has no watermark: nothing is known of what it does to
order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from stepwell.model.durations import parse_duration
from stepwell.model.errors import StepwellError
from stepwell.model.watermarks import Transfer
from stepwell.plan.blocks import Block, Group, Partitioned, Rows, Select, UnionAll, Whole

Times = Mapping[int, str]
"""The time columns of the relations that have one."""

SESSION_START, SESSION_TIME = "_sw_start", "_sw_t"
"""In the rows of a session: when it began, and the time of the row."""


@dataclass(frozen=True, slots=True)
class Timing:
    """A time column, and how its watermark follows from the least of those that are read."""

    column: str
    transfer: Transfer


def timing_of(block: Block, times: Times, column: str | None = None) -> Timing | None:
    """The time column of a block: its first one, or the one that was chosen."""
    found = zip(block.names, _of_outputs(block, times), strict=True)
    wanted = (each for each in found if column is None or each[0].lower() == column.lower())
    return next((Timing(name, transfer) for name, transfer in wanted if transfer is not None), None)


def _of_outputs(block: Block, times: Times) -> list[Transfer | None]:
    """What becomes of the watermark in each output of a block."""
    match block:
        case Select() | UnionAll():
            return transfers_of(block, times)
        case Partitioned(rows):
            columns = dict(zip(rows.names, transfers_of(rows, times), strict=True))
            return [columns.get(item) for item in block.items]
        case Group():
            return [_of_group(block, item, times) for item in block.items]
        case Whole():
            return [None] * len(block.names)


def windows_of(block: Block, times: Times) -> Timing | None:
    """The window of each row that a block reads: the column of its rows that says it, and its watermark.

    A session grows with its rows, so each of these is by itself: it ends a gap later.
    """
    match block:
        case Select() | UnionAll():
            return timing_of(block, times)
        case Partitioned(rows):
            found = zip(rows.names, transfers_of(rows, times), strict=True)
            return next((Timing(name, transfer) for name, transfer in found if transfer is not None), None)
        case Group(time_key=int(key)):
            transfer = transfers_of(block.rows, times)[key]
            return None if transfer is None else Timing(f"_sw_g{key}", transfer)
        case _:
            return None


def session_gap(block: Block) -> int | None:
    """How far apart the rows of a session may be, if a block groups by one."""
    if not isinstance(block, Group) or not isinstance(block.rows, Select):
        return None
    for item in block.items:
        found = re.fullmatch(rf"\(?_sw_r(\d+) \+ {_INTERVAL}\)?", item)
        if found and _is_session(block) and _is_last(block, int(found[1])):
            return parse_duration(f"{found[2]} {found[3]}")
    return None


def transfers_of(rows: Rows, times: Times) -> list[Transfer | None]:
    """For each column of some rows what becomes of the watermark in it, or None if that is lost."""
    if isinstance(rows, UnionAll):
        branches = [transfers_of(branch, times) for branch in rows.branches]
        return [column[0] if len(set(column)) == 1 else None for column in zip(*branches, strict=True)]
    return [_of_item(rows, index, times) for index in range(len(rows.items))]


def _of_item(select: Select, index: int, times: Times) -> Transfer | None:
    origin = select.origins[index] if index < len(select.origins) else None
    if origin is not None:
        return _of_column(select, origin.source, origin.column, times)
    try:
        tree = parse_one(select.items[index], dialect="spark")
    except SqlglotError:
        return None
    columns = {(each.table.lower(), each.name.lower()) for each in tree.find_all(exp.Column)}
    if len(columns) != 1:
        return None
    table, name = columns.pop()
    for number, source in enumerate(select.sources):
        if table in ("", source.alias.lower()):
            inner = _of_column(select, number, name, times)
            if inner is not None:
                made = _of_text(_about_time(tree))
                return made.after(inner) if made is not None else None
    return None


def _about_time(tree: exp.Expr) -> str:
    tree = tree.transform(lambda each: exp.column("_t") if isinstance(each, exp.Column) else each)
    return tree.sql(dialect="spark", comments=False)


def _of_column(select: Select, source: int, column: str, times: Times) -> Transfer | None:
    """What becomes of the watermark in a column of a source."""
    relation = select.sources[source].input
    if isinstance(relation, int):
        return Transfer() if times.get(relation, "").lower() == column.lower() else None
    names = [name.lower() for name in relation.names]
    return transfers_of(relation, times)[names.index(column.lower())] if column.lower() in names else None


def is_time(select: Select, source: int, column: str, times: Times) -> bool:
    """Whether a column of a source is its time column."""
    relation = select.sources[source].input
    if isinstance(relation, int):
        return times.get(relation, "").lower() == column.lower()
    timing = timing_of(relation, times)
    return timing is not None and timing.column.lower() == column.lower()


# -- groups -----------------------------------------------------------------------------------------------------------

_INTERVAL = r"INTERVAL '(-?[\d.]+)' (\w+)"


def _of_group(group: Group, item: str, times: Times) -> Transfer | None:
    """What becomes of the watermark in an output of a group: its time key, its end, or the end of its session."""
    if group.time_key is not None:
        key = transfers_of(group.rows, times)[group.time_key]
        made = _of_text(re.sub(rf"\b_sw_g{group.time_key}\b", "_t", item))
        return made.after(key) if made is not None and key is not None else None
    found = re.fullmatch(rf"\(?_sw_r(\d+) \+ {_INTERVAL}\)?", item)
    if found and _is_session(group) and _is_last(group, int(found[1])):
        return Transfer(shift=1)  # a session that ends with the watermark is over
    return None


def _is_session(group: Group) -> bool:
    return isinstance(group.rows, Select) and any(
        item.replace("`", "").endswith(f".{SESSION_START}") for item in group.rows.items[: group.keys]
    )


def _is_last(group: Group, number: int) -> bool:
    """Whether an aggregate is the time of a session's last row."""
    aggregate = group.aggregates[number]
    if aggregate.function != "max" or not isinstance(group.rows, Select):
        return False
    argument = group.rows.items[group.rows.names.index(aggregate.arguments[0])]
    return argument.replace("`", "").endswith(f".{SESSION_TIME}")


# -- expressions over a time ------------------------------------------------------------------------------------------

_DAY = 86_400_000_000
_MONDAY = 4 * _DAY
_WIDTHS = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
           "DAY": _DAY, "DD": _DAY, "WEEK": 7 * _DAY}  # fmt: skip
_MONTHS = {"MONTH": 1, "MON": 1, "MM": 1, "QUARTER": 3, "YEAR": 12, "YYYY": 12, "YY": 12}
_MONTH_NUMBER = r"\(\(YEAR\(_t\) - 2000\) \* 12 \+ MONTH\(_t\) - 1\)"


def _of_text(text: str) -> Transfer | None:
    """What an expression over `_t`, and nothing else, makes of a watermark."""
    text = text.strip()
    if found := re.fullmatch(r"TO_UTC_TIMESTAMP\(CAST\((.*) AS TIMESTAMP\), '([^']+)'\)", text):
        local = f"FROM_UTC_TIMESTAMP(CAST(_t AS TIMESTAMP), '{found[2]}')"
        inner = _of_text(found[1].replace(local, "_t")) if local in found[1] else None
        if inner is None or not inner.is_window:
            return None
        return Transfer(inner.every, inner.size, inner.origin, inner.shift, inner.months, found[2])
    for pattern, make in _FORMS:
        if found := re.fullmatch(pattern, text):
            try:
                return make(*found.groups())
            except (StepwellError, KeyError):
                return None
    return None


def _shifted(sign: str, number: str, unit: str) -> Transfer:
    return Transfer(shift=(1 if sign == "+" else -1) * parse_duration(f"{number} {unit}"))


def _windowed(size: str, every: str | None, end: str) -> Transfer:
    length = parse_duration(size)
    return Transfer(parse_duration(every) if every else length, length, shift=length if end == "end" else 0)


def _truncated(unit: str) -> Transfer:
    if unit.upper() in _MONTHS:
        return Transfer(months=_MONTHS[unit.upper()])
    width = _WIDTHS[unit.upper()]
    return Transfer(width, width, _MONDAY if unit.upper() == "WEEK" else 0)


def _bucketed(origin: str | None, width: str) -> Transfer:
    return Transfer(int(width), int(width), int(origin or 0))


_FORMS = (
    (r"\(?_t\)?", lambda: Transfer()),
    (r"CAST\(_t AS TIMESTAMP(?:_NTZ|_LTZ)?\)", lambda: Transfer()),
    (rf"\(?_t ([+-]) {_INTERVAL}\)?", _shifted),
    (rf"\(?{_INTERVAL} \+ _t\)?", lambda number, unit: _shifted("+", number, unit)),
    (r"\(?_t ([+-]) (\d+)\)?", lambda sign, number: Transfer(shift=int(sign + number))),
    (r"WINDOW\(_t, '([^']+)'(?:, '([^']+)')?\)\.(start|end)", _windowed),
    (r"TIMESTAMP_MICROS\(UNIX_MICROS\(_t\) - PMOD\(UNIX_MICROS\(_t\) - (-?\d+), (\d+)\)\)", _bucketed),
    (r"\(?_t - PMOD\(_t(?: - (-?\d+))?, (\d+)\)\)?", _bucketed),
    (
        r"\(?\(_t - PMOD\(_t, (\d+)\)\) \+ \1\)?",
        lambda width: Transfer(int(width), int(width), shift=int(width)),
    ),
    (r"DATE_TRUNC\('(\w+)', _t\)", _truncated),
    (r"(?:CAST\(_t AS DATE\)|TO_DATE\(_t\)|DATE\(_t\))", lambda: Transfer(_DAY, _DAY)),
    (
        rf"(?:CAST\()?ADD_MONTHS\(CAST\('2000-01-01' AS DATE\), {_MONTH_NUMBER} - PMOD\({_MONTH_NUMBER}, (\d+)\)\)"
        r"(?: AS TIMESTAMP\))?",
        lambda months: Transfer(months=int(months)),
    ),
)

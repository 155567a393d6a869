"""Lateness: changes that come too late for a view, kept in a ledger instead of being applied.

Rows are judged where a view reads them, each by its window. The ledger holds what was not applied, signed; so what a
view counts is what there is, less the net of its ledger. A change and its opposite in the ledger are nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stepwell.files import DIFF, HIDDEN_PREFIX, ROW_ID, ROW_VERSION
from stepwell.plan.blocks import Block, Group, Origin, Partitioned, Plan, Rows, Select, UnionAll, Whole
from stepwell.plan.fingerprints import fingerprint
from stepwell.plan.times import SESSION_TIME, Times, Timing, session_gap, timing_of, windows_of
from stepwell.relations import Column
from stepwell.types import BIGINT, quote

SOURCE, HASH, SIGN, AT = "_sw_source", "_sw_hash", "_sw_sign", "_sw_at"
"""Of an entry in a ledger: the row's identity, what it says, whether it came or went, and in which epoch."""

ENTRY = tuple(Column(name, BIGINT, nullable=False) for name in (SOURCE, HASH, SIGN, AT))

WINDOW_START = "window_start"


@dataclass(frozen=True, slots=True)
class Judged:
    """The block of a plan whose rows are judged, by its place among the hidden ones and the root, and by what."""

    index: int
    timing: Timing


def judged_in(plan: Plan, times: Times) -> Judged | None:
    """Where the rows of a view are judged: where they are grouped, or, for sessions, where these are put together."""
    known = dict(times)
    for index, block in enumerate(plan.hidden):
        timing = timing_of(block, known)
        if timing is not None:
            known[-1 - index] = timing.column
    gap = session_gap(plan.root)
    if gap is not None:
        for index, block in enumerate(plan.hidden):
            if isinstance(block, Partitioned) and isinstance(block.rows, Select):
                names = [
                    name
                    for item, name in zip(block.rows.items, block.rows.names, strict=True)
                    if item.replace("`", "").split(".")[-1] == SESSION_TIME
                ]
                found = windows_of(block, known)
                if names and found is not None:
                    return Judged(index, Timing(names[-1], found.transfer.shifted(1 - gap)))
        return None
    found = windows_of(plan.root, known)
    return None if found is None else Judged(len(plan.hidden), found)


def rows_of(block: Block) -> Rows:
    """The rows that a block reads, or is."""
    match block:
        case Select() | UnionAll():
            return block
        case Group(rows) | Partitioned(rows):
            return rows
        case Whole():
            raise ValueError("the rows of a query that is computed as a whole cannot be told")


def with_sources(block: Block, column: str, columns: Mapping[int, Sequence[str]], *, window: bool) -> Rows:
    """The rows of a block with the columns of what they come from, so that a user knows them again."""
    rows = rows_of(block)
    if not isinstance(rows, Select) or rows.generates:
        return rows
    extras: dict[str, str] = {}
    if window and column in rows.names:
        extras[WINDOW_START] = rows.items[rows.names.index(column)]
    for source in rows.sources:
        if not source.is_kept:
            continue
        relation = source.input
        names = columns.get(relation, ()) if isinstance(relation, int) else relation.names
        for index, name in enumerate(names):
            shown = name
            if isinstance(relation, Select) and name.startswith(HIDDEN_PREFIX):
                origin: Origin | None = relation.origins[index] if index < len(relation.origins) else None
                shown = origin.column if origin is not None else name
            if not shown.startswith(HIDDEN_PREFIX):
                extras.setdefault(shown, f"{quote(source.alias)}.{quote(name)}")
    known = {name.lower() for name in rows.names}
    extras = {name: item for name, item in extras.items() if name.lower() not in known}
    return replace(
        rows, items=(*rows.items, *extras.values()), names=(*rows.names, *extras), origins=(), ties=rows.ties
    )


def entries(columns: Sequence[Column], names: Sequence[str], delta: str, late: str, epoch: int) -> str:
    """The entries for the rows of a change that are late. `names` are the columns that the view needs of a row."""
    shown = [column.name for column in columns if column not in ENTRY]
    types = {column.name.lower(): column.type for column in columns}
    said = fingerprint([(quote(name), types[name.lower()]) for name in names])
    judged = f"SELECT *, {said} AS {HASH} FROM ({delta}) WHERE coalesce({late}, false)"
    kept = ", ".join(f"any_value({quote(name)}) AS {quote(name)}" for name in shown)
    net = (
        f"SELECT {kept}, {ROW_ID} AS {SOURCE}, {HASH}, sum({DIFF}) AS {SIGN}, {epoch}L AS {AT}"
        f" FROM ({judged}) GROUP BY {ROW_ID}, {HASH} HAVING sum({DIFF}) <> 0"
    )
    typed = ", ".join(f"CAST({quote(column.name)} AS {column.type}) AS {quote(column.name)}" for column in columns)
    identity = f"xxhash64({SOURCE}, {HASH}, {SIGN}, {AT})"
    return f"SELECT {typed}, {identity} AS {ROW_ID}, {identity} AS {ROW_VERSION} FROM ({net})"


def less(rows: str, names: Sequence[str], column: str, ledgers: Sequence[str]) -> str:
    """Rows with `_sw_id`, less the net of some ledgers: without those that came late, and with those that went late."""
    if not ledgers:
        return rows
    listed = ", ".join(map(quote, names))
    kept = ", ".join(f"any_value({quote(name)}) AS {quote(name)}" for name in names)
    all_ = " UNION ALL ".join(f"SELECT {listed}, {SOURCE}, {HASH}, {SIGN} FROM {ledger}" for ledger in ledgers)
    total = f"sum({SIGN})"
    net = f"SELECT {kept}, {SOURCE}, {total} AS {SIGN} FROM ({all_}) GROUP BY {SOURCE}, {HASH} HAVING {total} <> 0"
    same = f"r.{ROW_ID} = l.{SOURCE} AND r.{quote(column)} <=> l.{quote(column)}"
    came = f"SELECT * FROM ({net}) WHERE {SIGN} > 0"
    return (
        f"SELECT {listed}, {ROW_ID} FROM ({rows}) AS r LEFT ANTI JOIN ({came}) AS l ON {same}"
        f" UNION ALL SELECT {listed}, {SOURCE} AS {ROW_ID} FROM ({net}) WHERE {SIGN} < 0"
    )

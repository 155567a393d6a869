"""Lateness: changes that come too late for a view, kept in a ledger instead of being applied.

Rows are judged where a view reads them, each by its window. The ledger holds what was not applied, signed; so what a
view counts is what there is, less the net of its ledger. A change and its opposite in the ledger are nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stepwell.algebra.expressions import Attribute
from stepwell.algebra.nodes import Filter, Fresh, Item, Join, JoinKind, Node, Project, Scan, Unnest, passed
from stepwell.model.files import DIFF, HIDDEN_PREFIX, ROW_ID, ROW_VERSION
from stepwell.model.relations import Column
from stepwell.model.types import BIGINT, parse_type, quote
from stepwell.model.watermarks import Transfer
from stepwell.plan.blocks import RowBlock, ViewPlan, WindowBlock
from stepwell.plan.fingerprints import fingerprint
from stepwell.plan.times import Times, Timing, session_gap, timing_of, transfers_of, windows_of

SOURCE, HASH, SIGN, AT = "_sw_source", "_sw_hash", "_sw_sign", "_sw_at"
"""Of an entry in a ledger: the row's identity, what it says, whether it came or went, and in which epoch."""

ENTRY = tuple(Column(name, BIGINT, nullable=False) for name in (SOURCE, HASH, SIGN, AT))

WINDOW_START = "window_start"


@dataclass(frozen=True, slots=True)
class Judged:
    """The block of a plan whose rows are judged, by its place among the hidden ones and the root, and by what."""

    index: int
    timing: Timing


def judged_in(plan: ViewPlan, times: Times) -> Judged | None:
    """Where the rows of a view are judged: where they are grouped, or, for sessions, where these are put together."""
    known = dict(times)
    for index, block in enumerate(plan.hidden):
        timing = timing_of(block, known)
        if timing is not None:
            known[-1 - index] = timing.column
    gap = session_gap(plan.root)
    if gap is not None:
        for index, block in enumerate(plan.hidden):
            if isinstance(block, WindowBlock):
                found = zip(block.rows.names, transfers_of(block.rows, known), strict=True)
                name = next((name for name, transfer in found if transfer == Transfer()), None)
                if name is not None:
                    return Judged(index, Timing(name, Transfer().shifted(1 - gap)))
        return None
    timing = windows_of(plan.root, known)
    return None if timing is None else Judged(len(plan.hidden), timing)


def with_sources(rows: RowBlock, column: str, columns: Mapping[int, Mapping[str, str]], *, window: bool) -> RowBlock:
    """Some rows with the columns of what they come from, so that a user knows them again."""
    widened = _Widening(columns, Fresh(rows.tree)).of(rows.tree)
    if widened is None:
        return rows
    tree, extras = widened
    if window and column in rows.names:
        extras = {WINDOW_START: rows.columns[rows.names.index(column)], **extras}
    known = {name.lower() for name in rows.names}
    extras = {name: each for name, each in extras.items() if name.lower() not in known}
    return RowBlock(tree, (*rows.columns, *extras.values()), (*rows.names, *extras))


class _Widening:
    """Trees with all columns of the relations that they read, by their names; not through a union."""

    def __init__(self, columns: Mapping[int, Mapping[str, str]], fresh: Fresh) -> None:
        self._columns = columns
        self._fresh = fresh

    def of(self, node: Node) -> tuple[Node, dict[str, Attribute]] | None:
        match node:
            case Scan():
                known = dict(zip(node.names, node.columns, strict=True))
                types = self._columns[node.relation]
                found = {name: known.get(name) or self._fresh.column(type_) for name, type_ in types.items()}
                names, columns = tuple(found), tuple(found.values())
                shown = {name: each for name, each in found.items() if not name.startswith(HIDDEN_PREFIX)}
                return replace(node, columns=columns, names=names), shown
            case Filter() | Unnest():
                below = self.of(node.child)
                return None if below is None else (replace(node, child=below[0]), below[1])
            case Project():
                below = self.of(node.child)
                if below is None:
                    return None
                tree, extras = below
                items = [Item(self._fresh.like(each), each) for each in extras.values()]
                made = Project((*node.items, *items), tree)
                return made, {name: item.column for name, item in zip(extras, items, strict=True)}
            case Join():
                left, right = self.of(node.left), self.of(node.right)
                if left is None or right is None:
                    return None
                if node.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK):
                    return replace(node, left=left[0]), left[1]
                return replace(node, left=left[0], right=right[0]), {**right[1], **left[1]}
            case _:
                return None


def entries(columns: Sequence[Column], rows: RowBlock, delta: str, late: str, epoch: int) -> str:
    """The entries for the rows of a change that are late. `rows` has the columns that the view needs of a row."""
    shown = [column.name for column in columns if column not in ENTRY]
    judged = f"SELECT *, {_hash(rows)} AS {HASH} FROM ({delta}) WHERE coalesce({late}, false)"
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


def _hash(rows: RowBlock) -> str:
    return fingerprint(
        [(quote(name), parse_type(each.type)) for name, each in zip(rows.names, rows.columns, strict=True)]
    )


__all__ = ["AT", "ENTRY", "HASH", "SIGN", "SOURCE", "Judged", "entries", "judged_in", "less", "passed", "with_sources"]

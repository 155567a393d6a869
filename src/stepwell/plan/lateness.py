"""Lateness: changes that come too late for a view, kept in a ledger instead of being applied.

Rows are judged where a view reads them, each by its window. The ledger holds what was not applied, signed; so what a
view counts is what there is, less the net of its ledger. A change and its opposite in the ledger are nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stepwell.algebra.expressions import Attribute
from stepwell.algebra.nodes import Filter, Fresh, Item, Join, JoinKind, Node, Project, Scan, Unnest
from stepwell.model.files import HIDDEN_PREFIX
from stepwell.model.watermarks import Transfer
from stepwell.plan.times import Times, Timing, session_gap, timing_of, transfers_of, windows_of
from stepwell.rules.blocks import RowBlock, ViewPlan, WindowBlock

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
                    return Judged(index, Timing(name, Transfer().shifted(-gap)))
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

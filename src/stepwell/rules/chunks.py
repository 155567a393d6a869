"""Chunks: the states of a continuous aggregate by bucket, chunk of the source and group, and the rows they come to.

    state[b, c, k]      partial(rows of bucket b in chunk c)[k]
    V[b, k]             finish(⊕ state[b, c, k] over all chunks c)

So a late row is followed by computing one chunk of its bucket anew, however wide the bucket is.
"""

from __future__ import annotations

from dataclasses import replace

from stepwell.algebra.aggregates import REFOLD
from stepwell.algebra.expressions import Attribute, Expression, checked, either, fingerprint_of
from stepwell.algebra.nodes import (
    Aggregate,
    Filter,
    Fresh,
    Item,
    Join,
    JoinKind,
    Moment,
    Node,
    Project,
    Scan,
    Unnest,
    passed,
)
from stepwell.algebra.states import combined, finished, is_odd, type_of
from stepwell.model.files import ROW_ID, ROW_VERSION
from stepwell.rules.blocks import GroupBlock, RowBlock
from stepwell.rules.groups import COUNT, partials, shown, states_of, stored_states
from stepwell.rules.programs import Occasion, Output, Program, Target, key_names
from stepwell.rules.row_changes import rows_at
from stepwell.rules.versions import signed

CHUNK = "_sw_chunk"
"""The column of a source that says which chunk a row is in."""


def by_chunk(group: GroupBlock, source: int) -> GroupBlock | None:
    """A group with the chunk of its source's row as its last key; None if rows do not come from one row of it."""
    carried = _carried(group.rows.tree, source, Fresh(group.rows.tree))
    if carried is None:
        return None
    (tree, chunk), rows, at = carried, group.rows, group.keys
    columns = (*rows.columns[:at], chunk, *rows.columns[at:])
    names = (*rows.names[:at], f"_sw_g{at}", *rows.names[at:])
    types = (*group.key_types, chunk.type)
    return replace(group, rows=RowBlock(tree, columns, names), keys=at + 1, key_types=types)


def _carried(node: Node, source: int, fresh: Fresh) -> tuple[Node, Attribute] | None:
    """A tree with the chunk of the source's row beside its columns."""
    match node:
        case Scan(relation) if relation == source:
            chunk = fresh.column("BIGINT")
            return replace(node, columns=(*node.columns, chunk), names=(*node.names, CHUNK)), chunk
        case Filter() | Unnest():
            below = _carried(node.child, source, fresh)
            return None if below is None else (replace(node, child=below[0]), below[1])
        case Project(items, child):
            below = _carried(child, source, fresh)
            if below is None:
                return None
            item = Item(fresh.like(below[1]), below[1])
            return Project((*items, item), below[0]), item.column
        case Join(kind, left, right):
            below = _carried(left, source, fresh)
            if below is not None:
                return replace(node, left=below[0]), below[1]
            if kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK):
                return None
            below = _carried(right, source, fresh)
            return None if below is None else (replace(node, right=below[0]), below[1])
        case _:
            return None


def chunk_states(group: GroupBlock, occasion: Occasion, *, exact: bool) -> Program:
    """The states of a group by chunk. One that is not `exact` fails where it meets a value that it cannot add."""
    fresh = occasion.fresh
    new = partials(group, rows_at(group.rows, Moment.AFTER, occasion), fresh, exact=exact)
    odd = [is_odd(each) for each, state in zip(new.states, states_of(group), strict=True) if state.check is not None]
    count: Expression = new.count if exact or not odd else checked(new.count, either(*odd), REFOLD)
    id_, rows, version = (fresh.column("BIGINT", nullable=False) for _ in range(3))
    known = (*new.keys, *new.states)
    tree = Project((*passed(known), Item(rows, count), Item(id_, fingerprint_of(new.keys))), new.tree)
    tree = Project((*passed(tree.output), Item(version, fingerprint_of((rows, *new.states), id_))), tree)
    held: list[tuple[Expression, str]] = [*zip(new.keys, key_names(group), strict=True), (rows, COUNT)]
    held += [(state, f"_sw_p{index}") for index, state in enumerate(new.states)]
    return Program(tree, (Output(Target.STATE, (*held, (id_, ROW_ID), (version, ROW_VERSION))),))


def combined_rows(group: GroupBlock, occasion: Occasion) -> Program:
    """The rows that the stored states of a group by chunk come to."""
    fresh, there = occasion.fresh, stored_states(group, occasion.fresh)
    keys = [Item(fresh.like(each), each) for each in there.keys[:-1]]
    states = [Item(fresh.column(type_of(index)), combined(each)) for index, each in enumerate(there.states)]
    tree: Node = Aggregate(there.keys[:-1], (*keys, *states), there.tree)
    own = tuple(item.column for item in keys)
    results = [
        Item(fresh.column(result.result_type), finished(item.column, result))
        for result, item in zip(group.results, states, strict=True)
    ]
    tree = Project((*passed(own), *results), tree)
    made = shown(group, tree, own, tuple(item.column for item in results), occasion.columns, fresh)
    made = signed(made, 1, fresh)
    return Program(made.tree, (made.output([each.name for each in occasion.columns], fresh=True),))

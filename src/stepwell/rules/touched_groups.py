"""Touched groups: those that a change has touched are computed anew from the rows that are there after it.

    ΔV = V(rows.after ⋉ K) − (own ⋉ K)        K = the keys of Δrows

What goes is what is stored, never what computing says was there. Where the aggregates have states, these are replaced
and the rows follow from them.
"""

from __future__ import annotations

from stepwell.algebra.expressions import Attribute, Call, Expression, fingerprint_of, if_, number
from stepwell.algebra.nodes import Fresh, Item, Join, JoinKind, Moment, Node, Project, Scan, Values, passed
from stepwell.rules.blocks import GroupBlock, WindowBlock
from stepwell.rules.fold import first_fold
from stepwell.rules.groups import Pairs, Partials, changes, computed, partials, same_keys, stored_states
from stepwell.rules.identity import Identified, at
from stepwell.rules.programs import Occasion, Program, keys_of, own_rows, touched_keys
from stepwell.rules.row_changes import counted, delta_of, rows_at
from stepwell.rules.versions import among, difference


def touched_groups(group: GroupBlock, occasion: Occasion) -> Program:
    """The change of a group that keeps no states."""
    fresh = occasion.fresh
    if not group.keys:
        new = computed(group, rows_at(group.rows, Moment.AFTER, occasion), occasion.columns, fresh)
        old = own_rows(occasion.columns, fresh)
    else:
        keys = touched_keys(group, delta_of(group.rows, occasion), occasion)
        new = computed(group, meeting(group, Moment.AFTER, keys, occasion), occasion.columns, fresh)
        keys = _again(keys, fresh)
        id_ = fresh.column("BIGINT", nullable=False)
        ids = Project((Item(id_, fingerprint_of(keys.output)),), keys)
        old = among(own_rows(occasion.columns, fresh), ids, id_)
    change = difference(new, old, fresh)
    return Program(change.tree, (change.output([each.name for each in occasion.columns]),))


def touched_states(group: GroupBlock, occasion: Occasion, *, exact: bool) -> Program:
    """The change of a group that keeps states."""
    fresh = occasion.fresh
    if not group.keys:
        touched: Node = Values((), ((),))
        rows = rows_at(group.rows, Moment.AFTER, occasion)
    else:
        touched = touched_keys(group, delta_of(group.rows, occasion), occasion)
        rows = meeting(group, Moment.AFTER, touched, occasion)
        touched = _again(touched, fresh)
    pairs = _replaced(touched, partials(group, rows, fresh, exact=exact), stored_states(group, fresh), fresh)
    return changes(group, pairs, occasion.columns, fresh, exact=exact)


def all_states(group: GroupBlock, occasion: Occasion, *, exact: bool) -> Program:
    """The change of all groups, whatever has changed."""
    fresh = occasion.fresh
    new = partials(group, rows_at(group.rows, Moment.AFTER, occasion), fresh, exact=exact)
    if not occasion.has_state:
        return first_fold(group, new, occasion, exact=exact)
    old = stored_states(group, fresh)
    joined = Join(JoinKind.FULL, new.tree, old.tree, same_keys(new.keys, old.keys))
    missing = Call("IsNull", (new.count,), "BOOLEAN", nullable=False)
    keys = [Item(fresh.like(own), if_(missing, own, came)) for own, came in zip(old.keys, new.keys, strict=True)]
    columns = tuple(item.column for item in keys)
    pairs = _pairs(Project((*keys, *passed(joined.output)), joined), columns, new, old, fresh)
    return changes(group, pairs, occasion.columns, fresh, exact=exact)


def meeting(block: GroupBlock | WindowBlock, moment: Moment, keys: Node, occasion: Occasion) -> Identified:
    """The rows at a moment that have their keys among some; where these are a step, others are hardly read."""
    fresh, own = occasion.fresh, keys_of(block)
    there = at(block.rows.tree, moment, fresh)
    if isinstance(keys, Scan):
        pairs = [
            (mine, key) for mine, key in zip(own, keys.output, strict=True) if mine.type not in ("FLOAT", "DOUBLE")
        ]
        there = Identified(occasion.cutting.meeting(there.tree, pairs, keys), there.id)
    rows = counted(block.rows, there, moment, occasion)
    keys = _again(keys, fresh)
    return Identified(Join(JoinKind.SEMI, rows.tree, keys, same_keys(own, keys.output)), rows.id)


def _again(keys: Node, fresh: Fresh) -> Node:
    """The same keys under new numbers, so that they can be joined once more."""
    return Project(tuple(Item(fresh.like(each), each) for each in keys.output), keys)


def _replaced(touched: Node, new: Partials, old: Partials, fresh: Fresh) -> Pairs:
    keys: tuple[Attribute, ...] = touched.output
    joined = Join(JoinKind.LEFT, touched, new.tree, same_keys(keys, new.keys))
    joined = Join(JoinKind.LEFT, joined, old.tree, same_keys(keys, old.keys))
    return _pairs(joined, keys, new, old, fresh)


def _pairs(tree: Node, keys: tuple[Attribute, ...], new: Partials, old: Partials, fresh: Fresh) -> Pairs:
    there: Expression = Call("Coalesce", (new.count, number(0)), "BIGINT", False, (("name", "coalesce"),))
    count = Item(fresh.column("BIGINT", nullable=False), there)
    held = (*keys, old.count, *old.states, *new.states)
    return Pairs(Project((*passed(held), count), tree), keys, old.count, count.column, old.states, new.states)

"""Fold: the partial states of a change are merged into those that are kept.

    state.after[k] = state.before[k] ⊕ partial(Δrows)[k]        for every key k of the change

Sums and counts take signed rows. What cannot be undone (min, max, first, last) takes rows that come; a row that goes
leaves it as it is if it was worse than the best one, or if one as good comes with it. Where neither can be said the
fold fails, and the touched groups are computed anew.
"""

from __future__ import annotations

from stepwell.algebra.aggregates import REFOLD
from stepwell.algebra.expressions import (
    Attribute,
    Call,
    Expression,
    and_all,
    checked,
    compare,
    either,
    if_,
    negated,
    null,
    number,
)
from stepwell.algebra.nodes import Fresh, Item, Join, JoinKind, Project, Scan, passed
from stepwell.algebra.states import matters, merged, replaces
from stepwell.rules.blocks import LEAF, GroupBlock
from stepwell.rules.groups import COUNT, Pairs, Partials, changes, is_invertible, partials, same_keys, stored_states
from stepwell.rules.programs import PARTIAL, ComputedStep, Occasion, Program, key_names
from stepwell.rules.row_changes import delta_of, net_delta_of


def fold(group: GroupBlock, occasion: Occasion, *, loses: bool) -> Program:
    """The change of a group whose aggregates have states; `loses` says that rows went of what cannot be undone."""
    fresh = occasion.fresh
    delta = delta_of(group.rows, occasion) if is_invertible(group) else net_delta_of(group.rows, occasion)
    new = partials(group, delta, fresh, apart=loses)
    if occasion.bounds_state and group.keys:
        new = _computed_first(group, new, occasion)
    pairs = _merged(new, stored_states(group, fresh), fresh)
    return changes(group, pairs, occasion.columns, fresh, exact=False)


def first_fold(group: GroupBlock, new: Partials, occasion: Occasion, *, exact: bool) -> Program:
    """The states of a group of which nothing is kept yet."""
    fresh = occasion.fresh
    olds = [Item(fresh.like(each), null(each.type)) for each in (new.count, *new.states)]
    nothing = tuple(item.column for item in olds)
    tree = Project((*passed(new.tree.output), *olds), new.tree)
    pairs = Pairs(tree, new.keys, nothing[0], new.count, nothing[1:], new.states)
    return changes(group, pairs, occasion.columns, fresh, exact=exact)


def _computed_first(group: GroupBlock, new: Partials, occasion: Occasion) -> Partials:
    """The partial states as a step: their keys bound what is read of the state."""
    went = tuple(each for each in new.went if each is not None)
    columns = (*new.keys, new.count, *new.states, *went)
    names = [*key_names(group), COUNT, *(f"_sw_p{index}" for index in range(len(new.states)))]
    names += [f"_sw_l{index}" for index in range(len(went))]
    occasion.cutting.compute(ComputedStep(PARTIAL, Project(passed(columns), new.tree), tuple(names)))
    return Partials(Scan(LEAF, columns, tuple(names), cut=PARTIAL), new.keys, new.count, new.states, new.went)


def _merged(new: Partials, old: Partials, fresh: Fresh) -> Pairs:
    joined = Join(JoinKind.LEFT, new.tree, old.tree, same_keys(new.keys, old.keys))
    before = Call("Coalesce", (old.count, number(0)), "BIGINT", nullable=False, detail=(("name", "coalesce"),))
    count: Expression = Call("Add", (before, new.count), "BIGINT", nullable=False)
    states: list[Item] = []
    doubtful: list[Expression] = []
    for kept, came, went in zip(old.states, new.states, new.went, strict=True):
        value: Expression = merged(kept, came)
        if went is not None:
            lost = matters(kept, went)
            value = if_(lost, came, value)
            doubtful.append(and_all([lost, negated(replaces(came, went))]))
        states.append(Item(fresh.column(kept.type), value))
    if doubtful:
        count = checked(count, and_all([compare("GreaterThan", count, number(0)), either(*doubtful)]), REFOLD)
    item = Item(fresh.column("BIGINT", nullable=False), count)
    kept_columns: tuple[Attribute, ...] = (*new.keys, old.count, *old.states)
    tree = Project((*passed(kept_columns), item, *states), joined)
    return Pairs(tree, new.keys, old.count, item.column, old.states, tuple(each.column for each in states))

"""The rules, and lowering, against their laws: random trees and histories, and the oracle that says what these mean.

A bug that is planted in any of them must be seen as wrong rows; an error of another kind does not count as seen.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import pytest

from oracle import judging
from oracle.laws import (
    BLOCKS,
    CHUNKS,
    CUT_CHANGES,
    CUT_ROWS,
    DELTA,
    GROUP_UPKEEP,
    LATENESS,
    LOWERING,
    PRUNING,
    UPKEEP,
    WINDOW_UPKEEP,
    WINDOWS,
    is_broken,
)
from stepwell.algebra import lowering, pruning
from stepwell.algebra.expressions import (
    FALSE,
    ROW,
    TRUE,
    AggregateCall,
    Call,
    Expression,
    Order,
    WindowCall,
    compare,
    conjuncts,
    number,
    walk,
)
from stepwell.algebra.expressions import identity as identity_of
from stepwell.algebra.nodes import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    Limit,
    Moment,
    Node,
    SetOperation,
    Union,
    Unnest,
    Values,
    Window,
)
from stepwell.plan import cuts, decomposition
from stepwell.rules import (
    chunks,
    deltas,
    fold,
    groups,
    identity,
    lateness,
    partitions,
    programs,
    recompute,
    row_changes,
    touched_groups,
)
from stepwell.rules.identity import Identified

SEEDS = range(200)
Record = Callable[[str, object], None]
Plant = Callable[[pytest.MonkeyPatch], None]


def test_before_and_the_change_are_after(record_property: Record) -> None:
    record_property("rules held to their law", str(DELTA.play(SEEDS)))


def test_a_lowered_tree_means_the_same(record_property: Record) -> None:
    record_property("lowering held to its law", str(LOWERING.play(SEEDS)))
    record_property("lowering of windows held to its law", str(WINDOWS.play(SEEDS)))


def test_a_change_that_is_cut_is_the_same_change() -> None:
    CUT_CHANGES.play(SEEDS)


def test_rows_with_a_key_are_found_where_only_that_is_read() -> None:
    CUT_ROWS.play(SEEDS)


def test_a_pruned_tree_has_the_same_rows() -> None:
    PRUNING.play(SEEDS)


def test_the_blocks_of_a_query_are_the_query() -> None:
    BLOCKS.play(SEEDS)


def test_blocks_follow_where_they_were_touched(record_property: Record) -> None:
    record_property("blocks that were touched followed", str(UPKEEP.play(SEEDS)))
    record_property("windows that were touched followed", str(WINDOW_UPKEEP.play(SEEDS)))
    record_property("groups followed", str(GROUP_UPKEEP.play(SEEDS)))


def test_states_by_chunk_come_to_the_group(record_property: Record) -> None:
    record_property("groups by chunk", str(CHUNKS.play(SEEDS)))


def test_a_chunk_that_is_left_out_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "combined", lambda state: AggregateCall("First", (state,), state.type))
    assert is_broken(CHUNKS, SEEDS)


def test_what_comes_too_late_is_in_the_ledger(record_property: Record) -> None:
    record_property("rows judged", str(LATENESS.play(SEEDS)))


# -- planted bugs: each takes the place of a part of a rule -----------------------------------------------------------


def inner_join_reads_after_on_both_sides(patch: pytest.MonkeyPatch) -> None:
    right = deltas.Deltas._inner

    def wrong(self: deltas.Deltas, join: Join) -> list[Identified]:
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(deltas, "at", lambda node, moment, fresh: identity.at(node, Moment.AFTER, fresh))
            return right(self, join)

    patch.setattr(deltas.Deltas, "_inner", wrong)


def inner_join_forgets_the_change_of_the_right(patch: pytest.MonkeyPatch) -> None:
    right = deltas.Deltas._inner
    patch.setattr(
        deltas.Deltas,
        "_inner",
        lambda self, join: right(self, join)[:1] if self.moves(join.left) else right(self, join),
    )


def full_join_is_a_left_join(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deltas.Deltas, "_missing", lambda self, join: [])


def outer_join_forgets_the_touched_rows(patch: pytest.MonkeyPatch) -> None:
    right = deltas.Deltas._outer

    def wrong(self: deltas.Deltas, join: Join) -> list[Identified]:
        terms = right(self, join)
        return terms[:1] if self.moves(join.left) else terms

    patch.setattr(deltas.Deltas, "_outer", wrong)


def outer_join_forgets_a_sign(patch: pytest.MonkeyPatch) -> None:
    right = deltas.Deltas._signed
    patch.setattr(deltas.Deltas, "_signed", lambda self, term, sign: right(self, term, 1))


def outer_join_takes_away_only(patch: pytest.MonkeyPatch) -> None:
    right = deltas.Deltas._outer
    patch.setattr(
        deltas.Deltas, "_outer", lambda self, join: [each for i, each in enumerate(right(self, join)) if i != 1]
    )


def outer_join_touches_what_is_left_after(patch: pytest.MonkeyPatch) -> None:
    right = deltas.Deltas._outer

    def wrong(self: deltas.Deltas, join: Join) -> list[Identified]:
        def moved(node: Node, moment: Moment, fresh: Any) -> Identified:
            return identity.at(node, Moment.AFTER if node == join.left else moment, fresh)

        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(deltas, "at", moved)
            return right(self, join)

    patch.setattr(deltas.Deltas, "_outer", wrong)


def a_relation_is_not_told_of_its_change(patch: pytest.MonkeyPatch) -> None:
    right = deltas.Deltas.moves
    patch.setattr(
        deltas.Deltas, "moves", lambda self, node: right(replace(self, changed=set(sorted(self.changed)[1:])), node)
    )


def a_missing_side_counts_otherwise_in_the_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deltas, "identity", lambda *parts: identity_of(*reversed(parts)))


def a_joined_row_is_known_by_its_left_side(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(identity, "identity", lambda *parts: identity_of(parts[0]))


def a_branch_is_not_known_by_its_number(patch: pytest.MonkeyPatch) -> None:
    right = identity.united

    def wrong(node: Union, branches: list[tuple[int, Identified]], fresh: Any) -> Identified:
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(identity, "number", lambda value: number(0))
            return right(node, branches, fresh)

    patch.setattr(identity, "united", wrong)
    patch.setattr(deltas, "united", wrong)


def branches_are_numbered_by_what_has_changed(patch: pytest.MonkeyPatch) -> None:
    right = identity.united

    def wrong(node: Union, branches: list[tuple[int, Identified]], fresh: Any) -> Identified:
        chosen = replace(node, children=tuple(node.children[index] for index, _ in branches))
        return right(chosen, [(place, branch) for place, (_, branch) in enumerate(branches)], fresh)

    patch.setattr(deltas, "united", wrong)


def an_element_is_not_known_by_its_place(patch: pytest.MonkeyPatch) -> None:
    right = identity.above

    def wrong(node: Any, below: Identified, fresh: Any) -> Identified:
        if not isinstance(node, Unnest):
            return right(node, below, fresh)
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(identity, "identity", lambda row, place: identity_of(row))
            return right(node, below, fresh)

    patch.setattr(identity, "above", wrong)
    patch.setattr(deltas, "above", wrong)


def a_written_row_is_not_known_by_its_number(patch: pytest.MonkeyPatch) -> None:
    right = identity.at

    def wrong(node: Node, moment: Moment, fresh: Any) -> Identified:
        if not isinstance(node, Values):
            return right(node, moment, fresh)
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(identity, "number", lambda value: number(0))
            return right(node, moment, fresh)

    patch.setattr(identity, "at", wrong)


def every_row_is_marked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(identity, "FALSE", TRUE)


def every_change_only_adds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deltas, "only_adds", lambda node, changed: True)


def every_change_is_netted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deltas, "is_netted", lambda node, changed: True)


DELTA_BUGS: list[Plant] = [
    inner_join_reads_after_on_both_sides,
    inner_join_forgets_the_change_of_the_right,
    full_join_is_a_left_join,
    outer_join_forgets_the_touched_rows,
    outer_join_forgets_a_sign,
    outer_join_takes_away_only,
    outer_join_touches_what_is_left_after,
    a_relation_is_not_told_of_its_change,
    a_missing_side_counts_otherwise_in_the_change,
    a_joined_row_is_known_by_its_left_side,
    a_branch_is_not_known_by_its_number,
    branches_are_numbered_by_what_has_changed,
    an_element_is_not_known_by_its_place,
    a_written_row_is_not_known_by_its_number,
    every_row_is_marked,
    every_change_only_adds,
    every_change_is_netted,
]


@pytest.mark.parametrize("plant", DELTA_BUGS, ids=lambda plant: plant.__name__)
def test_a_bug_planted_in_a_rule_is_seen(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_broken(DELTA, SEEDS)


def before_lowering(change: Callable[[Node], Node | None]) -> Plant:
    """Lowering that takes a node for another one."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = lowering._Lowering.node
        patch.setattr(lowering._Lowering, "node", lambda self, node: right(self, change(node) or node))

    return plant


def right_join_is_not_turned_around(node: Node) -> Node | None:
    return replace(node, kind=JoinKind.LEFT) if isinstance(node, Join) and node.kind == JoinKind.RIGHT else None


def except_is_intersect(node: Node) -> Node | None:
    return replace(node, kind="INTERSECT") if isinstance(node, SetOperation) else None


def bags_are_sets(node: Node) -> Node | None:
    return replace(node, keep_all=False) if isinstance(node, SetOperation) else None


def outer_is_forgotten(node: Node) -> Node | None:
    return replace(node, outer=False) if isinstance(node, Generate) else None


def limit_forgets_the_offset(node: Node) -> Node | None:
    return replace(node, offset=0, count=node.count) if isinstance(node, Limit) and node.count is not None else None


LOWERING_BUGS = [
    right_join_is_not_turned_around,
    except_is_intersect,
    bags_are_sets,
    outer_is_forgotten,
    limit_forgets_the_offset,
]


@pytest.mark.parametrize("change", LOWERING_BUGS, ids=lambda change: change.__name__)
def test_a_bug_planted_in_lowering_is_seen(
    change: Callable[[Node], Node | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before_lowering(change)(monkeypatch)
    assert is_broken(LOWERING, range(1000))


def every_range_is_one_of_rows(call: WindowCall) -> WindowCall:
    assert call.frame is not None
    return replace(call, order=(*call.order, Order(ROW)), frame=replace(call.frame, kind="ROWS"))


def test_a_range_that_is_taken_for_rows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "_by_rows", every_range_is_one_of_rows)
    assert is_broken(WINDOWS, SEEDS)


def a_look_is_taken_for_another(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cuts.Look, "asks", lambda self, scan, columns, by, keys: self.relation == scan.relation)


def a_look_leaves_null_out(patch: pytest.MonkeyPatch) -> None:
    right = cuts.ties_of
    patch.setattr(cuts, "ties_of", lambda *given: [(number, key, False) for number, key, _ in right(*given)])


def an_inequality_cuts(patch: pytest.MonkeyPatch) -> None:
    def wrong(condition: Expression | None) -> list[Expression]:
        return [
            Call("EqualTo", each.arguments, each.type)
            if isinstance(each, Call) and each.function == "LessThan"
            else each
            for each in conjuncts(condition)
        ]

    patch.setattr(cuts, "conjuncts", wrong)


def a_full_join_is_cut_like_a_left_one(patch: pytest.MonkeyPatch) -> None:
    right = cuts.Cuts._join

    def wrong(self: cuts.Cuts, join: Join, pairs: Any, by: Node) -> Node:
        found = right(self, replace(join, kind=JoinKind.LEFT) if join.kind == JoinKind.FULL else join, pairs, by)
        assert isinstance(found, Join)
        return replace(found, kind=join.kind)

    patch.setattr(cuts.Cuts, "_join", wrong)


def an_outer_join_is_cut_like_an_inner_one(patch: pytest.MonkeyPatch) -> None:
    right = cuts.Cuts._join

    def wrong(self: cuts.Cuts, join: Join, pairs: Any, by: Node) -> Node:
        found = right(self, replace(join, kind=JoinKind.INNER) if join.kind == JoinKind.LEFT else join, pairs, by)
        assert isinstance(found, Join)
        return replace(found, kind=join.kind)

    patch.setattr(cuts.Cuts, "_join", wrong)


@pytest.mark.parametrize(
    "plant",
    [a_look_is_taken_for_another, a_look_leaves_null_out, an_inequality_cuts],
    ids=lambda plant: plant.__name__,
)
def test_a_bug_planted_in_cuts_is_seen_in_a_change(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_broken(CUT_CHANGES, range(1000))


@pytest.mark.parametrize(
    "plant",
    [a_look_is_taken_for_another, a_full_join_is_cut_like_a_left_one, an_outer_join_is_cut_like_an_inner_one],
    ids=lambda plant: plant.__name__,
)
def test_a_bug_planted_in_cuts_is_seen_in_rows(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_broken(CUT_ROWS, range(1000))


def test_a_group_that_loses_its_unwanted_keys_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = pruning._Pruning.of

    def wrong(self: pruning._Pruning, node: Node, wanted: AbstractSet[int]) -> Node:
        if isinstance(node, Aggregate):
            shown = [item.expression for item in node.items if item.column.id in wanted]
            node = replace(node, keys=tuple(each for each in node.keys if each in shown))
        return right(self, node, wanted)

    monkeypatch.setattr(pruning._Pruning, "of", wrong)
    assert is_broken(PRUNING, SEEDS)


def a_condition_on_groups_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = decomposition._above

    def wrong(*given: Any) -> Any:
        found = right(*given)
        return (found[0], []) if found is not None else None

    patch.setattr(decomposition, "_above", wrong)


def a_filter_of_an_aggregate_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = decomposition._Results.name
    patch.setattr(decomposition._Results, "name", lambda self, call: right(self, replace(call, filter=None)))


@pytest.mark.parametrize(
    "plant",
    [a_condition_on_groups_is_forgotten, a_filter_of_an_aggregate_is_forgotten],
    ids=lambda plant: plant.__name__,
)
def test_a_bug_planted_in_the_decomposition_is_seen(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_broken(BLOCKS, range(1000))


def test_a_partition_that_not_all_windows_share_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(node: Node, lowest: Window) -> tuple[Expression, ...]:
        call = next(each for item in lowest.items for each in walk(item.expression) if isinstance(each, WindowCall))
        return call.partition

    monkeypatch.setattr(decomposition, "_shared_partition", wrong)
    assert is_broken(WINDOW_UPKEEP, SEEDS)


def test_a_hidden_block_that_is_not_heard_of_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = deltas.Deltas.moves
    monkeypatch.setattr(
        deltas.Deltas,
        "moves",
        lambda self, node: right(replace(self, changed={each for each in self.changed if each > 0}), node),
    )
    assert is_broken(UPKEEP, range(1000))


# -- programs ---------------------------------------------------------------------------------------------------------


def what_is_kept_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fold, "merged", lambda old, new: new)


def what_comes_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fold, "merged", lambda old, new: old)


def a_lost_row_never_matters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fold, "matters", lambda old, went: FALSE)


def a_lost_row_is_always_replaced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fold, "replaces", lambda came, went: TRUE)


def extremes_take_rows_back(patch: pytest.MonkeyPatch) -> None:
    right = groups.partials
    patch.setattr(fold, "partials", lambda *given, **said: right(*given, **{**said, "apart": False}))


def a_fold_does_not_net(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fold, "net_delta_of", row_changes.delta_of)


def one_key_is_touched(patch: pytest.MonkeyPatch) -> None:
    right = programs.touched_keys
    for module in (touched_groups, partitions):
        patch.setattr(module, "touched_keys", lambda *given: Limit(1, 0, right(*given)))


def having_is_forgotten_in_a_change(patch: pytest.MonkeyPatch) -> None:
    right = groups.changes
    for module in (fold, touched_groups):
        patch.setattr(
            module, "changes", lambda group, *given, **said: right(replace(group, having=None), *given, **said)
        )


def what_was_is_computed(patch: pytest.MonkeyPatch) -> None:
    right = row_changes.rows_at
    patch.setattr(recompute, "rows_at", lambda rows, moment, occasion: right(rows, Moment.BEFORE, occasion))


def groups_that_end_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(groups._Comparison, "_has", lambda self: TRUE)


def nothing_is_added_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_changes, "consolidated", lambda change, fresh: change)


def old_partitions_stay(patch: pytest.MonkeyPatch) -> None:
    right = touched_groups.meeting
    patch.setattr(
        partitions, "meeting", lambda block, moment, keys, occasion: right(block, Moment.AFTER, keys, occasion)
    )


def a_state_is_not_counted_down(patch: pytest.MonkeyPatch) -> None:
    """The rows stay right for a while: only the state is wrong."""
    right = groups._Reading.state

    def wrong(self: groups._Reading, index: int, side: str, *, exact: bool) -> AggregateCall:
        call = right(self, index, side, exact=exact)
        place = len(self.group.results[index].argument_types)
        sign = Call("Greatest", (call.arguments[place], number(0)), "BIGINT")
        return replace(call, arguments=(*call.arguments[:place], sign, *call.arguments[place + 1 :]))

    patch.setattr(groups._Reading, "state", wrong)


@pytest.mark.parametrize(
    "plant",
    [
        what_is_kept_is_forgotten, what_comes_is_forgotten, a_lost_row_never_matters, a_lost_row_is_always_replaced,
        extremes_take_rows_back, a_fold_does_not_net, one_key_is_touched, having_is_forgotten_in_a_change,
        what_was_is_computed, groups_that_end_stay, nothing_is_added_up, a_state_is_not_counted_down,
    ],
    ids=lambda plant: plant.__name__,
)  # fmt: skip
def test_a_bug_planted_in_a_program_is_seen(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_broken(UPKEEP if plant is nothing_is_added_up else GROUP_UPKEEP, range(4000))


def late_rows_are_applied(patch: pytest.MonkeyPatch) -> None:
    right = lateness.entries
    patch.setattr(judging, "entries", lambda *given: replace(right(*given), tree=Filter(FALSE, right(*given).tree)))


def what_went_late_is_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        lateness, "compare", lambda function, *given: FALSE if function == "GreaterThan" else compare(function, *given)
    )


@pytest.mark.parametrize("plant", [late_rows_are_applied, what_went_late_is_gone], ids=lambda plant: plant.__name__)
def test_a_bug_planted_in_lateness_is_seen(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert is_broken(LATENESS, range(1000))


def test_partitions_that_are_not_taken_back_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    old_partitions_stay(monkeypatch)
    assert is_broken(WINDOW_UPKEEP, SEEDS)

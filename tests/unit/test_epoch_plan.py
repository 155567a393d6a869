"""The epoch plan: what an epoch does to each view, from values alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stepwell.algebra.aggregates import GroupResult
from stepwell.algebra.expressions import AggregateCall, Attribute, Named, equal
from stepwell.algebra.nodes import Item, Join, JoinKind, Project, Scan
from stepwell.graph import Registry
from stepwell.model.epochs import Epoch
from stepwell.model.lifecycle import Building, ByUser, Failed, Life, Owed, Paused, Running, Serving, Unpopulated
from stepwell.model.limits import Limits
from stepwell.model.relations import Column, Definition, Relation, RelationKind
from stepwell.model.types import parse_type
from stepwell.model.views import Input, RefreshPolicy, RelationId, ViewDefinition
from stepwell.plan.choices import When
from stepwell.plan.costs import Cost, Costs
from stepwell.plan.cuts import Change
from stepwell.plan.epoch_plan import AtClose, EpochPlan, Extent, ViewTask, Work, plan_epoch, said_of_task
from stepwell.plan.steps import Rule
from stepwell.rules.blocks import Block, GroupBlock, RowBlock, WholeBlock

TABLE, OTHER = RelationId(1), RelationId(2)
NOW = Epoch(7)
INT = parse_type("INT")


@dataclass
class Graph:
    """Definitions that exist only in a test."""

    by_id: dict[RelationId, Relation] = field(default_factory=dict)
    blocks: dict[RelationId, Block] = field(default_factory=dict)
    order: Registry = field(default_factory=Registry)
    outdated: frozenset[RelationId] = frozenset()

    def table(self, id_: RelationId) -> RelationId:
        self.by_id[id_] = Relation(id_, f"t{id_}", Definition(RelationKind.TABLE), (Column("a", INT),), Epoch(1))
        self.order.add(id_)
        return id_

    def view(
        self, number: int, block: Block, *parents: RelationId, policy: RefreshPolicy = RefreshPolicy.AUTO
    ) -> RelationId:
        id_ = RelationId(number)
        view = ViewDefinition("", "", parents, tuple(Input(each, ("a",)) for each in parents), policy)
        definition = Definition(RelationKind.MATERIALIZED, view=view)
        self.by_id[id_] = Relation(id_, f"v{id_}", definition, (Column("a", INT),), Epoch(1))
        self.blocks[id_] = block
        self.order.add(id_, parents)
        return id_


def rows(relation: RelationId, number: int = 100) -> RowBlock:
    column = Attribute(number, "INT")
    return RowBlock(Scan(relation, (column,), ("a",)), (column,), ("a",))


def joined(left: RelationId, right: RelationId, kind: JoinKind) -> RowBlock:
    one, other = rows(left, 1), rows(right, 2)
    tree = Join(kind, one.tree, other.tree, equal(one.columns[0], other.columns[0]))
    return RowBlock(tree, one.columns, ("a",))


def grouped(relation: RelationId, function: str) -> GroupBlock:
    source = rows(relation)
    key, argument = Attribute(1, "INT"), Attribute(2, "INT")
    project = Project((Item(key, source.columns[0]), Item(argument, source.columns[0])), source.tree)
    inner = RowBlock(project, (key, argument), ("_sw_g0", "_sw_x0"))
    call = AggregateCall(function, (Named("_sw_x0", "INT"),), "INT")
    result = GroupResult(function, call, ("_sw_x0",), ("INT",), "INT")
    return GroupBlock(inner, 1, ("INT",), (result,), (Named("_sw_r0", "INT"),), ("a",))


def known(changes: Mapping[RelationId, Change], **more: object) -> AtClose:
    there = {RelationId(number): Extent(1000, 10_000) for number in range(1, 9)}
    return AtClose(changes, there, {}, Limits(), **more)  # type: ignore[arg-type]  # what a test says


FEW = Change(10, 0, 1010)
TAKEN_BACK = Change(10, 8, 1000)
REPLACED = Change(10, 4, 1002)
MOST = Change(60_000, 0, 61_000)
RUNS = Serving(Epoch(6))


def planned(
    graph: Graph, changes: Mapping[RelationId, Change], lives: Mapping[RelationId, Life] | None = None
) -> EpochPlan:
    all_ = dict.fromkeys(graph.blocks, RUNS) | dict(lives or {})
    return plan_epoch(NOW, graph, all_, known(changes))


def task(graph: Graph, view: RelationId, changes: Mapping[RelationId, Change], life: Life = RUNS) -> ViewTask:
    found = planned(graph, changes, {view: life}).of(view)
    assert found is not None
    return found


def rule(graph: Graph, view: RelationId, changes: Mapping[RelationId, Change]) -> Rule | None:
    step = task(graph, view, changes).step
    return step.rule if step is not None else None


def one_view(block: Block, policy: RefreshPolicy = RefreshPolicy.AUTO) -> tuple[Graph, RelationId]:
    graph = Graph()
    parents = [graph.table(TABLE), graph.table(OTHER)]
    return graph, graph.view(3, block, *parents, policy=policy)


def test_a_rule_follows_from_the_block_and_from_what_has_changed() -> None:
    graph, view = one_view(rows(TABLE))
    assert rule(graph, view, {TABLE: FEW}) == Rule.APPLY
    graph, view = one_view(joined(TABLE, OTHER, JoinKind.INNER))
    assert rule(graph, view, {TABLE: FEW}) == Rule.JOIN
    graph, view = one_view(joined(TABLE, OTHER, JoinKind.LEFT))
    assert rule(graph, view, {TABLE: FEW}) == Rule.JOIN
    assert rule(graph, view, {OTHER: FEW}) == Rule.TOUCHED_ROWS
    graph, view = one_view(grouped(TABLE, "Sum"))
    assert rule(graph, view, {TABLE: TAKEN_BACK}) == Rule.FOLD
    graph, view = one_view(grouped(TABLE, "CollectList"))
    assert rule(graph, view, {TABLE: FEW}) == Rule.TOUCHED_GROUPS


def test_what_cannot_be_undone_is_folded_while_rows_come_in_the_place_of_others() -> None:
    graph, view = one_view(grouped(TABLE, "Max"))
    assert rule(graph, view, {TABLE: FEW}) == Rule.FOLD
    assert rule(graph, view, {TABLE: TAKEN_BACK}) == Rule.TOUCHED_GROUPS
    step = task(graph, view, {TABLE: REPLACED}).step
    assert step is not None
    assert (step.rule, step.loses) == (Rule.FOLD, True)
    waiting = plan_epoch(NOW, graph, {view: RUNS}, known({TABLE: REPLACED}, refolding={view})).of(view)
    assert waiting is not None
    assert waiting.rules == (Rule.TOUCHED_GROUPS,)


def test_a_change_of_most_rows_is_recomputed_unless_the_policy_forbids_it() -> None:
    graph, view = one_view(rows(TABLE))
    assert rule(graph, view, {TABLE: MOST}) == Rule.RECOMPUTE
    graph, view = one_view(rows(TABLE), RefreshPolicy.INCREMENTAL)
    assert rule(graph, view, {TABLE: MOST}) == Rule.APPLY
    graph, view = one_view(rows(TABLE), RefreshPolicy.FULL)
    assert rule(graph, view, {TABLE: FEW}) == Rule.RECOMPUTE


def test_a_rule_that_was_dearer_than_computing_everything_is_not_taken() -> None:
    graph, view = one_view(rows(TABLE))
    costs = Costs(Cost(10, 9_000_000), Cost(2000, 3_000_000), updates=5)
    found = plan_epoch(NOW, graph, {view: RUNS}, AtClose({TABLE: FEW}, {}, {view: costs}, Limits())).of(view)
    assert found is not None
    assert found.step is not None
    assert (found.step.rule, found.step.reason) == (Rule.RECOMPUTE, str(When.DEARER))


def test_a_query_that_is_computed_as_a_whole_says_why() -> None:
    graph, view = one_view(WholeBlock("SELECT 1", ("a",), "it has no rule", (TABLE,)))
    assert said_of_task(task(graph, view, {TABLE: FEW}), emits=False) == ("recompute and diff", "it has no rule")


def test_what_nothing_has_changed_for_is_left_alone() -> None:
    graph, view = one_view(rows(TABLE))
    assert planned(graph, {}).due == ()
    assert said_of_task(task(graph, view, {}), emits=False) == ("none", "nothing that it reads has changed")
    for life, state in ((Serving(Epoch(3), Paused(ByUser())), "paused"), (Serving(Epoch(3), Failed("x")), "error")):
        assert task(graph, view, {TABLE: FEW}, life).why == f"it is in state {state}"
    assert task(graph, view, {TABLE: FEW}, Unpopulated()).work == Work.NOTHING


def test_what_a_view_is_owed_comes_before_what_has_changed() -> None:
    graph, view = one_view(rows(TABLE))
    assert task(graph, view, {}, Building()).rules == (Rule.BUILD,)
    found = task(graph, view, {TABLE: FEW}, Serving(Epoch(6), Running(), Owed.REWRITE))
    assert (found.work, found.rules) == (Work.REWRITE, (Rule.BUILD,))
    found = task(graph, view, {}, Serving(Epoch(6), Running(), Owed.RECOMPUTE))
    assert found.step is not None
    assert (found.step.rule, found.step.is_detached) == (Rule.RECOMPUTE, True)


def test_a_view_catches_up_as_long_as_the_changes_are_kept() -> None:
    graph, view = one_view(rows(TABLE))
    life = Serving(Epoch(3), Running(), Owed.CATCH_UP)
    kept = plan_epoch(NOW, graph, {view: life}, known({}, kept_since=3)).of(view)
    gone = plan_epoch(NOW, graph, {view: life}, known({}, kept_since=4)).of(view)
    assert kept is not None and gone is not None  # noqa: PT018  # both are there
    assert (kept.work, kept.is_open) == (Work.CATCH_UP, True)
    assert (gone.work, gone.rules) == (Work.RECOMPUTE, (Rule.RECOMPUTE,))


def test_a_view_on_a_view_is_a_choice_until_its_parent_is_done() -> None:
    graph = Graph()
    parent = graph.view(3, rows(graph.table(TABLE)), TABLE)
    child = graph.view(4, grouped(parent, "Max"), parent)
    plan = planned(graph, {TABLE: FEW})
    assert [each.view for each in plan.due] == [parent, child]
    found = plan.of(child)
    assert found is not None
    assert found.is_open
    assert found.rules == (Rule.RECOMPUTE, Rule.TOUCHED_GROUPS, Rule.FOLD)
    step, why = said_of_task(found, emits=False)
    assert step == "fold into the touched groups"
    assert why is not None
    assert f"recompute the touched groups if {When.LOSES_MUCH}" in why


def test_a_view_waits_for_a_parent_that_does_not_run_and_so_does_what_reads_it() -> None:
    graph = Graph()
    parent = graph.view(3, rows(graph.table(TABLE)), TABLE)
    child = graph.view(4, rows(parent), parent)
    grandchild = graph.view(5, rows(child), child)
    life = Serving(Epoch(3), Failed("x"))
    plan = planned(graph, {TABLE: FEW}, {parent: life})
    works = {each.view: each.work for each in plan.tasks}
    assert works == {parent: Work.NOTHING, child: Work.WAIT, grandchild: Work.WAIT}
    assert [each.view for each in plan.due] == [child, grandchild]
    assert planned(graph, {}, {parent: life}).due == ()


def test_a_view_of_another_version_waits_to_be_planned() -> None:
    graph, view = one_view(rows(TABLE))
    graph.outdated = frozenset({view})
    found = task(graph, view, {TABLE: FEW})
    assert found.work == Work.REPLAN
    assert planned(graph, {TABLE: FEW}).due == ()

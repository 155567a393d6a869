"""The epoch plan: what an epoch does to each view, in order, before anything is run.

A pure function of what is known at the close of an epoch. Running it, EXPLAIN REFRESH and `stepwell.refreshes` all go
by it. Where a view reads another that is maintained in the same epoch, how it follows depends on what becomes of that:
then the plan holds a choice, which is settled when its parents are done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from stepwell.graph import Registry
from stepwell.model.epochs import Epoch
from stepwell.model.lifecycle import Building, Life, Owed, Serving, is_due, is_outdated, runs, state_of
from stepwell.model.limits import Limits
from stepwell.model.relations import Relation
from stepwell.model.views import OUTDATED, RelationId
from stepwell.plan.choices import ChangeFacts, Choice, choice_for, settled
from stepwell.plan.costs import Costs
from stepwell.plan.cuts import Change, Sizes
from stepwell.plan.read_volume import reading_of
from stepwell.plan.steps import Rule, Step
from stepwell.rules.blocks import Block


class Views(Protocol):
    """The definitions in force at an epoch."""

    @property
    def by_id(self) -> Mapping[RelationId, Relation]: ...

    @property
    def blocks(self) -> Mapping[RelationId, Block]: ...

    @property
    def order(self) -> Registry: ...

    @property
    def outdated(self) -> AbstractSet[RelationId]: ...


class Work(StrEnum):
    """What a view is due in an epoch."""

    NOTHING = "nothing"
    BUILD = "build"
    REWRITE = "rewrite"
    RECOMPUTE = "recompute"
    CATCH_UP = "catch up"
    FOLLOW = "follow"
    WAIT = "wait"
    """For a parent that does not run."""
    REPLAN = "replan"
    """Before the next barrier: another version of stepwell has planned it."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much there is of a relation, with what the epoch brings it."""

    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class AtClose:
    """What is known at the close of an epoch, beside the definitions and the lives of views.

    `changes` are those of tables; `emits` are the views that may have more to show whatever their
    parents do; an epoch before `kept_since` cannot be caught up with; `refolding` are the views whose last fold lost.
    """

    changes: Mapping[RelationId, Change]
    extents: Mapping[RelationId, Extent]
    costs: Mapping[RelationId, Costs]
    limits: Limits
    emits: AbstractSet[RelationId] = frozenset()
    refolding: AbstractSet[RelationId] = frozenset()
    kept_since: int = 0


@dataclass(frozen=True, slots=True)
class ViewTask:
    """What an epoch does to one view: a step, or a choice of steps until its parents are done."""

    view: RelationId
    work: Work
    step: Step | None = None
    choice: Choice = ()
    why: str | None = None
    """Of a view that waits, or that nothing is done to: the reason."""

    @property
    def is_open(self) -> bool:
        """Whether it depends on what becomes of its parents in this epoch."""
        return self.step is None and self.work not in (Work.NOTHING, Work.WAIT)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that may be run."""
        return (self.step.rule,) if self.step is not None else tuple(dict.fromkeys(each.rule for each in self.choice))


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The tasks of an epoch, parents before children, views that nothing is done to included."""

    epoch: Epoch
    tasks: tuple[ViewTask, ...]

    @property
    def due(self) -> tuple[ViewTask, ...]:
        """The tasks that do something, or may."""
        return tuple(each for each in self.tasks if each.work not in (Work.NOTHING, Work.REPLAN))

    def of(self, view: RelationId) -> ViewTask | None:
        return next((each for each in self.tasks if each.view == view), None)


def plan_epoch(epoch: Epoch, views: Views, lives: Mapping[RelationId, Life], known: AtClose) -> EpochPlan:
    """What an epoch does, by what is known when it is closed."""
    moved = [id_ for id_ in known.changes if id_ in views.order]
    waiting = [id_ for id_, life in lives.items() if is_due(life) and id_ in views.by_id]
    affected = {*waiting, *known.emits, *views.order.downstream([*moved, *waiting, *known.emits])}
    tasks: list[ViewTask] = []
    moving: set[RelationId] = set()
    """The views that have a change in this epoch, or may."""
    stopped = {id_ for id_, life in lives.items() if not runs(life)}
    for id_ in [each for each in views.order.order() if each in lives]:
        behind = next((parent for parent in views.order.parents(id_) if parent in stopped), None)
        if behind is not None and id_ in affected and id_ not in stopped:
            task = ViewTask(id_, Work.WAIT, why=f'"{views.by_id[behind].name}" does not run')
            stopped.add(id_)
        else:
            task = _task(views, id_, lives[id_], known, affected, moving)
            moving |= {id_} if task.work != Work.NOTHING else set()
        tasks.append(task)
    return EpochPlan(epoch, tuple(tasks))


def _task(
    views: Views,
    id_: RelationId,
    life: Life,
    known: AtClose,
    affected: AbstractSet[RelationId],
    moving: AbstractSet[RelationId],
) -> ViewTask:
    view = views.by_id[id_]
    if view.deferral is not None:
        return ViewTask(id_, Work.NOTHING, why="it is deferred: REFRESH computes what has changed")
    if not runs(life):
        return ViewTask(id_, Work.NOTHING, why=f"it is in state {state_of(life)}")
    if id_ in views.outdated:
        return ViewTask(id_, Work.REPLAN, Step(Rule.RECOMPUTE, OUTDATED))
    due = _owed(id_, life, known)
    if due is not None:
        return due
    catches_up = is_due(life)
    if not catches_up and id_ not in affected:
        return ViewTask(id_, Work.NOTHING, why="nothing that it reads has changed")
    inputs = [each.relation for each in view.view.inputs]
    changes = {int(each): known.changes[each] for each in inputs if each in known.changes}
    is_open = catches_up or view.view.live is not None or any(each in moving for each in inputs)
    if not changes and not is_open:
        return ViewTask(id_, Work.NOTHING, why="nothing that it reads has changed")
    choice = choice_for(views.blocks[id_], view.view.policy)
    work = Work.CATCH_UP if catches_up else Work.FOLLOW
    if is_open:
        return ViewTask(id_, work, choice=choice)
    step = settled(views.blocks[id_], choice, facts_of(view, views.blocks[id_], changes, known))
    return ViewTask(id_, work, step, choice)


def _owed(id_: RelationId, life: Life, known: AtClose) -> ViewTask | None:
    """What a view is due whatever has changed."""
    match life:
        case Building():
            return ViewTask(id_, Work.BUILD, Step(Rule.BUILD))
        case Serving(owed=Owed.REWRITE):
            return ViewTask(id_, Work.REWRITE, Step(Rule.BUILD, "repair"))
        case Serving(reflects, _, owed) if owed != Owed.NOTHING:
            if owed == Owed.CATCH_UP and reflects >= known.kept_since:
                return None
            why = OUTDATED if is_outdated(life) else "it was stopped or replaced"
            return ViewTask(id_, Work.RECOMPUTE, Step(Rule.RECOMPUTE, why, is_detached=True))
        case _:
            return None


def facts_of(view: Relation, block: Block, changes: Mapping[int, Change], known: AtClose) -> ChangeFacts:
    """What decides between the rules of a view, given what has changed of its inputs."""
    inputs: Sequence[RelationId] = list(dict.fromkeys(each.relation for each in view.view.inputs))
    there = {int(each): known.extents.get(each, Extent()) for each in inputs}
    rows = sum(changes[each].total if each in changes else extent.rows for each, extent in there.items())
    changed = sum(change.rows for change in changes.values())
    expected = known.costs.get(view.id, Costs()).expect(changed, rows, known.limits)
    sizes = Sizes({each: extent.bytes for each, extent in there.items()}, changes, known.limits)
    own = [view.id, *([view.view.state] if view.view.state is not None else [])]
    stored = sum(known.extents.get(each, Extent()).bytes for each in own)
    reading = reading_of(block, sizes, stored, known.limits)
    return ChangeFacts(changes, expected, reading, view.id not in known.refolding, known.limits)


def said_of_task(task: ViewTask, *, emits: bool) -> tuple[str, str | None]:
    """What EXPLAIN REFRESH says of a task: the step, and why it is that one, or on what it depends.

    A view that `emits` shows less than is known of it, and may have more to show whatever has changed.
    """
    if emits and task.step is None and task.work != Work.WAIT:
        return Rule.EMIT.value, "if a window closes, or its interval is over"
    if task.work in (Work.NOTHING, Work.WAIT):
        return "none", task.why
    if task.step is not None:
        return task.step.rule.value, task.step.reason
    *others, last = task.choice
    unless = [f"{each.rule.value} if {each.when}" for each in others if each.rule != last.rule]
    return last.rule.value, "; ".join([*([last.reason] if last.reason else []), *unless]) or None

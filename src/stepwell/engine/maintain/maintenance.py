"""Maintenance: an epoch goes through the graph, parents before children.

Each view whose inputs have changed is brought up to date by the rule that its plan chooses. Its change is written once
and is then what its children read; nothing of it counts before the epoch is committed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from stepwell.engine.damages import name_relation
from stepwell.engine.definitions import Definitions
from stepwell.engine.failures import LOST_SPARK, is_bug, translated
from stepwell.engine.maintain.emission import emission_of
from stepwell.engine.maintain.planning import Extents, Prepared, prepare
from stepwell.engine.maintain.refreshing import Refresher
from stepwell.engine.maintain.workspace import Workspace
from stepwell.engine.runtime import Runtime
from stepwell.engine.workers import run_in_order
from stepwell.model.epochs import Epoch
from stepwell.model.errors import DataFileError, FencedError, InternalError, StepwellError, WarehouseError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DataFile, NewFile, total
from stepwell.model.functions import unlike
from stepwell.model.lifecycle import (
    Life,
    Outcome,
    Serving,
    failed,
    follows,
    runs,
    stopped_by,
    stopped_with,
)
from stepwell.model.relations import Relation
from stepwell.model.views import Refresh, RelationId
from stepwell.model.watermarks import NEVER, LateCount, MarkRecord
from stepwell.plan.choices import settled
from stepwell.plan.cuts import Change
from stepwell.plan.epoch_plan import ViewTask, Work, facts_of
from stepwell.plan.steps import ANEW, Rule, Step
from stepwell.storage import all_damages


@dataclass
class Maintained:
    """What an epoch has made of the views: files to commit, and what to remember."""

    files: dict[RelationId, list[NewFile]] = field(default_factory=dict)
    refreshes: list[Refresh] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    replaced: set[RelationId] = field(default_factory=set)
    """The relations whose new files stand for all that was there before."""
    marks: list[MarkRecord] = field(default_factory=list)
    late: list[LateCount] = field(default_factory=list)
    emitted: dict[RelationId, Epoch] = field(default_factory=dict)

    def add(self, done: Refreshed) -> None:
        for relation, new in done.files.items():
            self.files.setdefault(relation, []).extend(new)
        self.refreshes.extend([done.refresh] if done.refresh else [])
        self.outcomes.append(done.outcome)
        self.replaced |= done.replaced
        self.late.extend([done.late] if done.late else [])
        if done.emitted is not None:
            self.emitted[done.outcome.relation] = done.emitted


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What an epoch has made of one view."""

    files: dict[RelationId, list[NewFile]]
    refresh: Refresh | None
    outcome: Outcome
    replaced: frozenset[RelationId] = frozenset()
    late: LateCount | None = None
    emitted: Epoch | None = None
    """The epoch, if the view emits by the clock and shows all that is known of it now."""


def maintain(
    runtime: Runtime,
    epoch: Epoch,
    deltas: Mapping[RelationId, Sequence[DataFile]],
    without: AbstractSet[RelationId] = frozenset(),
) -> Maintained:
    """Bring every view up to date with `deltas`, what the epoch did to the tables, by what was in force at the epoch.

    A view begins when all that it reads is done; those that are ready run beside each other, on a few workers. The
    views `without` which it shall do are paused in it.
    """
    result = Maintained()
    ready = prepare(runtime, epoch, deltas, without)
    definitions, known, marks = ready.definitions, ready.lives, ready.marks
    stopped = {id_: life for id_, life in known.items() if not runs(life)}
    result.outcomes.extend(Outcome(id_, was, stopped[id_]) for id_, was in ready.left_out.items())
    result.marks = marks.settled((), {})
    tasks = {each.view: each for each in ready.plan.due}
    if not tasks and not any(marks.moves(id_) for id_ in definitions.timed):
        return result
    workspace = ready.workspace

    def stop(id_: RelationId, becomes: Life) -> None:
        stopped[id_] = becomes
        result.outcomes.append(Outcome(id_, known[id_], becomes))

    def begin(id_: RelationId) -> Callable[[int], Refreshed | None] | None:
        """What there is to do for a view whose parents are done; nothing if one of them does not run."""
        behind = [parent for parent in definitions.order.parents(id_) if parent in stopped]
        if behind:
            parent, life = behind[0], known[id_]
            is_part = definitions.by_id[parent].is_hidden
            stop(id_, stopped_with(life, stopped[parent]) if is_part else stopped_by(life, parent))
            return None
        view = definitions.by_id[id_]

        def work(worker: int) -> Refreshed | None:
            with runtime.doing(f'maintaining view "{view.name}"'), translated():
                _require_functions(runtime, view)
                own = workspace.beside(worker, view.view.settings)
                return refresh_view(own, ready, tasks[id_], epoch)

        return work

    def end(id_: RelationId, outcome: Refreshed | BaseException | None) -> None:
        view = definitions.by_id[id_]
        if isinstance(outcome, FencedError | WarehouseError) or not isinstance(outcome, Exception | Refreshed | None):
            raise outcome  # no fault of the view's: the epoch is tried again
        if isinstance(outcome, Exception):
            if isinstance(outcome, OSError) or getattr(outcome, "sqlstate", None) == LOST_SPARK:
                raise outcome
            if not isinstance(outcome, StepwellError) or is_bug(outcome):
                raise _internal(definitions, view, epoch, outcome) from outcome
            # what the user's data or functions raise fails a view alone: its parents and all others go on
            if isinstance(outcome, DataFileError):
                name_relation(runtime, outcome)
            where = outcome.fragment
            reason = f'{outcome.message.rstrip(".")}, in "{where}"' if where else outcome.message
            stop(id_, failed(known[id_], reason))
            runtime.notes.append(f'view "{view.name}" has failed: {reason}')
        elif outcome is not None:
            result.add(outcome)
            if outcome.refresh is not None:
                runtime.costs.add(id_, outcome.refresh)
            for relation, new in outcome.files.items():
                workspace.add_delta(relation, new)
        failpoint("maintain.view")

    parents = {id_: definitions.order.parents(id_) for id_ in tasks}
    priorities = {id_: definitions.by_id[id_].view.priority for id_ in tasks}
    run_in_order(runtime.workers.threads, runtime.workers.most, list(tasks), parents, priorities, begin, end)
    running = [id_ for id_ in (*definitions.timed, *definitions.periodic) if id_ in known and id_ not in stopped]
    result.marks = marks.settled(dict.fromkeys(running), result.emitted)
    return result


def _internal(definitions: Definitions, view: Relation, epoch: Epoch, error: Exception) -> InternalError:
    """What to say, with all that is needed to report it, where an epoch shows that a rule is wrong."""
    owner = next(
        (each for each in definitions.by_id.values() if each.definition.view and view.id in each.view.blocks), view
    )
    return InternalError(
        f'stepwell is wrong about view "{owner.name}": {getattr(error, "message", None) or repr(error)}',
        detail=f"In epoch {epoch}, relation {view.id}. Its query is: {owner.view.text.strip()}",
        hint=f"Please report this. ALTER MATERIALIZED VIEW {owner.name} PAUSE lets everything else go on.",
    )


def _require_functions(runtime: Runtime, view: Relation) -> None:
    wrong = unlike(view.view.functions, runtime.spark.functions)
    if wrong is not None:
        raise StepwellError(wrong, hint="Register it with Database.function, and RESUME the view.", sqlstate="42883")


def _is_lost(workspace: Workspace, ledger: Relation | None) -> bool:
    """Whether what came too late for a view cannot be read any more."""
    known = () if ledger is None else workspace.before(ledger.id).files
    return bool(all_damages(workspace.runtime.warehouse, known, deep=True))


def refresh_view(workspace: Workspace, ready: Prepared, task: ViewTask, epoch: Epoch) -> Refreshed | None:
    """What a task of the plan makes of its view."""
    started, started_at = time.perf_counter(), workspace.runtime.clock.now()
    definitions, marks, limits = ready.definitions, ready.marks, workspace.runtime.limits
    view, block, life = definitions.by_id[task.view], definitions.blocks[task.view], ready.lives[task.view]
    inputs = dict.fromkeys(RelationId(each.relation) for each in view.view.inputs)
    outcome = Outcome(view.id, life, Serving(epoch))
    resumed = task.work == Work.CATCH_UP
    if resumed:
        assert isinstance(life, Serving)
        workspace = workspace.since(life.reflects, inputs)
    changed = [id_ for id_ in inputs if workspace.delta(id_)]
    step = task.step
    if step is None:
        if not changed and view.view.live is None:
            return Refreshed({}, None, outcome) if resumed else None
        changes: dict[int, Change] = {id_: workspace.change(id_) for id_ in changed}
        now = dataclasses.replace(ready.known, extents=Extents(workspace))
        step = settled(block, task.choice, facts_of(view, block, changes, now))
    workspace.runtime.refolding.refreshed(view.id)
    repair = task.work == Work.REWRITE
    emitting = None
    if view.view.live is not None:
        emitting = emission_of(workspace, definitions, view, marks, step.rule)
        if emitting is None:
            return Refreshed({}, None, outcome) if resumed else None
        workspace, step = emitting.workspace, Step(step.rule if step.rule in ANEW else Rule.EMIT, emitting.why)
    tracker = workspace.runtime.spark.begin_group(f"stepwell-{epoch}-{view.id}", f"{step.rule.value}: {view.name}")
    state = definitions.state_of(view)
    replaced = ({view.id} | ({state.id} if state else set())) if repair else set()
    ledger = definitions.ledger_of(view)
    anew = step.rule in ANEW and not follows(life) and (not repair or _is_lost(workspace, ledger))
    if ledger is not None and anew:
        replaced.add(ledger.id)  # what was late is no longer known, so all that is there counts
    workspace.forget(replaced)
    refresher = Refresher(workspace, view, state, block, frozenset(changed), definitions.sources)
    count = None
    made: dict[RelationId, list[NewFile]] = {}
    if ledger is not None:
        incoming = NEVER if anew else marks.record(view.id).incoming
        made[ledger.id] = refresher.judge(ledger, incoming, definitions.by_id, epoch)
        count = refresher.late_count(epoch)
    made.update(refresher.run(step) if emitting is None else refresher.emit(emitting.program, step))
    if refresher.was_refolded and step.loses:  # the next ones are likely to fare the same
        workspace.runtime.refolding.failed(view.id, limits.refold_back_off)
    rows_there = sum(workspace.after(id_).count for id_ in inputs)
    counts = total(made.get(view.id, []))
    refresh = Refresh(
        epoch,
        view.id,
        step.rule.value,
        str(step),
        sum(workspace.change(id_).rows for id_ in changed),
        counts.inserted,
        counts.retracted,
        workspace.bytes,
        tracker(),
        round((time.perf_counter() - started) * 1_000_000),
        started_at,
        rows_there,
        step.expected.recompute if step.rule == Rule.RECOMPUTE else step.expected.update,
        step.expected.recompute,
    )
    emitted = epoch if emitting is not None and emitting.shows_all else None
    return Refreshed(made, refresh, outcome, frozenset(replaced), count, emitted)

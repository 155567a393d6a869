"""Maintenance: an epoch goes through the graph, parents before children.

Each view whose inputs have changed is brought up to date by the rule that its plan chooses. Its change is written once
and is then what its children read; nothing of it counts before the epoch is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from stepwell.algebra.nodes import Moment
from stepwell.catalog import views
from stepwell.engine.definitions import Definitions, load
from stepwell.engine.failures import LOST_SPARK, is_bug, is_too_large, translated
from stepwell.engine.maintain import cutting
from stepwell.engine.maintain.cutting import Cutter
from stepwell.engine.maintain.emission import emission_of
from stepwell.engine.maintain.event_time import Marks, advance
from stepwell.engine.maintain.keys import Keys, ranges_of
from stepwell.engine.maintain.lateness import LEDGER, Lateness
from stepwell.engine.maintain.workspace import KEPT, OWN, Workspace
from stepwell.engine.runtime import WORKERS, Runtime
from stepwell.engine.workers import run_in_order
from stepwell.engine.write.results import SMALL_BYTES, write_frame
from stepwell.model.epochs import Epoch
from stepwell.model.errors import FencedError, InternalError, StepwellError, WarehouseError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION, DataFile, NewFile, Store, total
from stepwell.model.functions import unlike
from stepwell.model.relations import Column, Relation
from stepwell.model.types import DOUBLE, FLOAT, STRING, DataType, parse_type, quote
from stepwell.model.views import (
    REPAIR,
    RESUMED,
    UNBUILT,
    EmitMode,
    Outcome,
    Refresh,
    RelationId,
    ViewRecord,
    ViewState,
    held,
)
from stepwell.model.watermarks import NEVER, LateCount, MarkRecord
from stepwell.plan.aggregates import REFOLD
from stepwell.plan.blocks import Block, GroupBlock, RowBlock, WholeBlock, WindowBlock
from stepwell.plan.costs import Cost, Costs
from stepwell.plan.cuts import Change
from stepwell.plan.fingerprints import fingerprint
from stepwell.plan.groups import IN_ROWS, IN_STATE, STATE_VERSION, Folding, direct, folding_of, grouped_rows
from stepwell.plan.lateness import SIGN
from stepwell.plan.read_volume import reading_of
from stepwell.plan.render import (
    delta_sql,
    difference,
    keys_of,
    netted,
    rows_sql,
    same_keys,
    typed,
    versioned,
    windows_sql,
)
from stepwell.plan.steps import ANEW, Rule, Step, plan_step
from stepwell.plan.wording import users_words
from stepwell.rules.deltas import is_netted, only_adds
from stepwell.storage import write_batch

LARGE_STATE = 4 * 2**20
"""A state of more bytes than this is read by the range of the keys that have changed, which takes a job to know."""

PATIENCE = 8
"""So many times a view whose groups had lost their best rows recomputes such groups before it hopes again."""

PARTIAL, TOUCHED = "_sw_partial", "_sw_touched"


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
            self.emitted[RelationId(done.outcome.was.relation)] = done.emitted


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


def maintain(runtime: Runtime, epoch: Epoch, deltas: Mapping[RelationId, Sequence[DataFile]]) -> Maintained:
    """Bring every view up to date with `deltas`, what the epoch did to the tables.

    A view begins when all that it reads is done; those that are ready run beside each other, on a few workers.
    """
    result = Maintained()
    definitions = load(runtime)
    with runtime.catalog.read() as tx:
        records = views.get_all(tx)
    waiting = [
        id_
        for id_, record in records.items()
        if record.state == ViewState.RUNNING and record.reflects < 0 and _exists(definitions, id_, epoch)
    ]
    stopped = {id_: record for id_, record in records.items() if record.state != ViewState.RUNNING}
    marks = advance(runtime, definitions, deltas, frozenset(stopped))
    moved = [id_ for id_ in deltas if id_ in definitions.order]
    waiting += [id_ for id_, each in definitions.by_id.items() if _emits(each, marks) and id_ not in stopped]
    affected = {*waiting, *definitions.order.downstream([*moved, *waiting])}
    result.marks = marks.settled((), {})
    if not affected and not any(marks.moves(id_) for id_ in definitions.timed):
        return result
    workspace = Workspace(runtime, definitions.by_id, Epoch(epoch - 1), deltas)
    chosen = [
        id_
        for id_ in definitions.order.in_order(affected)
        if definitions.by_id[id_].is_maintained and id_ not in stopped and _exists(definitions, id_, epoch)
    ]

    def fails(id_: RelationId, state: ViewState, reason: str) -> None:
        stopped[id_] = ViewRecord(id_, state, held(records[id_].reflects), reason)
        result.outcomes.append(Outcome(records[id_], stopped[id_]))

    def begin(id_: RelationId) -> Callable[[int], Refreshed | None] | None:
        """What there is to do for a view whose parents are done; nothing if one of them does not run."""
        behind = [parent for parent in definitions.order.parents(id_) if parent in stopped]
        if behind:
            state, reason = ViewState.PAUSED, f'"{definitions.name(behind[0])}" does not run'
            if definitions.by_id[behind[0]].is_hidden:  # a view fares as its part
                state, reason = stopped[behind[0]].state, stopped[behind[0]].reason or reason
            fails(id_, state, reason)
            return None
        view = definitions.by_id[id_]

        def work(worker: int) -> Refreshed | None:
            with runtime.doing(f'maintaining view "{view.name}"'), translated():
                _require_functions(runtime, view)
                return _refresh(workspace.beside(worker), definitions, view, records[id_], epoch, marks)

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
            where = users_words(definitions.blocks[id_], outcome.fragment) if outcome.fragment else None
            reason = f'{outcome.message.rstrip(".")}, in "{where}"' if where else outcome.message
            fails(id_, ViewState.ERROR, reason)
            runtime.notes.append(f'view "{view.name}" has failed: {reason}')
        elif outcome is not None:
            result.add(outcome)
            known = _costs(runtime)
            if outcome.refresh is not None:
                known[id_] = _with_cost(known.get(id_, Costs()), outcome.refresh)
            for relation, new in outcome.files.items():
                workspace.add_delta(relation, new)
        failpoint("maintain.view")

    parents = {id_: definitions.order.parents(id_) for id_ in chosen}
    priorities = {id_: definitions.by_id[id_].view.priority for id_ in chosen}
    run_in_order(runtime.workers, WORKERS, chosen, parents, priorities, begin, end)
    running = [id_ for id_ in (*definitions.timed, *definitions.periodic) if id_ in records and id_ not in stopped]
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


def _emits(view: Relation, marks: Marks) -> bool:
    """Whether a view that shows less than is known of it may have more to show, whatever its parents do."""
    if view.definition.view is None or view.view.live is None:
        return False
    is_due = view.view.emission.mode == EmitMode.PERIODICALLY and marks.is_due(view)
    return marks.moves(view.id) or is_due


def _exists(definitions: Definitions, id_: RelationId, epoch: Epoch) -> bool:
    """Whether a view is there at an epoch; one that was created since is built by a later one."""
    return id_ in definitions.by_id and definitions.by_id[id_].created_epoch <= epoch


def _costs(runtime: Runtime) -> dict[RelationId, Costs]:
    """What the views have cost, from the record; kept in memory, where every refresh is added."""
    if "costs" not in runtime.cache:
        with runtime.catalog.read() as tx:
            last = views.last_by_rule(tx, [rule.value for rule in Rule])
        found: dict[RelationId, Costs] = {}
        for id_, by_rule in last.items():
            for refresh in sorted(by_rule.values(), key=lambda each: each.epoch):
                found[id_] = _with_cost(found.get(id_, Costs()), refresh)
        runtime.cache["costs"] = found
    known: dict[RelationId, Costs] = runtime.cache["costs"]
    return known


def _with_cost(costs: Costs, refresh: Refresh) -> Costs:
    if refresh.rule in (Rule.BUILD.value, Rule.RECOMPUTE.value):
        return costs.recomputed(Cost(refresh.rows_there, refresh.microseconds))
    return costs.updated(Cost(refresh.rows_in, refresh.microseconds))


def _require_functions(runtime: Runtime, view: Relation) -> None:
    wrong = unlike(view.view.functions, runtime.spark.functions)
    if wrong is not None:
        raise StepwellError(wrong, hint="Register it with Database.function, and RESUME the view.", sqlstate="42883")


def _refresh(
    workspace: Workspace, definitions: Definitions, view: Relation, record: ViewRecord, epoch: Epoch, marks: Marks
) -> Refreshed | None:
    started, started_at = time.perf_counter(), workspace.runtime.clock.now()
    block = definitions.blocks[view.id]
    inputs = dict.fromkeys(RelationId(each.relation) for each in view.view.inputs)
    outcome = Outcome(record, ViewRecord(view.id, ViewState.RUNNING, epoch, None))
    costs = _costs(workspace.runtime).get(view.id, Costs())
    resumed = record.reflects < 0 and record.reason == RESUMED and workspace.keeps(held(record.reflects))
    if resumed:
        workspace = workspace.since(Epoch(held(record.reflects)), inputs)
    changed = [RelationId(id_) for id_ in dict.fromkeys(i.relation for i in view.view.inputs) if workspace.delta(id_)]
    repair = record.reflects < 0 and record.reason == REPAIR
    if record.reflects == UNBUILT or repair:
        step = Step(Rule.BUILD, "repair" if repair else None)
    elif record.reflects < 0 and not resumed:
        step = Step(Rule.RECOMPUTE, "it was stopped or replaced", apart=True)
    elif not changed and view.view.live is None:
        return Refreshed({}, None, outcome) if resumed else None
    else:
        rows_there = sum(workspace.after(id_).count for id_ in inputs)
        changes: dict[int, Change] = {id_: workspace.change(id_) for id_ in changed}
        expected = costs.expect(sum(change.rows for change in changes.values()), rows_there)
        hopes = workspace.runtime.cache.setdefault("hopes", {})
        reading = reading_of(block, cutting.sizes_of(workspace, view), _stored(workspace, definitions, view))
        step = plan_step(block, view.view.policy, changes, expected, reading, hopeful=hopes.get(view.id, 0) <= 0)
        hopes[view.id] = hopes.get(view.id, 0) - 1
    emitting = None
    if view.view.live is not None:
        emitting = emission_of(workspace, definitions, view, marks, step.rule)
        if emitting is None:
            return Refreshed({}, None, outcome) if resumed else None
        workspace, step = emitting.workspace, Step(step.rule if step.rule in ANEW else Rule.EMIT, emitting.why)
    tracker = workspace.runtime.spark.begin_group(f"stepwell-{epoch}-{view.id}", f"{step.rule.value}: {view.name}")
    state = definitions.state_of(view)
    replaced = ({view.id} | ({state.id} if state else set())) if repair else set()
    ledger, anew = definitions.ledger_of(view), step.rule in ANEW and not repair and bool(record.reflects < 0)
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
    made.update(refresher.run(step) if emitting is None else refresher.emit(emitting.text, step))
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


def _stored(workspace: Workspace, definitions: Definitions, view: Relation) -> int:
    """Bytes that are kept of a view, with its state."""
    state = definitions.state_of(view)
    return workspace.before(view.id).bytes + (workspace.before(state.id).bytes if state is not None else 0)


class Refresher:
    """One view in one epoch: SQL by the rule, files by the size of what comes out."""

    def __init__(
        self,
        workspace: Workspace,
        view: Relation,
        state: Relation | None,
        block: Block,
        changed: frozenset[RelationId],
        sources: frozenset[RelationId] = frozenset(),
    ) -> None:
        """`sources` are the relations whose plain files hold nothing but rows that never were before."""
        self._workspace = workspace
        self._sources = sources
        self._runtime = workspace.runtime
        self._view = view
        self._state = state
        self._block = block
        self._changed = changed
        self._wanted: Keys | None = None
        self._keys: str | None = None
        self._touched: pa.Table | None = None
        self._cutter = Cutter(workspace, view, changed)
        self._late: Lateness | None = None
        self._late_rows = (0, 0)
        self._folding: Folding | None = folding_of(block) if isinstance(block, GroupBlock) else None

    def run(self, step: Step) -> dict[RelationId, list[NewFile]]:
        """The files of the change; those of the state with those of the view."""
        if self._folding is not None and self._state is not None:
            return self._fold(step)
        text, fresh = self._text(step)
        frame = self._sql(text)
        return {self._view.id: self._write(self._view, frame, step, fresh=fresh)}

    def emit(self, text: str, step: Step) -> dict[RelationId, list[NewFile]]:
        """The files of what a view shows of all that is known of it."""
        return {self._view.id: self._write(self._view, self._sql(text), step, fresh=step.rule == Rule.BUILD)}

    # -- what comes too late ------------------------------------------------------------------------------------------

    def judge(
        self, ledger: Relation, incoming: int, inputs: Mapping[RelationId, Relation], epoch: Epoch
    ) -> list[NewFile]:
        """Keep the rows of the change out that come too late; the files of the ledger that takes them up."""
        assert self._view.view.judge is not None
        late = Lateness(
            self._workspace, self._view, self._view.view.judge, ledger, self._block, self._changed, incoming, inputs
        )
        self._late = late
        if not late.is_possible:
            return []
        frame = self._sql(late.entries(epoch))
        batch = self._small(frame)
        if batch is None:
            made = write_frame(self._runtime, ledger, Store.ROWS, frame, signed=False)
            late.remember(frame)
            came = frame.where(f"{SIGN} > 0").count()
            self._late_rows = came, frame.count() - came
            return made
        if not batch.num_rows:
            return []
        late.remember(batch)
        came = sum(sign > 0 for sign in batch.column(SIGN).to_pylist())
        self._late_rows = came, batch.num_rows - came
        return self._write_batch(ledger, batch, fresh=None)

    def late_count(self, epoch: Epoch) -> LateCount | None:
        """How many rows of the change came too late."""
        return LateCount(self._view.id, epoch, *self._late_rows) if any(self._late_rows) else None

    def _delta(self, rows: RowBlock) -> str:
        """What has come and gone, as far as it counts; a row may be there with both signs."""
        text = self._cutter.delta(rows)
        return self._late.kept(text) if self._late is not None else text

    def _netted(self, rows: RowBlock) -> str:
        """What has come and gone, as far as it counts, each row once."""
        text = self._delta(rows)
        return text if self._only_brings and is_netted(rows.tree, self._changed) else netted(rows, text)

    @property
    def _only_brings(self) -> bool:
        """Whether the change is of sources, and takes none of their rows away."""
        return self._changed <= self._sources and all(
            file.store == Store.ROWS for id_ in self._changed for file in self._workspace.delta(id_)
        )

    def _there(self, rows: RowBlock, moment: Moment) -> str:
        """The rows before the epoch or after it, as far as they count."""
        return self._counted(rows_sql(rows, moment), moment)

    def _counted(self, text: str, moment: Moment) -> str:
        return self._late.counted(text, moment) if self._late is not None else text

    # -- the text of a change -----------------------------------------------------------------------------------------

    def _text(self, step: Step) -> tuple[str, bool]:
        block, columns = self._block, self._view.columns
        if step.rule == Rule.BUILD:
            names = ", ".join([*(quote(column.name) for column in columns), ROW_ID, ROW_VERSION])
            return f"SELECT {names}, 1L AS {DIFF} FROM ({self.whole()})", True
        if step.rule == Rule.RECOMPUTE:
            return difference(columns, self.whole(), f"SELECT * FROM {OWN}"), False
        if isinstance(block, GroupBlock):
            return self._touched_groups(block), False
        if isinstance(block, WindowBlock):
            return self._touched_partitions(block), False
        assert not isinstance(block, WholeBlock)
        fresh = self._only_brings and only_adds(block.tree, self._changed)
        return delta_sql(columns, self._delta(block), fresh=fresh), fresh

    def whole(self, moment: Moment = Moment.AFTER) -> str:
        """All rows of the view as its query gives them, with their identities and versions."""
        block, columns = self._block, self._view.columns
        match block:
            case WholeBlock(text):
                return versioned(columns, by_value(self._view, text))
            case GroupBlock():
                rows = grouped_rows(block, self._there(block.rows, moment), signed=False)
                return versioned(columns, direct(block, rows, columns))
            case WindowBlock():
                text = windows_sql(block, self._there(block.rows, moment), moved=None)
                return versioned(columns, typed(columns, text, ROW_ID))
            case RowBlock():
                return versioned(columns, typed(columns, self._there(block, moment), ROW_ID))

    def _touched_groups(self, group: GroupBlock) -> str:
        """Groups without a state: as they are now, less as they are stored."""
        columns = self._view.columns
        if not group.keys:
            return difference(columns, self.whole(), f"SELECT * FROM {OWN}")
        new = versioned(columns, direct(group, self._rows_touched(group), columns))
        identity = fingerprint([(key, parse_type(t)) for key, t in zip(keys_of(group), group.key_types, strict=True)])
        touched = f"SELECT {identity} AS {ROW_ID} FROM ({self._keys_touched(group)})"
        old = f"SELECT o.* FROM {OWN} AS o LEFT SEMI JOIN ({touched}) AS k ON o.{ROW_ID} = k.{ROW_ID}"
        return difference(columns, new, old)

    def _touched_partitions(self, block: WindowBlock) -> str:
        """The partitions that a change has touched: as they are now, less what is stored of the rows they had."""
        keys, columns = self._keys_touched(block), self._view.columns
        now, then = (self._meeting(block, moment) for moment in (Moment.AFTER, Moment.BEFORE))
        new = versioned(columns, typed(columns, windows_sql(block, now, moved=keys), ROW_ID))
        had = f"SELECT r.{ROW_ID} FROM ({then}) AS r LEFT SEMI JOIN ({keys}) AS k ON {same_keys(block, 'r', 'k')}"
        old = f"SELECT o.* FROM {OWN} AS o LEFT SEMI JOIN ({had}) AS h ON o.{ROW_ID} = h.{ROW_ID}"
        return difference(columns, new, old)

    def _keys_touched(self, block: GroupBlock | WindowBlock) -> str:
        """The keys of a change; where much is read for them, computed once."""
        if self._keys is not None:
            return self._keys
        rows = self._delta(block.rows)
        rows = grouped_rows(block, rows, signed=True) if isinstance(block, GroupBlock) else rows
        text = f"SELECT DISTINCT {', '.join(keys_of(block))} FROM ({rows})"
        if self._is_large() and (batch := self._small(self._sql(text))) is not None:
            self._workspace.offer(TOUCHED, batch)
            text = f"SELECT * FROM {TOUCHED}"
            self._touched = batch
        self._keys = text
        return text

    def _meeting(self, block: GroupBlock | WindowBlock, moment: Moment) -> str:
        """Rows that hold all of the touched keys; where these are at hand, few others."""
        if self._touched is None:
            return self._there(block.rows, moment)
        return self._counted(self._cutter.touched(block.rows, moment, TOUCHED, self._touched), moment)

    def _is_large(self) -> bool:
        """Whether so much is stored of what the view reads that it pays to look before reading it."""
        inputs = {each.relation for each in self._view.view.inputs}
        return any(self._workspace.before(id_).bytes > cutting.LARGE for id_ in inputs)

    def _rows_touched(self, group: GroupBlock) -> str:
        """The rows that are there now of every group that a change has touched."""
        if not group.keys:
            return grouped_rows(group, self._there(group.rows, Moment.AFTER), signed=False)
        keys = self._keys_touched(group)
        rows = grouped_rows(group, self._meeting(group, Moment.AFTER), signed=False)
        return f"SELECT r.* FROM ({rows}) AS r LEFT SEMI JOIN ({keys}) AS k ON {same_keys(group, 'r', 'k')}"

    # -- groups with a state ------------------------------------------------------------------------------------------

    def _fold(self, step: Step) -> dict[RelationId, list[NewFile]]:
        assert self._folding is not None
        if step.apart:
            rows = self._write(self._view, self._sql(self._text(step)[0]), step, fresh=False)
            return {**self._fold_states(step), self._view.id: rows}
        return self._fold_states(step)

    def _fold_states(self, step: Step) -> dict[RelationId, list[NewFile]]:
        try:
            return self._write_fold(self._sql(self._fold_text(step, careful=False)), step)
        except (PySparkException, Py4JJavaError) as error:
            if REFOLD not in str(error):
                raise
        if step.losing:  # the next ones are likely to fare the same
            self._runtime.cache["hopes"][self._view.id] = PATIENCE
        rule = step.rule if step.rule in (Rule.BUILD, Rule.RECOMPUTE) else Rule.TOUCHED_GROUPS
        return self._write_fold(self._sql(self._fold_text(Step(rule), careful=True)), step)

    def _fold_text(self, step: Step, *, careful: bool) -> str:
        folding, group = self._folding, self._block
        assert folding is not None
        assert isinstance(group, GroupBlock)
        match step.rule:
            case Rule.FOLD:
                delta = self._delta(group.rows) if folding.is_invertible else self._netted(group.rows)
                rows = grouped_rows(group, delta, signed=True)
                partial = folding.partial(rows, careful=False, losing=step.losing)
                pairs = folding.merged(self._bounded(folding, partial, step), KEPT, losing=step.losing)
            case Rule.TOUCHED_GROUPS:
                touched = self._keys_touched(group) if group.keys else "SELECT 1"
                pairs = folding.replaced(folding.partial(self._rows_touched(group), careful=careful), KEPT, touched)
            case _:
                rows = grouped_rows(group, self._there(group.rows, Moment.AFTER), signed=False)
                partial = folding.partial(rows, careful=careful)
                is_new = self._state is not None and self._is_new(self._state)
                pairs = folding.first(partial) if is_new else folding.replaced(partial, KEPT, None)
        return folding.finished(pairs, self._view.columns, checked=not careful)

    def _bounded(self, folding: Folding, partial: str, step: Step) -> str:
        """The states of a change; over a large store computed at once, so that their keys bound what is read of it."""
        assert self._state is not None
        if not folding.group.keys or self._workspace.before(self._state.id).bytes <= LARGE_STATE:
            return partial
        batch = self._collected(self._sql(partial), step)
        if batch is None:
            return partial
        self._workspace.offer(PARTIAL, batch)
        names = self._state.key
        nulls = any(batch.column(name).null_count for name in names)
        partial_states = self._workspace.session.table(PARTIAL)
        self._wanted = Keys(partial_states, names, names, ranges_of(batch, self._state.key[0]), nulls)
        return f"SELECT * FROM {PARTIAL}"

    def _write_fold(self, frame: DataFrame, step: Step) -> dict[RelationId, list[NewFile]]:
        """One result, two changes: of the state and of the view; recomputed, the view has its own."""
        assert self._state is not None
        parts = [(self._state, IN_STATE, STATE_VERSION)]
        if not step.apart:
            parts.append((self._view, IN_ROWS, ROW_VERSION))
        made: dict[RelationId, list[NewFile]] = {}
        batch = self._collected(frame, step)
        frame = frame if batch is not None else frame.persist(StorageLevel.DISK_ONLY)
        try:
            for relation, flag, version in parts:
                names = [*(column.name for column in relation.columns), ROW_ID, version, DIFF]
                renamed = [ROW_VERSION if name == version else name for name in names]
                fresh = self._is_new(relation)
                if batch is not None:
                    chosen = batch.filter(batch.column(flag)).select(names).rename_columns(renamed)
                    made[relation.id] = self._write_batch(relation, chosen, fresh=fresh)
                else:
                    rows = frame.where(flag).select(*map(quote, names)).toDF(*renamed)
                    made[relation.id] = self._write_large(relation, rows, fresh=fresh)
        finally:
            if batch is None:
                frame.unpersist()
        return made

    # -- files --------------------------------------------------------------------------------------------------------

    def _sql(self, text: str) -> DataFrame:
        others = [(OWN, lambda: self._workspace.stored(self._view))]
        if self._state is not None:
            state = self._state
            others.append((KEPT, lambda: self._workspace.stored(state, self._wanted)))
        if self._late is not None:
            ledger = self._late.ledger
            others.append((LEDGER, lambda: self._workspace.stored(ledger)))
        return self._workspace.run(text, self._view, *others)

    def _is_new(self, relation: Relation) -> bool:
        """Whether nothing was ever stored, so that no version can have been there before."""
        return not self._workspace.before(relation.id).files

    def _write(self, relation: Relation, frame: DataFrame, step: Step, *, fresh: bool) -> list[NewFile]:
        batch = self._collected(frame, step)
        if batch is None:
            return self._write_large(relation, frame, fresh=fresh)
        return self._write_batch(relation, batch, fresh=fresh)

    def _collected(self, frame: DataFrame, step: Step) -> pa.Table | None:
        """The result, if it is small enough for the driver to hold."""
        workspace, inputs = self._workspace, [each.relation for each in self._view.view.inputs]
        if step.rule in (Rule.BUILD, Rule.RECOMPUTE):
            size = sum(workspace.after(id_).bytes for id_ in inputs)
        else:
            size = sum(file.statistics.bytes for id_ in inputs for file in workspace.delta(id_))
        return None if size > SMALL_BYTES else self._small(frame)

    def _small(self, frame: DataFrame) -> pa.Table | None:
        """The rows of a frame, unless they are too many for the driver."""
        try:
            return frame.toArrow()
        except (PySparkException, Py4JJavaError) as error:
            if not is_too_large(error):
                raise
            return None

    def _write_batch(self, relation: Relation, batch: pa.Table, *, fresh: bool | None) -> list[NewFile]:
        """The file of a small change; one that is `fresh` is nothing but new rows, None that they have no sign."""
        if not batch.num_rows:
            return []
        store = Store.CHANGES if fresh is False else Store.ROWS
        if fresh:
            batch = batch.drop_columns([DIFF])
        path = f"{self._runtime.attempt()}.parquet"
        return [write_batch(self._runtime.warehouse, relation, store, path, batch)]

    def _write_large(self, relation: Relation, frame: DataFrame, *, fresh: bool) -> list[NewFile]:
        if fresh:
            return write_frame(self._runtime, relation, Store.ROWS, frame.drop(DIFF), signed=False)
        return write_frame(self._runtime, relation, Store.CHANGES, frame, signed=True)


def by_value(view: Relation, text: str, *, rounded: bool = False) -> str:
    """The rows of a text that has no identities: each by what it is, and equal ones by counting them.

    `rounded` takes floating point numbers for equal that differ after nine digits only.
    """
    names = [quote(column.name) for column in view.columns]
    named = f"SELECT * FROM ({text}) AS _sw_w({', '.join(names)})" if names else f"SELECT 1 FROM ({text})"
    inner = typed(view.columns, named, *([] if names else ["1 AS _sw_one"]))
    value = fingerprint([_rounded(column) if rounded else (quote(column.name), column.type) for column in view.columns])
    numbered = f"SELECT *, {value} AS _sw_value FROM ({inner})"
    number = "row_number() OVER (PARTITION BY _sw_value ORDER BY _sw_value)"
    identity = f"xxhash64(_sw_value, {number}) AS {ROW_ID}"
    identified = f"SELECT {', '.join([*names, identity])} FROM ({numbered})"
    return f"SELECT *, {ROW_ID} AS {ROW_VERSION} FROM ({identified})"


def _rounded(column: Column) -> tuple[str, DataType]:
    name = quote(column.name)
    if column.type not in (FLOAT, DOUBLE):
        return name, column.type
    return f"CAST(CAST(format_string('%.8e', CAST({name} AS DOUBLE)) AS STRING) AS STRING)", STRING

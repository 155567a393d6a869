"""Refreshing: one view in one epoch. The program of its rule is run, and what comes out is written.

The steps of a program come first, each a small table that the rest reads; then one query gives all of its outputs, each
of which becomes a file: of the view, of its state, of its ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from stepwell.algebra.aggregates import REFOLD
from stepwell.algebra.nodes import Fresh, Node
from stepwell.engine.failures import translated
from stepwell.engine.maintain.by_value import by_value
from stepwell.engine.maintain.cutting import Cutter
from stepwell.engine.maintain.keys import Keys, ranges_of
from stepwell.engine.maintain.workspace import Reads, Workspace
from stepwell.engine.write.results import collect_small, write_batch_as, write_frame
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError
from stepwell.model.files import DIFF, NewFile, Store
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import RelationId
from stepwell.model.watermarks import NEVER, LateCount
from stepwell.plan.cuts import Cuts
from stepwell.plan.lateness import with_sources
from stepwell.plan.programs import FLAG, lowered, printed, programs_for, stored_name
from stepwell.plan.steps import ANEW, Step
from stepwell.plan.wording import users_words
from stepwell.rules.blocks import Block, WholeBlock, WindowBlock, rows_of
from stepwell.rules.lateness import SIGN, Ledger, entries
from stepwell.rules.programs import (
    LATE,
    LEDGER,
    OWN,
    PARTIAL,
    STATE,
    WHOLE,
    ComputedStep,
    Occasion,
    Output,
    Program,
    Target,
)
from stepwell.rules.recompute import build
from stepwell.storage import small_frame, time_reach

Files = dict[RelationId, list[NewFile]]


class Refresher:
    """One view in one epoch: programs by the rule, files by the size of what comes out."""

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
        self._cutter = Cutter(workspace, view, changed)
        self._judge: Ledger | None = None
        self._ledger: Relation | None = None
        self._late_rows = (0, 0)
        self._tree: Node | None = None
        """What was run last, to tell what an error is about."""
        self.was_refolded = False
        """Whether a fold has met rows that it could not take back, or values that it could not add."""

    def run(self, step: Step) -> Files:
        """The files of the change; those of the state with those of the view."""
        with self._in_users_words():
            try:
                return self._run(step, exact=False)
            except (PySparkException, Py4JJavaError) as error:
                if REFOLD not in str(error):
                    raise
            self.was_refolded = True
            return self._run(step, exact=True)

    def emit(self, program: Program, step: Step) -> Files:
        """The files of what a view shows of all that is known of it."""
        with self._in_users_words():
            return self._written(program, step)

    def whole(self) -> Program:
        """All rows of the view as its query gives them."""
        return lowered(build(self._block, self.occasion()), self._block)

    def occasion(self) -> Occasion:
        """What a rule is told of this epoch and this view."""
        trees = [] if isinstance(self._block, WholeBlock) else [rows_of(self._block).tree]
        trees += [self._block.top] if isinstance(self._block, WindowBlock) else []
        fresh = Fresh(*trees)
        state = self._workspace.before(self._state.id) if self._state is not None else None
        return Occasion(
            self._view.columns,
            self._changed,
            fresh,
            Cuts(self._cutter.sizes, fresh, self._cutter.taken),
            self._judge,
            self._only_brings,
            self._is_large,
            state is not None and state.bytes > self._runtime.limits.whole_state_bytes,
            state is not None and bool(state.files),
        )

    def _run(self, step: Step, *, exact: bool) -> Files:
        made: Files = {}
        occasion = self.occasion()
        programs = programs_for(self._block, step, occasion, exact=exact)
        assert isinstance(occasion.cutting, Cuts)
        for each in occasion.cutting.steps:
            if isinstance(each, ComputedStep):
                self._compute(each)
            else:
                self._cutter.look(each)
        for program in programs:
            made.update(self._written(program, step))
        return made

    def _compute(self, step: ComputedStep) -> None:
        """Have a step ready under its name; partial states tell how far the state has to be read."""
        program = Program(step.tree, (Output(Target.ROWS, tuple(zip(step.tree.output, step.names, strict=True))),))
        frame = self._frame(lowered(program, self._block))
        batch = collect_small(frame, self._runtime.limits, reads=0)
        if batch is None:
            frame.createOrReplaceTempView(step.name)  # many after all: read where they are needed
            return
        self._workspace.offer(step.name, batch)
        self._cutter.remember(step.name, batch)
        if step.name == PARTIAL and self._state is not None:
            names = self._state.key
            nulls = any(batch.column(name).null_count for name in names)
            rows = self._workspace.session.table(PARTIAL)
            self._wanted = Keys(rows, names, names, ranges_of(batch, names[0], self._runtime.limits.key_ranges), nulls)

    @property
    def _only_brings(self) -> bool:
        """Whether the change is of sources, and takes none of their rows away."""
        return self._changed <= self._sources and all(
            file.store == Store.ROWS for id_ in self._changed for file in self._workspace.delta(id_)
        )

    @property
    def _is_large(self) -> bool:
        """Whether so much is stored of what the view reads that it pays to look before reading it."""
        inputs = {each.relation for each in self._view.view.inputs}
        return any(self._workspace.before(id_).bytes > self._runtime.limits.whole_relation_bytes for id_ in inputs)

    @contextmanager
    def _in_users_words(self) -> Iterator[None]:
        """An error that names a piece of our SQL names it as the user wrote it."""
        try:
            with translated():
                yield
        except StepwellError as error:
            if error.fragment:
                error.fragment = users_words(self._block, error.fragment, self._tree)
            raise

    # -- what comes too late ------------------------------------------------------------------------------------------

    def judge(
        self, ledger: Relation, incoming: int, inputs: Mapping[RelationId, Relation], epoch: Epoch
    ) -> list[NewFile]:
        """Keep the rows of the change out that come too late; the files of the ledger that takes them up."""
        judge = self._view.view.judge
        assert judge is not None
        bound = judge.final(incoming)
        has_old = bool(self._workspace.before(ledger.id).files)
        self._ledger = ledger
        self._judge = Ledger(judge.column, bound, has_old, has_new=False)
        if not self._changed or not self._can_be_late(incoming - judge.tolerance, inputs, bound):
            return []
        columns = {
            int(each.relation): {name: str(inputs[each.relation].column(name).type) for name in each.columns}
            for each in self._view.view.inputs
        }
        rows = rows_of(self._block)
        widened = with_sources(rows, judge.column, columns, window=judge.transfer.is_window)
        program = entries(ledger.columns, rows, widened, self._judge, self._changed, epoch)
        frame = self._frame(program)
        batch = collect_small(frame, self._runtime.limits, reads=0)
        if batch is None:
            made = write_frame(self._runtime, ledger, Store.ROWS, frame, signed=False)
            frame.createOrReplaceTempView(LATE)
            came = frame.where(f"{SIGN} > 0").count()
            self._late_rows = came, frame.count() - came
        elif not batch.num_rows:
            return []
        else:
            small_frame(self._workspace.session, batch, self._runtime.limits).createOrReplaceTempView(LATE)
            came = sum(sign > 0 for sign in batch.column(SIGN).to_pylist())
            self._late_rows = came, batch.num_rows - came
            made = write_batch_as(self._runtime, ledger, Store.ROWS, batch)
        self._judge = Ledger(judge.column, bound, has_old, has_new=True)
        return made

    def _can_be_late(self, before: int, inputs: Mapping[RelationId, Relation], bound: int) -> bool:
        """Whether a row of the change can be late at all, as far as the reach of its files tells."""
        if bound == NEVER:
            return False
        for id_ in self._changed:
            relation = inputs[id_]
            if relation.time_column is None:
                return True
            time = relation.column(relation.time_column).name
            reach = time_reach(self._runtime.warehouse, relation, self._workspace.delta(id_), time)
            if reach.low is not None and reach.low < before:
                return True
        return False

    def late_count(self, epoch: Epoch) -> LateCount | None:
        """How many rows of the change came too late."""
        return LateCount(self._view.id, epoch, *self._late_rows) if any(self._late_rows) else None

    # -- files --------------------------------------------------------------------------------------------------------

    def _frame(self, program: Program) -> DataFrame:
        """The rows of a lowered program."""
        return self._workspace.run(printed(program), self._view, Reads.of(program.tree), self.stored())

    def stored(self) -> dict[str, Callable[[], DataFrame]]:
        """What is stored of the view, and may be read under a name."""
        found: dict[str, Callable[[], DataFrame]] = {OWN: lambda: self._workspace.stored(self._view)}
        if (state := self._state) is not None:
            found[STATE] = lambda: self._workspace.stored(state, self._wanted)
        if (ledger := self._ledger) is not None:
            found[LEDGER] = lambda: self._workspace.stored(ledger)
        if isinstance(self._block, WholeBlock):
            text, reads = by_value(self._view, self._block.text), Reads.now(self._block.relations)
            found[WHOLE] = lambda: self._workspace.run(text, self._view, reads)
        return found

    def _written(self, program: Program, step: Step) -> Files:
        """Run a program: one query, a change for each of its outputs."""
        self._tree = program.tree
        program = lowered(program, self._block)
        frame = self._frame(program)
        batch = collect_small(frame, self._runtime.limits, reads=self._reads(step))
        if len(program.outputs) == 1:
            return {self._target(each).id: self._write(each, frame, batch) for each in program.outputs}
        frame = frame if batch is not None else frame.persist(StorageLevel.DISK_ONLY)
        made: Files = {}
        try:
            for each in program.outputs:
                flag, names = f"{FLAG}{each.target}", [name for _, name in each.columns]
                held = [stored_name(each, name) for name in names]
                chosen = frame.where(flag).select(*map(quote, held)).toDF(*names)
                part = batch
                if batch is not None:
                    part = batch.filter(batch.column(flag)).select(held).rename_columns(names)
                made[self._target(each).id] = self._write(each, chosen, part)
        finally:
            if batch is None:
                frame.unpersist()
        return made

    def _reads(self, step: Step) -> int:
        """How many bytes a step reads of what has changed, or of everything."""
        workspace, inputs = self._workspace, [each.relation for each in self._view.view.inputs]
        if step.rule in ANEW:
            return sum(workspace.after(id_).bytes for id_ in inputs)
        return sum(file.statistics.bytes for id_ in inputs for file in workspace.delta(id_))

    def _target(self, output: Output) -> Relation:
        relation = self._view if output.target == Target.ROWS else self._state
        assert relation is not None
        return relation

    def _write(self, output: Output, frame: DataFrame, batch: pa.Table | None) -> list[NewFile]:
        """The files of a change: plain rows if none of them can have been there before."""
        relation = self._target(output)
        is_new = output.fresh or (output.when is not None and not self._workspace.before(relation.id).files)
        if batch is not None:
            plain = batch.drop_columns([DIFF]) if is_new else batch
            return write_batch_as(self._runtime, relation, Store.ROWS if is_new else Store.CHANGES, plain)
        if is_new:
            return write_frame(self._runtime, relation, Store.ROWS, frame.drop(DIFF), signed=False)
        return write_frame(self._runtime, relation, Store.CHANGES, frame, signed=True)

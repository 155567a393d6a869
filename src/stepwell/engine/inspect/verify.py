"""Verification: a view against its query over its parents, row by row, whatever rule has maintained it.

What is kept beside the rows is compared too: the hidden parts of a view, and the states of its groups.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from stepwell.catalog import barriers, control, files, lives, watermarks
from stepwell.engine.definitions import Definitions, load_in
from stepwell.engine.failures import translated
from stepwell.engine.maintain.by_value import by_value, value_difference
from stepwell.engine.maintain.emission import showing
from stepwell.engine.maintain.refreshing import Refresher
from stepwell.engine.maintain.workspace import Reads, Workspace
from stepwell.engine.read.deferred import DeferredReads, Face, group_by_chunk, group_of, stale_labels
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError
from stepwell.model.files import DIFF, ROW_ID
from stepwell.model.intervals import ALWAYS, Intervals, without
from stepwell.model.lifecycle import Owed, Serving
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import EmitMode, Input, RelationId
from stepwell.model.watermarks import NEVER, MarkRecord
from stepwell.plan import content_at
from stepwell.plan.order_free import has_exact_results, is_order_free
from stepwell.plan.programs import printed
from stepwell.plan.state_check import partials_of, said_of, state_difference
from stepwell.rules.blocks import Block, GroupBlock, WholeBlock
from stepwell.rules.programs import OWN, STATE, Program

PENDING, EXPECTED = "_sw_pending", "_sw_expected"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found. `sample` are rows of the difference, each with its sign.

    `states` are groups, of the view and of its parts, whose state is not that of their rows; `said` tells of some.
    """

    epoch: int
    rows: int
    missing: int
    unexpected: int
    sample: tuple[tuple[object, ...], ...] = ()
    states: int = 0
    said: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        return not self.missing and not self.unexpected and not self.states


def verify(runtime: Runtime, view: Relation) -> Verdict:
    """Recompute a view from its parents at the epoch that it reflects, and compare."""
    if view.deferral is not None:
        return _verify_deferred(runtime, view)
    with runtime.catalog.read() as tx:
        life = lives.get_all(tx)[view.id]
    if not isinstance(life, Serving) or life.owed >= Owed.RECOMPUTE:
        raise StepwellError(
            f'{view.kind} "{view.name}" has no rows of its query yet', hint="FLUSH waits for it.", sqlstate="55000"
        )
    epoch = life.reflects
    with runtime.catalog.read() as tx:
        if epoch >= barriers.oldest(tx):
            definitions, marks = load_in(runtime, tx, epoch), watermarks.get_all_at(tx, epoch)
        else:  # a view that was stopped for longer than anything is kept
            definitions, marks = load_in(runtime, tx), watermarks.get_all(tx)
    view, mark = definitions.by_id[view.id], marks.get(view.id) or MarkRecord(view.id)
    with runtime.analyzing, translated():
        parts = (*(definitions.by_id[id_] for id_ in view.view.blocks if id_ not in definitions.outdated), view)
        verdicts = [_compare(runtime, definitions, each, epoch, mark) for each in parts]
        states = [_compare_state(runtime, definitions, each, epoch) for each in parts]
    return dataclasses.replace(
        verdicts[-1],
        missing=sum(each.missing for each in verdicts),
        unexpected=sum(each.unexpected for each in verdicts),
        states=sum(count for count, _ in states),
        said=tuple(line for _, said in states for line in said)[: runtime.limits.verify_sample],
    )


def _verify_deferred(runtime: Runtime, view: Relation) -> Verdict:
    """What is stored of a deferred view against its query, in all buckets that no log calls stale."""
    session = runtime.spark.under(())
    with runtime.catalog.read() as tx:
        epoch = control.look(tx).readable_epoch
        definitions = load_in(runtime, tx, epoch)
        fresh = without((ALWAYS,), stale_labels(tx, definitions, view, epoch))
        rows = content_at(files.content(tx, view.id, epoch), epoch).count
    reads = DeferredReads(runtime, session, epoch)
    stored, direct = f"{OWN}_{view.id}", f"{OWN}_{view.id}_direct"
    with runtime.analyzing, translated():
        reads.face(view, Face.STORED, fresh).createOrReplaceTempView(stored)
        reads.direct(view, fresh, nulls=False).createOrReplaceTempView(direct)
        names = ", ".join(quote(column.name) for column in view.columns)
        rounded = _is_rounded(group_of(view))
        new, old = (by_value(view, f"SELECT {names} FROM {each}", rounded=rounded) for each in (direct, stored))
        found = session.sql(value_difference(view, new, old)).persist()
        try:
            missing, unexpected = found.where(f"{DIFF} > 0").count(), found.where(f"{DIFF} < 0").count()
            sample = found.select(DIFF, *(quote(column.name) for column in view.columns))
            shown = sample.limit(runtime.limits.verify_sample).collect() if missing or unexpected else []
        finally:
            found.unpersist()
        states, said = (0, ()) if view.view.state is None else _compare_chunks(runtime, reads, view, fresh)
    return Verdict(epoch, rows, missing, unexpected, tuple(tuple(row) for row in shown), states, said)


def _compare_chunks(
    runtime: Runtime, reads: DeferredReads, view: Relation, fresh: Intervals
) -> tuple[int, tuple[str, ...]]:
    """How many partial results of a deferred view are not those of their rows, and a sample in words."""
    group, stored, computed = group_by_chunk(view), f"{STATE}_{view.id}", f"{STATE}_{view.id}_computed"
    reads.stored_states(view, fresh).createOrReplaceTempView(stored)
    reads.chunk_states(view, fresh, exact=True).createOrReplaceTempView(computed)
    return _different(runtime, group, reads.session.sql(state_difference(group, f"SELECT * FROM {computed}", stored)))


def _compare(runtime: Runtime, definitions: Definitions, view: Relation, epoch: Epoch, mark: MarkRecord) -> Verdict:
    workspace = Workspace(runtime, definitions.by_id, epoch, {}, runtime.spark.under(view.view.settings))
    block = definitions.blocks[view.id]
    rounded = _is_rounded(block)
    refresher = Refresher(workspace, view, definitions.state_of(view), block, frozenset())
    judged = view.view.live is not None or definitions.ledger_of(view) is not None
    if (
        not judged
        and view.view.bound
        and _is_plain(definitions, [view, *(definitions.by_id[id_] for id_ in view.view.blocks)])
    ):
        text, inputs = view.view.bound, _base(definitions, view)
        reads = Reads.now(each.relation for each in inputs)
        read = dataclasses.replace(view.definition, view=dataclasses.replace(view.view, inputs=inputs))
        reader = dataclasses.replace(view, definition=read)
    else:
        names = ", ".join(quote(column.name) for column in view.columns)
        ledger = definitions.ledger_of(view)
        if ledger is not None:
            refresher.judge(ledger, NEVER, definitions.by_id, epoch)
        whole = refresher.whole() if view.view.live is None else _shown(view, mark.mark)
        text, reads, reader = f"SELECT {names or '1'} FROM ({printed(whole)})", Reads.of(whole.tree), view
    stored = f"SELECT {', '.join(quote(column.name) for column in view.columns) or '1'} FROM {OWN}"
    own = refresher.stored()
    if view.view.emission.mode == EmitMode.PERIODICALLY:
        text, stored = _not_pending(view, workspace, mark, own)
    # by itself, as a user would run it: Spark sees nothing around the query that it could mix up with it
    expected = workspace.run(text, reader, reads.and_(PENDING), own).toDF(*_numbered(view)).persist()
    own[EXPECTED] = lambda: expected
    texts = (f"SELECT {', '.join(_renamed(view)) or '1'} FROM {EXPECTED}", stored)
    new, old = (by_value(view, each, rounded=rounded) for each in texts)
    found = workspace.run(value_difference(view, new, old), reader, Reads().and_(OWN, PENDING, EXPECTED), own).persist()
    try:
        counts = found.selectExpr(f"count_if({DIFF} > 0) AS missing", f"count_if({DIFF} < 0) AS unexpected").first()
        assert counts is not None
        shown = [quote(column.name) for column in view.columns]
        sample = (
            found.select(DIFF, *shown).limit(workspace.runtime.limits.verify_sample).collect() if any(counts) else []
        )
    finally:
        found.unpersist()
        expected.unpersist()
    return Verdict(epoch, workspace.before(view.id).count, counts[0], counts[1], tuple(tuple(row) for row in sample))


def _numbered(view: Relation) -> list[str]:
    """Names for the columns of a view's query, whose own may be what SQL cannot say twice."""
    return [f"_sw_x{index}" for index in range(len(view.columns))] or ["_sw_x0"]


def _renamed(view: Relation) -> list[str]:
    return [f"{name} AS {quote(column.name)}" for name, column in zip(_numbered(view), view.columns, strict=False)]


def _shown(view: Relation, mark: int | None) -> Program:
    """All rows that a view shows by the watermark that it stands at, or all that is known of it."""
    by_clock = view.view.emission.mode == EmitMode.PERIODICALLY
    return showing(view).first(None if by_clock else mark)


def _compare_state(
    runtime: Runtime, definitions: Definitions, view: Relation, epoch: Epoch
) -> tuple[int, tuple[str, ...]]:
    """How many groups of a view or of a part have another state than their rows come to, and a sample in words."""
    state, group = definitions.state_of(view), definitions.blocks[view.id]
    if state is None or not isinstance(group, GroupBlock):
        return 0, ()
    workspace = Workspace(runtime, definitions.by_id, epoch, {}, runtime.spark.under(view.view.settings))
    refresher = Refresher(workspace, view, state, group, frozenset())
    ledger = definitions.ledger_of(view)
    if ledger is not None:
        refresher.judge(ledger, NEVER, definitions.by_id, epoch)
    program = partials_of(group, refresher.occasion())
    text, reads = state_difference(group, printed(program), STATE), Reads.of(program.tree).and_(STATE)
    return _different(runtime, group, workspace.run(text, view, reads, refresher.stored()))


def _different(runtime: Runtime, group: GroupBlock, found: DataFrame) -> tuple[int, tuple[str, ...]]:
    found = found.persist()
    try:
        count = found.count()
        sample = found.limit(runtime.limits.verify_sample).collect() if count else []
    finally:
        found.unpersist()
    return count, tuple(said_of(group, row.asDict()) for row in sample)


def _not_pending(
    view: Relation, workspace: Workspace, mark: MarkRecord, own: dict[str, Callable[[], DataFrame]]
) -> tuple[str, str]:
    """What is known of a view and what it shows, but for what has changed since it last showed everything."""
    assert view.view.live is not None
    live = view.view.live
    missed = workspace.since(Epoch(mark.emitted_epoch or 0), [live])
    names = ", ".join(quote(column.name) for column in view.columns)
    known, stored = f"SELECT * FROM ({printed(_shown(view, None))})", f"SELECT * FROM {OWN}"
    if missed.delta(live):
        own[PENDING] = lambda: missed.changes(live).select(ROW_ID).distinct()
        but = f" LEFT ANTI JOIN {PENDING} AS p ON r.{ROW_ID} = p.{ROW_ID}"
        return f"SELECT {names} FROM ({known}) AS r{but}", f"SELECT {names} FROM ({stored}) AS r{but}"
    return f"SELECT {names} FROM ({known})", f"SELECT {names} FROM ({stored})"


def _base(definitions: Definitions, view: Relation) -> tuple[Input, ...]:
    """The relations behind a view and its hidden blocks."""
    found: dict[RelationId, Input] = {}
    for each in view.view.inputs:
        relation = definitions.by_id[each.relation]
        inner = _base(definitions, relation) if relation.is_hidden else (each,)
        for other in inner:
            found.setdefault(other.relation, other)
    return tuple(found.values())


def _is_plain(definitions: Definitions, parts: list[Relation]) -> bool:
    """Whether Spark gives the same rows for the text whatever the order in which it reads."""
    return all(is_order_free(definitions.blocks[RelationId(each.id)]) for each in parts)


def _is_rounded(block: Block) -> bool:
    """Whether floating point numbers in it may differ in their last digits."""
    if isinstance(block, WholeBlock):
        return True
    return isinstance(block, GroupBlock) and not has_exact_results(block)

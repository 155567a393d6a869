"""Verification: a view against its query over its parents, row by row, whatever rule has maintained it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from stepwell.catalog import views, watermarks
from stepwell.engine.definitions import Definitions, load, load_in
from stepwell.engine.failures import translated
from stepwell.engine.maintain.emission import shown_now
from stepwell.engine.maintain.lateness import LEDGER
from stepwell.engine.maintain.maintenance import Refresher, by_value
from stepwell.engine.maintain.workspace import OWN, Workspace
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError
from stepwell.model.files import DIFF, ROW_ID
from stepwell.model.relations import Relation
from stepwell.model.types import DOUBLE, FLOAT, parse_type, quote
from stepwell.model.views import REPAIR, EmitMode, Input, RelationId, ViewState, stale
from stepwell.model.watermarks import NEVER, MarkRecord
from stepwell.plan.blocks import Block, GroupBlock, WholeBlock, WindowBlock
from stepwell.plan.emission import shown
from stepwell.plan.render import difference

SAMPLE = 5
PENDING = "_sw_pending"

_EXACT = {
    "Count",
    "CountIf",
    "count_if",
    "Min",
    "Max",
    "BoolAnd",
    "BoolOr",
    "bool_and",
    "bool_or",
    "every",
    "some",
    "any",
}
_BY_STATE = _EXACT | {"Sum", "Average", "First", "Last", "AnyValue", "any_value", "MinBy", "MaxBy", "CollectList"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found. `sample` are rows of the difference, each with its sign."""

    epoch: int
    rows: int
    missing: int
    unexpected: int
    sample: tuple[tuple[object, ...], ...] = ()

    @property
    def is_ok(self) -> bool:
        return not self.missing and not self.unexpected


def verify(runtime: Runtime, view: Relation) -> Verdict:
    """Recompute a view from its parents at the epoch that it reflects, and compare."""
    definitions = load(runtime)
    with runtime.catalog.read() as tx:
        record, mark = views.get_all(tx)[view.id], watermarks.get_all(tx).get(view.id) or MarkRecord(view.id)
    if record.reflects < 0:
        raise StepwellError(f'{view.kind} "{view.name}" has no rows yet', hint="FLUSH waits for it.", sqlstate="55000")
    epoch = Epoch(record.reflects)
    with runtime.analyzing, translated():
        blocks = [definitions.by_id[id_] for id_ in view.view.blocks]
        in_parts = view.view.live is not None or any(each.view.judge for each in (view, *blocks))
        if not in_parts and (not blocks or _is_plain(definitions, [view, *blocks])):
            return _compare(runtime, definitions, view, epoch, mark)
        verdicts = [_compare(runtime, definitions, each, epoch, mark) for each in (*blocks, view)]
    last = verdicts[-1]
    return dataclasses.replace(
        last,
        missing=sum(each.missing for each in verdicts),
        unexpected=sum(each.unexpected for each in verdicts),
    )


def mark_for_repair(runtime: Runtime, view: Relation) -> None:
    """Let the next barrier write a view anew, and all that reads it find out what that changes."""
    with runtime.catalog.write() as tx:
        definitions = load_in(runtime, tx)
        records = views.get_all(tx)
        own = [view.id, *view.view.blocks]
        for id_ in [*own, *definitions.order.downstream(own)]:
            if id_ in records:  # one that is stopped cannot go by the changes either
                reason = REPAIR if id_ in own else None
                if records[id_].state != ViewState.RUNNING:
                    reason = records[id_].reason
                views.put(tx, [dataclasses.replace(records[id_], reflects=stale(records[id_].reflects), reason=reason)])


def _compare(runtime: Runtime, definitions: Definitions, view: Relation, epoch: Epoch, mark: MarkRecord) -> Verdict:
    workspace = Workspace(runtime, definitions.by_id, epoch, {}, runtime.spark.session)
    block = definitions.blocks[view.id]
    rounded = _is_rounded(block)
    own: list[tuple[str, Callable[[], DataFrame]]] = [(OWN, lambda: workspace.stored(view))]
    judged = view.view.live is not None or definitions.ledger_of(view) is not None
    if (
        not judged
        and view.view.bound
        and _is_plain(definitions, [view, *(definitions.by_id[id_] for id_ in view.view.blocks)])
    ):
        text = view.view.bound
        reader = dataclasses.replace(
            view,
            definition=dataclasses.replace(
                view.definition, view=dataclasses.replace(view.view, inputs=_base(definitions, view))
            ),
        )
    else:
        names = ", ".join(quote(column.name) for column in view.columns)
        refresher = Refresher(workspace, view, definitions.state_of(view), block, frozenset())
        ledger = definitions.ledger_of(view)
        if ledger is not None:
            refresher.judge(ledger, NEVER, definitions.by_id, epoch)
            own.append((LEDGER, lambda: workspace.stored(ledger)))
        whole = refresher.whole() if view.view.live is None else shown_now(view, mark.mark)
        text, reader = f"SELECT {names or '1'} FROM ({whole})", view
    stored = f"SELECT {', '.join(quote(column.name) for column in view.columns) or '1'} FROM {OWN}"
    if view.view.emission.mode == EmitMode.PERIODICALLY:
        text, stored = _not_pending(view, workspace, mark, own)
    new, old = by_value(view, text, rounded=rounded), by_value(view, stored, rounded=rounded)
    found = workspace.run(difference(view.columns, new, old), reader, *own).persist()
    try:
        counts = found.selectExpr(f"count_if({DIFF} > 0) AS missing", f"count_if({DIFF} < 0) AS unexpected").first()
        assert counts is not None
        shown = [quote(column.name) for column in view.columns]
        sample = found.select(DIFF, *shown).limit(SAMPLE).collect() if any(counts) else []
    finally:
        found.unpersist()
    return Verdict(epoch, workspace.before(view.id).count, counts[0], counts[1], tuple(tuple(row) for row in sample))


def _not_pending(
    view: Relation, workspace: Workspace, mark: MarkRecord, own: list[tuple[str, Callable[[], DataFrame]]]
) -> tuple[str, str]:
    """What is known of a view and what it shows, but for what has changed since it last showed everything."""
    assert view.view.live is not None
    live = view.view.live
    missed = workspace.since(Epoch(mark.emitted_epoch or 0), [live])
    names = ", ".join(quote(column.name) for column in view.columns)
    known, stored = f"SELECT * FROM ({shown(view.columns, live)})", f"SELECT * FROM {OWN}"
    if missed.delta(live):
        own.append((PENDING, lambda: missed.changes(live).select(ROW_ID).distinct()))
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
    return all(_has_no_order(definitions.blocks[RelationId(each.id)]) for each in parts)


def _has_no_order(block: Block) -> bool:
    if isinstance(block, WindowBlock):
        return not block.made_total
    if not isinstance(block, GroupBlock):
        return True
    for result in block.results:
        floats = any(parse_type(each) in (FLOAT, DOUBLE) for each in result.argument_types)
        if result.function not in _EXACT and (floats or result.function not in ("Sum", "Average")):
            return False
    return True


def _is_rounded(block: Block) -> bool:
    """Whether floating point numbers in it may differ in their last digits."""
    if isinstance(block, WholeBlock):
        return True
    return isinstance(block, GroupBlock) and any(each.function not in _BY_STATE for each in block.results)

"""Emission in an epoch: what a view shows of all that is known of it, by the watermark or by the clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stepwell.engine.definitions import Definitions
from stepwell.engine.maintain.event_time import Marks, is_before
from stepwell.engine.maintain.workspace import OWN, Workspace
from stepwell.model.epochs import Epoch
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION, DataFile
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import EmitMode
from stepwell.model.watermarks import NEVER
from stepwell.plan.emission import closed_change, closing_change, shown, whole_change
from stepwell.plan.render import difference
from stepwell.plan.steps import Rule
from stepwell.storage import time_reach


@dataclass(frozen=True, slots=True)
class Emitting:
    """The text of what a view shows anew, where to run it, and whether it then shows all that is known."""

    text: str
    workspace: Workspace
    why: str
    shows_all: bool = False


def emission_of(
    workspace: Workspace, definitions: Definitions, view: Relation, marks: Marks, rule: Rule
) -> Emitting | None:
    """What a view has to show in this epoch, or None."""
    assert view.view.live is not None
    if view.view.emission.mode == EmitMode.WATERMARK:
        return _after_watermark(workspace, view, marks, rule)
    return _periodically(workspace, definitions, view, marks, rule)


def shown_now(view: Relation, mark: int) -> str:
    """All rows that a view shows, by the watermark that it stands at; one that goes by the clock may show less."""
    assert view.view.live is not None
    if view.view.emission.mode == EmitMode.PERIODICALLY:
        return shown(view.columns, view.view.live)
    return shown(view.columns, view.view.live, _before(view, mark))


def _after_watermark(workspace: Workspace, view: Relation, marks: Marks, rule: Rule) -> Emitting | None:
    live = view.view.live
    assert live is not None
    old = marks.record(view.id).mark
    new = marks.after.get(view.id, old)
    if rule in (Rule.BUILD, Rule.RECOMPUTE):
        return Emitting(_anew(view, shown_now(view, new), rule), workspace, "the windows that have closed")
    corrected = _before(view, old) if _reaches(workspace, view, workspace.delta(live), NEVER, old) else None
    closing = None
    if _reaches(workspace, view, workspace.after(live).files, old, new):
        closing = f"{_before(view, new)} AND NOT {_before(view, old)}"
    if corrected is None and closing is None:
        return None
    why = "windows close" if closing is not None else "windows that have closed are corrected"
    return Emitting(closed_change(view.columns, live, corrected, closing), workspace, why)


def _periodically(
    workspace: Workspace, definitions: Definitions, view: Relation, marks: Marks, rule: Rule
) -> Emitting | None:
    live, record = view.view.live, marks.record(view.id)
    assert live is not None
    if rule in (Rule.BUILD, Rule.RECOMPUTE):
        return Emitting(_anew(view, shown(view.columns, live), rule), workspace, "all that is known", True)
    if marks.is_due(view):
        since = Epoch(record.emitted_epoch or 0)
        if not workspace.keeps(since):
            text = _anew(view, shown(view.columns, live), Rule.RECOMPUTE)
            return Emitting(text, workspace, "the changes since it last did are no longer kept", True)
        missed = workspace.since(since, [live])
        if not missed.delta(live):
            return None
        return Emitting(whole_change(view.columns, live, OWN), missed, "the interval is over", True)
    old, new = record.mark, marks.after.get(view.id, record.mark)
    if not _reaches(workspace, view, workspace.after(live).files, old, new):
        return None
    closing = f"{_before(view, new)} AND NOT {_before(view, old)}"
    return Emitting(closing_change(view.columns, live, OWN, closing), workspace, "windows close")


def _anew(view: Relation, rows: str, rule: Rule) -> str:
    if rule == Rule.RECOMPUTE:
        return difference(view.columns, rows, f"SELECT * FROM {OWN}")
    names = ", ".join([*(quote(column.name) for column in view.columns), ROW_ID, ROW_VERSION])
    return f"SELECT {names}, 1L AS {DIFF} FROM ({rows})"


def _before(view: Relation, mark: int) -> str:
    time = view.view.time_column
    assert time is not None
    column = view.column(time)
    return is_before(quote(column.name), column.type, mark)


def _reaches(workspace: Workspace, view: Relation, files: Iterable[DataFile], after: int, before: int) -> bool:
    """Whether some files can have rows in [after, before)."""
    time = view.view.time_column
    if time is None or after >= before:
        return False
    warehouse, column = workspace.runtime.warehouse, view.column(time).name
    reaches = [time_reach(warehouse, view, [file], column) for file in files]
    return any(
        each.low is not None and each.high is not None and each.low < before and each.high >= after for each in reaches
    )

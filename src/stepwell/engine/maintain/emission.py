"""Emission in an epoch: what a view shows of all that is known of it, by the watermark or by the clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stepwell.algebra.nodes import Fresh
from stepwell.engine.definitions import Definitions
from stepwell.engine.maintain.event_time import Marks
from stepwell.engine.maintain.workspace import Workspace
from stepwell.model.epochs import Epoch
from stepwell.model.files import DataFile
from stepwell.model.relations import Relation
from stepwell.model.views import EmitMode
from stepwell.model.watermarks import NEVER
from stepwell.plan.steps import ANEW, Rule
from stepwell.rules.emission import Showing
from stepwell.rules.programs import Occasion, Program
from stepwell.storage import time_reach


@dataclass(frozen=True, slots=True)
class Emitting:
    """The program of what a view shows anew, where to run it, and whether it then shows all that is known."""

    program: Program
    workspace: Workspace
    why: str
    shows_all: bool = False


def emission_of(
    workspace: Workspace, definitions: Definitions, view: Relation, marks: Marks, rule: Rule
) -> Emitting | None:
    """What a view has to show in this epoch, or None."""
    if view.view.emission.mode == EmitMode.WATERMARK:
        return _after_watermark(workspace, view, marks, rule)
    return _periodically(workspace, view, marks, rule)


def showing(view: Relation) -> Showing:
    """What a view shows of all that is known of it."""
    assert view.view.live is not None
    time = view.view.time_column
    place = None if time is None else view.columns.index(view.column(time))
    return Showing(Occasion(view.columns, frozenset(), Fresh()), view.view.live, place)


def _after_watermark(workspace: Workspace, view: Relation, marks: Marks, rule: Rule) -> Emitting | None:
    live = view.view.live
    assert live is not None
    old = marks.record(view.id).mark
    new = marks.after.get(view.id, old)
    if rule in ANEW:
        program = showing(view).first(new) if rule == Rule.BUILD else showing(view).anew(new)
        return Emitting(program, workspace, "the windows that have closed")
    corrected = old if _reaches(workspace, view, workspace.delta(live), NEVER, old) else None
    closing = (old, new) if _reaches(workspace, view, workspace.after(live).files, old, new) else None
    if corrected is None and closing is None:
        return None
    why = "windows close" if closing is not None else "windows that have closed are corrected"
    return Emitting(showing(view).closed(corrected, closing), workspace, why)


def _periodically(workspace: Workspace, view: Relation, marks: Marks, rule: Rule) -> Emitting | None:
    live, record = view.view.live, marks.record(view.id)
    assert live is not None
    if rule in ANEW:
        program = showing(view).first() if rule == Rule.BUILD else showing(view).anew()
        return Emitting(program, workspace, "all that is known", True)
    if marks.is_due(view):
        since = Epoch(record.emitted_epoch or 0)
        if not workspace.keeps(since):
            why = "the changes since it last did are no longer kept"
            return Emitting(showing(view).anew(), workspace, why, True)
        missed = workspace.since(since, [live])
        if not missed.delta(live):
            return None
        return Emitting(showing(view).due(), missed, "the interval is over", True)
    old, new = record.mark, marks.after.get(view.id, record.mark)
    if not _reaches(workspace, view, workspace.after(live).files, old, new):
        return None
    return Emitting(showing(view).closing((old, new)), workspace, "windows close")


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

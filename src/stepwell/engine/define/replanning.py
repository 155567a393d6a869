"""Replanning: views that another version of stepwell has planned are planned anew from their texts, and rebuilt.

What a text means is settled since CREATE: the settings it was read under, the columns that its relations had, the names
it gives to its outputs. Only how the view is kept may differ, and what is kept beside its rows; so it is replaced by
itself. Its rows stay until the next barrier, which finds out what has changed, and that is nothing but for bugs.
"""

from __future__ import annotations

import dataclasses

from stepwell.catalog import control, lives, relations, writes
from stepwell.engine.define.analysis import AsCreated, analyze
from stepwell.engine.define.creation import replace_in
from stepwell.engine.definitions import Definitions, load
from stepwell.engine.failures import translated
from stepwell.engine.read.rewriting import create_text
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import StepwellError
from stepwell.model.lifecycle import Owed, failed, owing
from stepwell.model.relations import Relation, RelationKind
from stepwell.model.views import OUTDATED, RelationId
from stepwell.rules.blocks import VERSION
from stepwell.sql import parse
from stepwell.sql.statements import CreateView


def replan(runtime: Runtime) -> None:
    """Plan every view anew whose plan is outdated, parents before children; one that cannot be planned fails alone."""
    while True:
        known = load(runtime)
        view = next((each for id_ in known.order.order() if _is_due(known, each := known.by_id[id_])), None)
        if view is None:
            return
        _replan_one(runtime, known, view)


def _is_due(known: Definitions, view: Relation) -> bool:
    is_outdated = view.kind == RelationKind.MATERIALIZED and known.outdated.intersection([view.id, *view.view.blocks])
    return bool(is_outdated) and view.view.plan != _GIVEN_UP


_GIVEN_UP = {"given_up_by": VERSION}
"""The plan of a view that this version cannot plan: it has failed, and is not tried again and again."""


def _replan_one(runtime: Runtime, known: Definitions, view: Relation) -> None:
    (statement,) = parse(create_text(known, view))
    assert isinstance(statement.body, CreateView)
    problem, analyzed = None, None
    try:
        with translated():
            analyzed = analyze(runtime, known, statement.body, _as_created(known, view))
        if [each.type for each in analyzed.columns] != [each.type for each in view.columns]:
            problem = "its columns would have other types"
    except StepwellError as error:
        problem = error.message
    with runtime.catalog.write() as tx:
        if control.lock(tx).generation != known.generation:
            return  # something was defined or dropped meanwhile: look again
        before = lives.get_all(tx)[view.id]
        if analyzed is not None and problem is None:
            replace_in(tx, runtime, known, view, statement.body, analyzed)
            becomes = owing(before, Owed.REPLAN)
        else:
            give_up = dataclasses.replace(view.view, plan=_GIVEN_UP)
            relations.redefine(tx, view.id, dataclasses.replace(view.definition, view=give_up))
            becomes = failed(before, f"{OUTDATED}, and {problem}")
        lives.put(tx, view.id, becomes)
        writes.request_barrier(tx, control.look(tx).open_epoch, runtime.clock.now())


def _as_created(known: Definitions, view: Relation) -> AsCreated:
    """The columns that a view's relations had when it was created: what is read of them by all its parts."""
    columns: dict[RelationId, set[str]] = {}
    for each in (view, *(known.by_id[id_] for id_ in view.view.blocks)):
        for source in each.view.inputs:
            columns.setdefault(source.relation, set()).update(source.columns)
    return AsCreated(view.view.settings, columns)

"""Pipelines: a file of statements that can be run again, and only does what is new in it."""

from __future__ import annotations

import dataclasses
from enum import StrEnum

from stepwell.model.durations import parse_duration
from stepwell.model.relations import Relation, RelationKind
from stepwell.model.views import EmitMode, RefreshPolicy
from stepwell.sql.statements import Body, CreateTable, CreateView, EmitClause


class Doing(StrEnum):
    """What a run makes of a statement."""

    RUN = "run"
    CREATE = "create"
    REPLACE = "replace"
    KEEP = "unchanged"


def doing(body: Body, existing: Relation | None) -> Doing:
    """What a run has to do for a statement whose relation, if it creates one, may be there already."""
    if not isinstance(body, CreateTable | CreateView):
        return Doing.RUN
    if existing is None:
        return Doing.CREATE
    if isinstance(body, CreateTable):
        return Doing.KEEP if _is_table(body, existing) else Doing.CREATE  # which says that it is there already
    return Doing.KEEP if _is_view(body, existing) else Doing.REPLACE


def replacing(body: CreateView) -> CreateView:
    return dataclasses.replace(body, or_replace=True, if_not_exists=False)


def _is_table(body: CreateTable, table: Relation) -> bool:
    definition = table.definition
    return (
        table.kind == RelationKind.TABLE
        and [(each.name.lower(), each.type, each.nullable) for each in table.columns[: len(body.columns)]]
        == [(each.name.lower(), each.type, each.nullable) for each in body.columns]
        and (definition.key, definition.watermark, definition.chunking) == (body.key, body.watermark, body.chunking)
    )


def _is_view(body: CreateView, view: Relation) -> bool:
    known = view.definition.view
    if known is None or (view.kind == RelationKind.MATERIALIZED) != body.materialized:
        return False
    names = [column.name.lower() for column in view.columns]
    return (
        known.text == body.query.text
        and (body.columns is None or [each.unquoted.lower() for each in body.columns] == names)
        and known.policy == (body.options.policy or RefreshPolicy.AUTO)
        and known.priority == (body.options.priority or 0)
        and (known.emission.mode, known.emission.every) == (body.emit.mode or EmitMode.UPDATE, body.emit.every)
        and known.emission.lateness == _lateness(body.emit)
    )


def _lateness(emit: EmitClause) -> int | None:
    if emit.lateness is None:
        return None
    number, duration = emit.lateness
    return number if number is not None else parse_duration(duration or "")

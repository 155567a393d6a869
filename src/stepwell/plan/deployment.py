"""Deployment: what a file of statements has to do where some of what it creates is there already.

A table that is as the file says and a view whose query means the same are left alone. A table that has only gained
columns is altered, and so is a view of which only options differ. A view of another meaning is replaced.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from stepwell.model.durations import parse_duration
from stepwell.model.errors import DuplicateNameError
from stepwell.model.relations import Column, Relation, RelationKind
from stepwell.model.views import EmitMode, RefreshPolicy, ViewOptions
from stepwell.sql.statements import (
    AddColumns,
    AlterView,
    Body,
    CreateTable,
    CreateView,
    EmitClause,
    Statement,
    ViewAction,
)


class Deed(StrEnum):
    """What a run makes of a statement."""

    RUN = "run"
    CREATE = "create"
    ALTER = "alter"
    REPLACE = "replace"
    KEEP = "unchanged"


@dataclass(frozen=True, slots=True)
class RunStep:
    """One statement of a file: what is done for it, and the statement that does it."""

    deed: Deed
    statement: Statement
    rewrites: str | None = None
    """What of the past a replacement would write anew or forget, in words; None if nothing."""


def decide(body: Body, existing: Relation | None, means_the_same: Callable[[], bool]) -> tuple[Deed, Body]:
    """What to do for a statement whose relation, if it creates one, may be there already; and the statement for it.

    `means_the_same` says whether the query of a view that is there means what the statement's does; it is asked only if
    nothing else tells.
    """
    if not isinstance(body, CreateTable | CreateView):
        return Deed.RUN, body
    if existing is None:
        return Deed.CREATE, body
    if isinstance(body, CreateTable):
        return _decide_table(body, existing)
    if not _is_shaped(body, existing) or not means_the_same():
        return Deed.REPLACE, dataclasses.replace(body, or_replace=True, if_not_exists=False)
    options = _other_options(body, existing)
    if options is None:
        return Deed.KEEP, body
    return Deed.ALTER, AlterView(body.name, ViewAction.SET, options=options)


def not_in_file(there: Iterable[Relation], statements: Iterable[Statement]) -> list[Relation]:
    """The relations that no CREATE of a file makes, those that read others first; `there` has parents first."""
    bodies = [each.body for each in statements if isinstance(each.body, CreateTable | CreateView)]
    named = {body.name.last.lower() for body in bodies}
    return [each for each in reversed(list(there)) if each.name.lower() not in named]


def _decide_table(body: CreateTable, table: Relation) -> tuple[Deed, Body]:
    difference = _difference(body, table)
    if difference is not None:
        raise DuplicateNameError(
            f'relation "{table.name}" exists already, and not as the file says',
            detail=difference,
            place=body.name.slice.place,
            hint="Columns can be added behind the others, if they may be NULL; for anything else, DROP it first.",
        )
    added = body.columns[len(table.columns) :]
    return (Deed.ALTER, AddColumns(body.name, added)) if added else (Deed.KEEP, body)


def _difference(body: CreateTable, table: Relation) -> str | None:
    """What keeps a table from becoming the one that a statement creates by more columns alone."""
    if table.kind != RelationKind.TABLE:
        return f"It is a {table.kind}."
    for there, wanted in zip(table.columns, body.columns, strict=False):
        if _shape(there) != _shape(wanted):
            return f"It has {_said(there)} where the file has {_said(wanted)}."
    for column in body.columns[len(table.columns) :]:
        if not column.nullable:
            return f'Column "{column.name}" is new and NOT NULL, and the rows there have nothing in it.'
    definition = table.definition
    if definition.key != body.key:
        return f"Its primary key is {', '.join(definition.key) or 'none'}, in the file {', '.join(body.key) or 'none'}."
    if definition.watermark != body.watermark:
        return "Its watermark is another one."
    return "Its chunks are others." if definition.chunking != body.chunking else None


def _shape(column: Column) -> tuple[str, object, bool]:
    return column.name.lower(), column.type, column.nullable


def _said(column: Column) -> str:
    return f"{column.name} {column.type}{'' if column.nullable else ' NOT NULL'}"


def _is_shaped(body: CreateView, view: Relation) -> bool:
    """Whether a view is of the kind, has the column names, and emits as a statement says."""
    known = view.definition.view
    if known is None or (view.kind == RelationKind.MATERIALIZED) != body.materialized:
        return False
    names = [column.name.lower() for column in view.columns]
    return (
        (body.columns is None or [each.unquoted.lower() for each in body.columns] == names)
        and (known.emission.mode, known.emission.every) == (body.emit.mode or EmitMode.UPDATE, body.emit.every)
        and known.emission.lateness == _lateness(body.emit)
        and (known.deferral is not None) == bool(body.options.deferred)
    )


def _other_options(body: CreateView, view: Relation) -> ViewOptions | None:
    """The options that a statement gives a view otherwise than it has them; None if it has them so."""
    policy, priority = body.options.policy or RefreshPolicy.AUTO, body.options.priority or 0
    if (view.view.policy, view.view.priority) == (policy, priority):
        return None
    return ViewOptions(policy=policy, priority=priority)


def _lateness(emit: EmitClause) -> int | None:
    if emit.lateness is None:
        return None
    number, duration = emit.lateness
    return number if number is not None else parse_duration(duration or "")

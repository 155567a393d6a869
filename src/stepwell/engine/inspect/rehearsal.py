"""Rehearsal: what a file of statements would do, on definitions in memory. Nothing is created, written or led.

Every name and column is resolved over what is there and what the statements before would have made of it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from itertools import count

from stepwell.catalog import watermarks
from stepwell.engine.define.analysis import Analyzed, bound_frame, means_the_same
from stepwell.engine.define.creation import analyze_view, check_replacement
from stepwell.engine.definitions import load
from stepwell.engine.failures import pointing_at, translated
from stepwell.engine.read.naming import is_system, new_name
from stepwell.engine.read.queries import plain_name
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.assignment import arrange, named_columns
from stepwell.model.epochs import FIRST_EPOCH
from stepwell.model.errors import StepwellError, UndefinedTableError, nearest
from stepwell.model.relations import Definition, Relation, RelationKind
from stepwell.model.views import RelationId, ViewDefinition
from stepwell.plan.deployment import Deed, RunStep, decide
from stepwell.sql import find_references
from stepwell.sql.statements import (
    AddColumns,
    AlterView,
    Body,
    Copy,
    CreateTable,
    CreateView,
    Delete,
    DropRelations,
    Insert,
    Merge,
    Name,
    Query,
    RenameTable,
    Slice,
    Statement,
    Truncate,
    Update,
    ViewAction,
)
from stepwell.storage import find_files

_FIRST_NUMBER = 1 << 40
"""Relations that are only rehearsed have numbers from here on, which no catalog has given."""


def rehearse(runtime: Runtime, statements: Sequence[Statement], folder: str) -> list[RunStep]:
    """What a run of these statements would do, one step each; the error of the first that would fail.

    Relative paths in COPY are looked up from `folder`.
    """
    rehearsal = _Rehearsal(runtime, folder)
    steps = []
    for statement in statements:
        with pointing_at(statement), translated():
            steps.append(rehearsal.step(statement))
    return steps


class _Rehearsal:
    def __init__(self, runtime: Runtime, folder: str) -> None:
        self._runtime = runtime
        self._folder = folder
        self._known = load(runtime)
        self._numbers = count(_FIRST_NUMBER)

    def step(self, statement: Statement) -> RunStep:
        body = statement.body
        existing = self._known.called(body.name.last) if isinstance(body, CreateTable | CreateView) else None

        def same() -> bool:
            assert isinstance(body, CreateView)
            assert existing is not None
            return means_the_same(self._runtime, self._known, existing, body)

        deed, wanted = decide(body, existing, same)
        rewrites = None
        if deed == Deed.REPLACE:
            assert isinstance(wanted, CreateView)
            assert existing is not None
            rewrites = self._rewritten(existing)
            self._replace(existing, wanted)
        elif deed != Deed.KEEP:
            wanted = self._follow(wanted)
        return RunStep(deed, Statement(wanted, statement.slice), rewrites)

    def _follow(self, body: Body) -> Body:
        """Let the definitions become what a statement makes of them; the statement, with paths as they are meant."""
        match body:
            case CreateTable():
                definition = Definition(key=body.key, chunking=body.chunking, watermark=body.watermark)
                self._add(Relation(self._number(), new_name(body.name), definition, body.columns, FIRST_EPOCH))
            case CreateView():
                new_name(body.name)
                analyzed = analyze_view(self._runtime, self._known, body)
                self._add(_view(self._number(), body, analyzed))
            case DropRelations():
                found = [self._known.called(plain_name(name)) for name in body.names]
                gone = {each.id for each in found if each is not None}
                if body.cascade:
                    gone |= set(self._known.graph.downstream(gone))
                self._known = self._known.without(gone)
            case RenameTable(name, new):
                self._add(dataclasses.replace(self._relation(name), name=new_name(new)))
            case AlterView(name, ViewAction.RENAME, new) if new is not None:
                self._add(dataclasses.replace(self._relation(name), name=new_name(new)))
            case AddColumns(name, columns):
                relation = self._relation(name)
                self._add(dataclasses.replace(relation, columns=(*relation.columns, *columns)))
            case Insert():
                self._check_insert(body)
            case Update(table) | Delete(table) | Merge(table) | Truncate(table):
                self._relation(table)
            case Copy():
                self._relation(body.table)
                body = dataclasses.replace(body, paths=tuple(self._path(path) for path in body.paths))
                for path in body.paths:
                    find_files(path)
            case Query(text) if self._can_be_bound(text):
                with bound_frame(self._runtime, self._known, text):
                    pass
            case _:
                pass
        return body

    def _number(self) -> RelationId:
        return RelationId(next(self._numbers))

    def _add(self, relation: Relation) -> None:
        self._known = self._known.beside([relation])

    def _replace(self, existing: Relation, body: CreateView) -> None:
        analyzed = analyze_view(self._runtime, self._known, body)
        check_replacement(self._runtime, self._known, existing, body, analyzed)
        self._add(_view(existing.id, body, analyzed))

    def _rewritten(self, view: Relation) -> str | None:
        """What a replacement would forget of a view whose windows are closed for good."""
        if not view.is_maintained or view.deferral is not None:
            return None
        parts = [view, *(self._known.by_id[id_] for id_ in view.view.blocks)]
        if not any(each.view.judge is not None for each in parts):
            return None
        with self._runtime.catalog.read() as tx:
            counts = watermarks.late_counts(tx)
        late = sum(each.inserted + each.retracted for each in counts if each.relation in {part.id for part in parts})
        kept = f" and forgets {late} late row{'' if late == 1 else 's'} of its ledger" if late else ""
        return f'replacing "{view.name}" computes its closed windows anew{kept}'

    def _relation(self, name: Name) -> Relation:
        called = plain_name(name)
        found = self._known.called(called)
        if found is None:
            names = [each.name for each in self._known.by_id.values() if not each.is_hidden]
            raise UndefinedTableError(
                f'relation "{called}" does not exist', place=name.slice.place, hint=nearest(called, names)
            )
        return found

    def _check_insert(self, body: Insert) -> None:
        relation = self._relation(body.table)
        columns = list(relation.columns) if body.columns is None else named_columns(relation, body.columns)
        if not self._can_be_bound(body.query):
            return
        with bound_frame(self._runtime, self._known, body.query) as frame:
            try:
                arrange(relation, frame, columns)
            except StepwellError as error:
                raise error.at(body.query.place) from None

    def _can_be_bound(self, query: Slice) -> bool:
        """Whether a query reads relations as they are, which is all that can be rehearsed."""
        return not any(
            each.as_of or each.changes or "$" in each.name.last or is_system(each.name)
            for each in find_references(query)
        )

    def _path(self, path: str) -> str:
        return path if "://" in path or os.path.isabs(path) else os.path.join(self._folder, path)


def _view(id_: RelationId, body: CreateView, analyzed: Analyzed) -> Relation:
    """A view as far as others that read it need it."""
    timing = analyzed.timings[-1]
    view = ViewDefinition(
        body.query.text,
        analyzed.bound,
        analyzed.parents,
        analyzed.inputs,
        time_column=timing.column if timing else body.options.time_column,
        transfer=timing.transfer if timing else None,
        emission=analyzed.emission,
        settings=analyzed.settings,
        deferral=analyzed.deferral,
    )
    kind = RelationKind.MATERIALIZED if body.materialized else RelationKind.VIEW
    return Relation(id_, plain_name(body.name), Definition(kind, view=view), analyzed.columns, FIRST_EPOCH)

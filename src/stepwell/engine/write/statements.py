"""DML: a statement to the write it asks for, on whatever it has to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stepwell.engine.failures import translated
from stepwell.engine.read.queries import Binding, plain_name
from stepwell.engine.read.snapshots import Snapshot
from stepwell.engine.read.system import SYSTEM_NAMESPACE
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.assignment import arrange, named_columns, naming_literals
from stepwell.engine.write.labels import require_new
from stepwell.engine.write.merge import stage_merge
from stepwell.engine.write.sources import digest_of, repeatable, source_frame
from stepwell.engine.write.updates import stage_delete, stage_update
from stepwell.engine.write.upsert import stage_insert
from stepwell.model.errors import Place, ReadOnlyError, StepwellError
from stepwell.model.files import total
from stepwell.model.loads import Label
from stepwell.model.relations import Relation, RelationKind
from stepwell.model.writes import RelationWrite
from stepwell.sql import Composition, literals_in_values
from stepwell.sql.statements import Delete, Dml, Insert, Merge, Name, Truncate, Update

Staging = Callable[[Snapshot], RelationWrite]
"""A statement ready to be run on a snapshot, and again on a later one if it comes to a conflict."""


def stage_statement(runtime: Runtime, statement: Dml) -> Staging:
    """How to run a DML statement."""

    def run(snapshot: Snapshot) -> RelationWrite:
        relation = target(snapshot, statement.table)
        with translated():
            match statement:
                case Insert():
                    return _insert(runtime, snapshot, relation, statement)
                case Update():
                    return stage_update(runtime, snapshot, relation, statement)
                case Delete():
                    return stage_delete(runtime, snapshot, relation, statement.alias, statement.condition)
                case Truncate():
                    return stage_delete(runtime, snapshot, relation, None, None)
                case Merge():
                    return stage_merge(runtime, snapshot, relation, statement)

    return run


def stage_data(runtime: Runtime, table: str, data: Any, label: str | None = None) -> Staging:
    """How to insert what a program hands in; with a label, if that is not there yet."""
    data = repeatable(data)

    def run(snapshot: Snapshot) -> RelationWrite:
        relation = writable(snapshot.relation(table))
        if label is None:
            return stage(snapshot, relation)
        named = Label(label, digest_of(relation, data), 0)
        require_new(runtime, relation, named)
        write = stage(snapshot, relation)
        return replace(write, labels=(replace(named, rows=total(write.files).inserted),))

    def stage(snapshot: Snapshot, relation: Relation) -> RelationWrite:
        with translated():
            frame, columns, size = source_frame(runtime, relation, data)
            rows = arrange(relation, frame, columns)
            # of a DataFrame of the user's nothing is known: try to collect it, and see
            reads = min(size, runtime.limits.small_result_bytes + 1) if size >= 0 else 0
            return stage_insert(runtime, snapshot, relation, rows, reads=reads)

    return run


def _insert(runtime: Runtime, snapshot: Snapshot, relation: Relation, statement: Insert) -> RelationWrite:
    columns = list(relation.columns) if statement.columns is None else named_columns(relation, statement.columns)
    literals = literals_in_values(statement.query, columns)
    with Binding(runtime, snapshot) as binding, naming_literals(runtime, relation, literals):
        binding.bind(statement.query)
        binding.replacements.update({each.slice: each.text for each in literals})
        text = Composition().add_slice(statement.query, binding.replacements)
        frame = binding.run(text)
        try:
            rows = arrange(relation, frame, columns)
        except StepwellError as error:
            raise error.at(statement.query.place) from None
        with translated(text):
            return stage_insert(runtime, snapshot, relation, rows, reads=binding.bytes)


def target(snapshot: Snapshot, name: Name) -> Relation:
    """The table that a statement writes to."""
    if name.parts[0].lower() == SYSTEM_NAMESPACE and len(name.parts) > 1:
        raise ReadOnlyError(f'system table "{name}" cannot be written', place=name.slice.place)
    try:
        relation = snapshot.relation(plain_name(name))
    except StepwellError as error:
        raise error.at(name.slice.place) from None
    return writable(relation, name.slice.place)


def writable(relation: Relation, place: Place | None = None) -> Relation:
    """`relation`, if rows can be written to it."""
    if relation.kind != RelationKind.TABLE:
        raise ReadOnlyError(
            f'{relation.kind} "{relation.name}" cannot be written',
            place=place,
            hint="Its rows follow from its query: write to the tables it reads.",
        )
    return relation

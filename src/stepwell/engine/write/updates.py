"""UPDATE, DELETE and TRUNCATE: each row taken back, and for UPDATE its new version under the same identity."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import functions as F  # noqa: N812

from stepwell.engine.failures import translated
from stepwell.engine.read.canonical import differs
from stepwell.engine.read.queries import Binding
from stepwell.engine.read.snapshots import Snapshot
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.assignment import assigned, named_columns, naming_literals
from stepwell.engine.write.staging import row_numbers, signed, stage
from stepwell.engine.write.upsert import NEW
from stepwell.model.errors import StepwellError, UnsupportedError
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.relations import Column as RelationColumn
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.writes import RelationWrite
from stepwell.sql import EXPRESSION, Composition, TypedLiteral, literal_of
from stepwell.sql.statements import Slice, Update


def stage_update(runtime: Runtime, snapshot: Snapshot, relation: Relation, statement: Update) -> RelationWrite:
    """Compute the rows that UPDATE changes; one that would stay the same is not touched."""
    columns = named_columns(relation, [each.column for each in statement.assignments])
    for column, each in zip(columns, statement.assignments, strict=True):
        if column.name in relation.key:
            raise UnsupportedError(
                f'column "{column.name}" is part of the primary key and cannot be updated',
                place=each.column.place,
                hint="DELETE the row and INSERT it with its new key.",
            )
    pairs = zip(statement.assignments, columns, strict=True)
    literals = [found for each, column in pairs if (found := literal_of(each.value, column)) is not None]
    with naming_literals(runtime, relation, literals):
        return _stage_update(runtime, snapshot, relation, statement, columns, literals)


def _stage_update(
    runtime: Runtime,
    snapshot: Snapshot,
    relation: Relation,
    statement: Update,
    columns: Sequence[RelationColumn],
    literals: Sequence[TypedLiteral],
) -> RelationWrite:
    names = [column.name for column in relation.columns]
    with Binding(runtime, snapshot) as binding:
        for each in statement.assignments:
            binding.bind(each.value, EXPRESSION)
        binding.bind(statement.condition, EXPRESSION)
        binding.replacements.update({each.slice: each.text for each in literals})
        content = snapshot.content(relation)
        target = binding.add_view(snapshot.rows(relation, content))
        text = Composition().add(f"SELECT {quote(statement.alias or relation.name)}.*")
        for index, each in enumerate(statement.assignments):
            text.add(", (").add_slice(each.value, binding.replacements).add(f") AS _sw_set_{index}")
        text.add(f" FROM {target} AS {quote(statement.alias or relation.name)}")
        if statement.condition:
            text.add(" WHERE (").add_slice(statement.condition, binding.replacements).add(")")
        found = binding.run(text)
        reads = binding.bytes + content.bytes
    numbers = row_numbers(runtime.limits, reads)
    new = {name: F.col(quote(name)) for name in names}
    for index, (column, each) in enumerate(zip(columns, statement.assignments, strict=True)):
        field = found.schema[f"_sw_set_{index}"]
        try:
            new[column.name] = assigned(F.col(field.name), field.dataType, column, relation)
        except StepwellError as error:
            raise error.at(each.value.place) from None
    numbered = numbers.added_to(found, NEW)
    changed = differs([(F.col(quote(column.name)), new[column.name], column) for column in columns])
    delta = signed(
        [
            (F.lit(-1), [F.col(quote(name)) for name in names], F.col(ROW_ID), F.col(ROW_VERSION)),
            (F.lit(1), [new[name] for name in names], F.col(ROW_ID), F.col(NEW)),
        ],
        names,
        numbered.where(changed),
    )
    with translated(text):
        return stage(runtime, relation, delta, numbers, reads=reads, read_at=snapshot.position)


def stage_delete(
    runtime: Runtime, snapshot: Snapshot, relation: Relation, alias: str | None, condition: Slice | None
) -> RelationWrite:
    """Compute the rows that DELETE takes back; all of them without a condition."""
    with Binding(runtime, snapshot) as binding:
        binding.bind(condition, EXPRESSION)
        content = snapshot.content(relation)
        target = binding.add_view(snapshot.rows(relation, content))
        name = quote(alias or relation.name)
        text = Composition().add(f"SELECT {name}.* FROM {target} AS {name}")
        if condition:
            text.add(" WHERE (").add_slice(condition, binding.replacements).add(")")
        found = binding.run(text)
        reads = binding.bytes + content.bytes
    delta = found.withColumn(DIFF, F.lit(-1).cast("bigint"))
    with translated(text):
        return stage(runtime, relation, delta, None, reads=reads, read_at=snapshot.position)

"""MERGE: one join of target and source, the first WHEN that holds for each pair, and the delta of what it says."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from stepwell.engine.failures import CARDINALITY
from stepwell.engine.read.canonical import differs
from stepwell.engine.read.queries import Binding
from stepwell.engine.read.snapshots import Snapshot
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.assignment import assigned, named_columns
from stepwell.engine.write.staging import row_numbers, signed, stage
from stepwell.engine.write.upsert import NEW, last_of_each_key, upsert_delta
from stepwell.model.errors import SqlSyntaxError, StepwellError, UnsupportedError
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.relations import Column as RelationColumn
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.writes import RelationWrite
from stepwell.sql import EXPRESSION, RELATION, Composition, find_references, literal_of
from stepwell.sql.statements import Merge, MergeClause, MergeDelete, MergeInsert, MergeUpdate, Slice
from stepwell.storage.types import to_spark

_ACTION = "_sw_action"
_MATCHED, _ALONE, _UNMATCHED = "matched", "not matched by source", "not matched"


def stage_merge(runtime: Runtime, snapshot: Snapshot, relation: Relation, statement: Merge) -> RelationWrite:
    """Compute what MERGE changes."""
    with Binding(runtime, snapshot) as binding:
        pairs, values, reads, existing = _pairs(binding, snapshot, relation, statement)
    pairs = _once(pairs, statement)
    numbers = row_numbers(runtime.limits, reads)
    delta = _delta_of_target(relation, numbers.added_to(pairs, NEW), statement, values)
    inserts = [index for index, clause in enumerate(statement.clauses) if isinstance(clause.action, MergeInsert)]
    if inserts:
        chosen = pairs.where(F.col(_ACTION).isin(inserts)).select(
            *(_by_action(values, inserts, each.name, _null(each)).alias(each.name) for each in relation.columns)
        )
        # Numbers of their own: Spark computes the two halves apart, and would not count both in the same order.
        numbers = row_numbers(runtime.limits, reads, series=1)
        delta = delta.unionByName(_delta_of_inserts(relation, numbers.added_to(chosen, NEW), existing))
    if relation.key:
        delta = _one_row_a_key(relation, delta)
    return stage(runtime, relation, delta, numbers, reads=reads, read_at=snapshot.position)


_Values = dict[tuple[int, str], Column]
"""For each clause and column it assigns: the value."""


def _pairs(
    binding: Binding, snapshot: Snapshot, relation: Relation, statement: Merge
) -> tuple[DataFrame, _Values, int, DataFrame]:
    """Target and source joined, with the number of the clause that applies and every value that it might need."""
    binding.bind(statement.source, RELATION)
    named = find_references(statement.source, RELATION)
    source_name = statement.source_alias or (named[0].name.last if named else statement.source.text)
    if statement.source.text.startswith("(") and not statement.source_alias:
        raise SqlSyntaxError("a query as source needs a name", place=statement.source.place, hint="Write (…) AS s.")
    if statement.source_columns and not statement.source.text.startswith("("):
        raise UnsupportedError(
            "only a query as source can have its columns renamed",
            place=statement.source_columns[0].place,
            hint=f"Write (SELECT … FROM {statement.source.text}) AS {source_name}.",
        )
    for clause in statement.clauses:
        binding.bind(clause.condition, EXPRESSION)
        for value in _value_slices(clause):
            binding.bind(value, EXPRESSION)
    binding.bind(statement.condition, EXPRESSION)
    content = snapshot.content(relation)
    existing = snapshot.rows(relation, content)
    target = binding.add_view(existing)
    alias = quote(statement.alias or relation.name)
    names = [column.name for column in relation.columns]
    text = Composition().add("SELECT ")
    for index, name in enumerate([*names, ROW_ID, ROW_VERSION]):
        text.add(f"{alias}.{quote(name)} AS _sw_old_{index}, ")
    _add_action(text, binding, statement, alias, quote(source_name))
    assignments = [_assignments(relation, clause, source_name) for clause in statement.clauses]
    for column, given in (pair for each in assignments for pair in each):
        literal = None if isinstance(given, str) else literal_of(given, column)
        if literal is not None:
            binding.replacements[literal.slice] = literal.text
    for number, each in enumerate(assignments):
        for index, (_, assignment) in enumerate(each):
            text.add(f", CASE WHEN {_ACTION} = {number} THEN (")
            if isinstance(assignment, str):
                text.add(assignment)
            else:
                text.add_slice(assignment, binding.replacements)
            text.add(f") END AS _sw_value_{number}_{index}")
    join = _join({clause.pairs for clause in statement.clauses})
    text.add(f" FROM {target} AS {alias} {join} JOIN (SELECT *, true AS _sw_source FROM ")
    text.add_slice(statement.source, binding.replacements)
    if statement.source_columns:
        text.add(f" AS {quote(source_name)}({', '.join(each.text for each in statement.source_columns)})")
    text.add(f") AS {quote(source_name)} ON ")
    text.add_slice(statement.condition, binding.replacements)
    frame = binding.run(text)
    values: _Values = {}
    for number, each in enumerate(assignments):
        for index, (column, assignment) in enumerate(each):
            field = frame.schema[f"_sw_value_{number}_{index}"]
            try:
                values[number, column.name] = assigned(F.col(field.name), field.dataType, column, relation)
            except StepwellError as error:
                raise error.at(None if isinstance(assignment, str) else assignment.place) from None
    return frame.where(f"{_ACTION} IS NOT NULL"), values, binding.bytes + content.bytes, existing


def _add_action(text: Composition, binding: Binding, statement: Merge, alias: str, source: str) -> None:
    """CASE: the number of the first clause whose kind of pair and condition hold."""
    has_target, has_source = f"{alias}.{ROW_ID} IS NOT NULL", f"{source}._sw_source IS NOT NULL"
    kinds = {
        _MATCHED: f"{has_target} AND {has_source}",
        _UNMATCHED: f"NOT ({has_target})",
        _ALONE: f"NOT ({has_source})",
    }
    text.add("CASE")
    for number, clause in enumerate(statement.clauses):
        text.add(f" WHEN {kinds[clause.pairs]}")
        if clause.condition:
            text.add(" AND (").add_slice(clause.condition, binding.replacements).add(")")
        text.add(f" THEN {number}")
    text.add(f" END AS {_ACTION}")


def _join(kinds: set[str]) -> str:
    if _ALONE in kinds:
        return "FULL OUTER" if _UNMATCHED in kinds else "LEFT OUTER"
    return "RIGHT OUTER" if _UNMATCHED in kinds else "INNER"


def _value_slices(clause: MergeClause) -> list[Slice]:
    match clause.action:
        case MergeUpdate(assignments):
            return [each.value for each in assignments or ()]
        case MergeInsert(_, values):
            return list(values or ())
        case MergeDelete():
            return []


def _assignments(relation: Relation, clause: MergeClause, source: str) -> list[tuple[RelationColumn, Slice | str]]:
    """What a clause assigns: a slice of the user's text, or for `*` the source's column of the same name."""
    match clause.action:
        case MergeDelete():
            return []
        case MergeUpdate(None) | MergeInsert(None, None):
            skip = relation.key if isinstance(clause.action, MergeUpdate) else ()
            return [
                (column, f"{quote(source)}.{quote(column.name)}")
                for column in relation.columns
                if column.name not in skip
            ]
        case MergeUpdate(assignments):
            columns = named_columns(relation, [each.column for each in assignments or ()])
            for column, each in zip(columns, assignments or (), strict=True):
                if column.name in relation.key:
                    raise UnsupportedError(
                        f'column "{column.name}" is part of the primary key and cannot be updated',
                        place=each.column.place,
                    )
            return [(column, each.value) for column, each in zip(columns, assignments or (), strict=True)]
        case MergeInsert(names, values):
            columns = list(relation.columns) if names is None else named_columns(relation, names)
            if len(columns) != len(values or ()):
                raise SqlSyntaxError(
                    f"{len(columns)} columns to fill, and {len(values or ())} values", place=clause.slice.place
                )
            return list(zip(columns, values or (), strict=True))


def _once(pairs: DataFrame, statement: Merge) -> DataFrame:
    """Fail where two pairs with an action share a row of the target."""
    if not any(clause.pairs == _MATCHED for clause in statement.clauses):
        return pairs
    target = _old_id(pairs)
    count = F.count("*").over(Window.partitionBy(target))
    clash = F.when(F.col(target).isNotNull() & (F.col("_sw_pairs") > 1), F.raise_error(F.lit(CARDINALITY)))
    return pairs.withColumn("_sw_pairs", count).withColumn("_sw_pairs", F.coalesce(clash.cast("bigint"), "_sw_pairs"))


def _old_id(pairs: DataFrame) -> str:
    """The column that holds the target's row number: the last but one of the old ones."""
    return sorted((name for name in pairs.columns if name.startswith("_sw_old_")), key=lambda name: int(name[8:]))[-2]


def _delta_of_target(relation: Relation, pairs: DataFrame, statement: Merge, values: _Values) -> DataFrame:
    names = [column.name for column in relation.columns]
    old = [F.col(f"_sw_old_{index}") for index in range(len(names) + 2)]
    updates = [index for index, clause in enumerate(statement.clauses) if isinstance(clause.action, MergeUpdate)]
    deletes = [index for index, clause in enumerate(statement.clauses) if isinstance(clause.action, MergeDelete)]
    new = [_by_action(values, updates, name, old[index]) for index, name in enumerate(names)]
    changed = differs([(old[index], new[index], column) for index, column in enumerate(relation.columns)])
    is_update = F.col(_ACTION).isin(updates)
    chosen = pairs.where(
        (F.col("_sw_pairs") > 0 if "_sw_pairs" in pairs.columns else F.lit(True))
        & (F.col(_ACTION).isin(deletes) | (is_update & changed))
    )
    delta = signed(
        [
            (F.lit(-1), old[:-2], old[-2], old[-1]),
            (F.lit(1), new, old[-2], F.when(is_update, F.col(NEW))),
        ],
        names,
        chosen,
    )
    return delta.where((F.col(DIFF) < 0) | F.col(ROW_VERSION).isNotNull())


def _delta_of_inserts(relation: Relation, rows: DataFrame, existing: DataFrame) -> DataFrame:
    if relation.key:
        return upsert_delta(relation, last_of_each_key(relation, rows), existing)
    plain = rows.withColumnRenamed(NEW, ROW_ID).withColumn(ROW_VERSION, F.lit(None).cast("bigint"))
    return plain.withColumn(DIFF, F.lit(1).cast("bigint"))


def _one_row_a_key(relation: Relation, delta: DataFrame) -> DataFrame:
    """Each retraction once, and at most one new row a key: an insert may replace a row that another clause removed."""
    versions = Window.partitionBy(F.col(DIFF), F.coalesce(ROW_VERSION, ROW_ID)).orderBy(ROW_ID)
    once = delta.withColumn("_sw_rank", F.row_number().over(versions)).where("_sw_rank = 1").drop("_sw_rank")
    keys = Window.partitionBy(F.col(DIFF), *(F.col(quote(name)) for name in relation.key))
    clash = F.when((F.col(DIFF) > 0) & (F.count("*").over(keys) > 1), F.raise_error(F.lit(CARDINALITY)))
    return once.withColumn(DIFF, F.coalesce(clash.cast("bigint"), F.col(DIFF)))


def _null(column: RelationColumn) -> Column:
    return F.lit(None).cast(to_spark(column.type))


def _by_action(values: _Values, clauses: Sequence[int], name: str, otherwise: Column) -> Column:
    """The value that the clause in force assigns to a column."""
    result = otherwise
    for number in clauses:
        if (number, name) in values:
            result = F.when(F.col(_ACTION) == number, values[number, name]).otherwise(result)
    return result

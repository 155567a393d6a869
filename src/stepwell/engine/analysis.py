"""Analysis: a view's text to its columns and its plan, with Spark as the judge of what the text means."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from stepwell.catalog import relations
from stepwell.engine.definitions import Definitions
from stepwell.engine.failures import translated
from stepwell.engine.queries import plain_name
from stepwell.engine.runtime import Runtime
from stepwell.engine.system import SYSTEM_NAMESPACE
from stepwell.errors import (
    DuplicateNameError,
    InvalidDefinitionError,
    ReservedNameError,
    StepwellError,
    UnstorableTypeError,
    UnsupportedError,
)
from stepwell.files import DIFF, EPOCH, HIDDEN_PREFIX, ROW_ID
from stepwell.plan.blocks import Block, Group, Partitioned, Plan, Rows, Select, UnionAll, Whole
from stepwell.plan.decompose import Decomposer
from stepwell.plan.groups import folding_of
from stepwell.plan.render import Mode, keys_of, partitioned_sql, rows_sql, view_name
from stepwell.plan.times import time_of_plan
from stepwell.relations import Column, Relation, RelationKind
from stepwell.sql import Composition, Reference, find_references, forbidden_function, window_calls
from stepwell.sql.statements import CreateView, Slice
from stepwell.storage.types import from_spark, spark_schema
from stepwell.types import VOID, quote
from stepwell.views import Input, RelationId, placeholder

_ONE_THING = (
    (r"named_struct\(", "struct("),
    (r"\bJoin Cross\b", "Join Inner"),
    (r"(LateralJoin .*), Cross", r"\1, Inner"),
    (r"cast\((\d{4}-\d\d-\d\d) as date\)", r"\1"),
    (r"cast\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) as timestamp\)", r"\1"),
)
"""Ways in which two texts of one meaning differ in Spark's plan: a comma for a CROSS JOIN, DATE '…' for a CAST."""

_OPERATOR = re.compile(r"^[\s:|+\-]*(\w+)")


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What a CREATE VIEW comes to. `hidden` are the columns of the plan's hidden blocks."""

    columns: tuple[Column, ...]
    bound: str
    parents: tuple[RelationId, ...]
    inputs: tuple[Input, ...]
    plan: Plan
    hidden: tuple[tuple[Column, ...], ...]
    time_column: str | None = None


def analyze(runtime: Runtime, statement: CreateView) -> Analyzed:
    """Let Spark read the text, and take it apart as far as that can be done without changing what it means."""
    bound, parents, inputs = _bind(runtime, statement)
    with runtime.analyzing, _schemas(runtime.spark.session, inputs) as session:
        with translated(bound):
            schema = session.sql(bound.text).schema
        columns = _columns(statement, schema)
        names = tuple(column.name for column in columns)
        _refuse_unnamed(statement, schema)
        text = bound.text
        by_placeholder = {placeholder(relation.id): relation for relation in inputs}
        known = {name: tuple(column.name for column in each.columns) for name, each in by_placeholder.items()}
        times = {int(relation.id): time for relation in inputs if (time := relation.time_column)}
        plan, again = Decomposer(known, times).plan(text, names)
        if not isinstance(plan.root, Whole):
            reason = _misread(session, text, again)
            plan = Plan(Whole(text, names, reason)) if reason else plan
        try:
            plan, hidden = _typed(session, plan)
        except _Unfit as reason:
            plan, hidden = Plan(Whole(text, names, str(reason))), ()
    return Analyzed(
        columns,
        text,
        parents,
        tuple(Input(each.id, tuple(column.name for column in each.columns)) for each in inputs),
        plan,
        hidden,
        time_of_plan(plan, times),
    )


class _Unfit(Exception):
    """A decomposition that Spark does not see as we do."""


# -- names ------------------------------------------------------------------------------------------------------------


def _bind(runtime: Runtime, statement: CreateView) -> tuple[Composition, tuple[RelationId, ...], tuple[Relation, ...]]:
    """The text with placeholders, the relations it names, and the stored ones behind them."""
    function = forbidden_function(statement.query)
    if function is not None:
        raise UnsupportedError(
            f"{function.text}() gives another value each time it is asked, so no view can stay equal to it",
            place=function.place,
            hint="Store such a value in a column when the row is inserted.",
        )
    parents: dict[RelationId, None] = {}
    inputs: dict[RelationId, Relation] = {}
    replacements: dict[Slice, str] = window_calls(statement.query)
    with runtime.catalog.read() as tx:
        for reference in find_references(statement.query):
            _refuse_reference(statement, reference)
            try:
                relation = relations.get(tx, plain_name(reference.name))
            except StepwellError as error:
                raise error.at(reference.name.slice.place) from None
            parents[relation.id] = None
            alias = "" if reference.aliased else f" AS {quote(reference.name.last)}"
            if relation.kind == RelationKind.VIEW:
                replacements[reference.slice] = f"({relation.view.bound}){alias}"
                for each in relation.view.inputs:
                    found = relations.by_id(tx, each.relation)
                    assert found is not None, "what a view reads cannot be dropped"
                    kept = tuple(column for column in found.columns if column.name in each.columns)
                    inputs.setdefault(found.id, dataclasses.replace(found, columns=kept))
            else:
                replacements[reference.slice] = placeholder(relation.id) + alias
                inputs[relation.id] = relation
    if statement.columns is None:
        bound = Composition().add_slice(statement.query, replacements)
    else:
        bound = Composition().add("SELECT * FROM (").add_slice(statement.query, replacements)
        bound.add(f") AS _sw_v({', '.join(each.text for each in statement.columns)})")
        plain = Composition().add_slice(statement.query, replacements)
        bound = plain if statement.materialized else bound
    return bound, tuple(parents), tuple(inputs.values())


def _refuse_reference(statement: CreateView, reference: Reference) -> None:
    name = reference.name
    if reference.as_of or reference.changes:
        raise UnsupportedError("a view reads its relations as they are, not as they were", place=reference.slice.place)
    if len(name.parts) > 1 and name.parts[0].lower() == SYSTEM_NAMESPACE:
        raise UnsupportedError(f'a view cannot read system table "{name}"', place=name.slice.place)
    if name.last.lower() == statement.name.last.lower():
        kind = "materialized view" if statement.materialized else "view"
        raise InvalidDefinitionError(
            f'{kind} "{name}" would read from itself',
            place=name.slice.place,
            detail=f"The cycle is {name.last} -> {name.last}.",
            sqlstate="42P19",
        )


def _columns(statement: CreateView, schema: StructType) -> tuple[Column, ...]:
    given = [each.unquoted for each in statement.columns] if statement.columns else schema.names
    if len(given) != len(schema.names):
        assert statement.columns is not None
        raise InvalidDefinitionError(
            f'view "{statement.name}" names {len(given)} columns, and its query has {len(schema.names)}',
            place=statement.columns[0].place,
        )
    columns: list[Column] = []
    for name, field in zip(given, schema.fields, strict=True):
        if name.lower().startswith(HIDDEN_PREFIX) or name.lower() in (DIFF, EPOCH):
            raise ReservedNameError(f'column name "{name}" is reserved', hint="Name it otherwise with AS.")
        if name.lower() in {column.name.lower() for column in columns}:
            raise DuplicateNameError(
                f'column "{name}" is there twice', hint="Give one of the two another name with AS.", sqlstate="42701"
            )
        try:
            type_ = from_spark(field.dataType)
        except UnstorableTypeError as error:
            raise UnstorableTypeError(f'column "{name}": {error.message}', hint=error.hint) from None
        if type_ == VOID:
            raise UnstorableTypeError(
                f'column "{name}" is NULL without a type', hint="CAST it to the type it should have."
            )
        columns.append(Column(name, type_))
    return tuple(columns)


def _refuse_unnamed(statement: CreateView, schema: StructType) -> None:
    if statement.columns is not None:
        return
    for name in schema.names:
        if not re.fullmatch(r"[^\W\d]\w*", name) and f"`{name}`" not in statement.query.text:
            raise InvalidDefinitionError(
                f'the column "{name}" has no name of its own', hint=f"Write {name} AS something.", sqlstate="42P16"
            )


# -- what Spark says --------------------------------------------------------------------------------------------------


@contextmanager
def _schemas(base: SparkSession, inputs: Sequence[Relation]) -> Iterator[SparkSession]:
    """A session in which every placeholder is an empty relation, alone and in each of its states."""
    made: list[str] = []

    def register(number: int, columns: tuple[Column, ...]) -> None:
        schema = spark_schema(columns)
        _register(base, placeholder(number), schema, made)
        with_id = StructType([*schema.fields, StructField(ROW_ID, LongType())])
        _register(base, view_name(number, Mode.AFTER), with_id, made)

    for relation in inputs:
        register(relation.id, relation.columns)
    try:
        yield base
    finally:
        for name in made:
            base.catalog.dropTempView(name)


def _register(session: SparkSession, name: str, schema: StructType, made: list[str]) -> None:
    session.createDataFrame([], schema).createOrReplaceTempView(name)
    made.append(name)


def analyzed_plan(session: SparkSession, text: str) -> str:
    """Spark's analyzed plan of a query, its ids renumbered in the order in which they appear."""
    whole = session.sql(f"EXPLAIN EXTENDED {text}").collect()[0][0]
    found = re.search(r"== Analyzed Logical Plan ==\n.*?\n(.*?)\n\n== Optimized", whole, re.DOTALL)
    plan = found.group(1) if found else whole
    for ours, theirs in _ONE_THING:
        plan = re.sub(ours, theirs, plan)
    ids: dict[str, str] = {}
    return re.sub(r"(#|CTERelation\w+ )(\d+)", lambda each: each[1] + ids.setdefault(each[2], str(len(ids))), plan)


def _misread(session: SparkSession, text: str, again: str) -> str | None:
    """Why what sqlglot would write for a text does not mean the same."""
    try:
        if analyzed_plan(session, text) == analyzed_plan(session, again):
            return None
    except PySparkException:
        pass
    return "sqlglot would write it otherwise, and Spark would not take that for the same"


def _typed(session: SparkSession, plan: Plan) -> tuple[Plan, tuple[tuple[Column, ...], ...]]:
    """The plan with the types that Spark finds, and the columns of its hidden blocks."""
    made: list[str] = []
    hidden: list[Block] = []
    columns: list[tuple[Column, ...]] = []
    try:
        for index, block in enumerate(plan.hidden):
            block, schema = _typed_block(session, block)
            try:
                found = tuple(Column(field.name, from_spark(field.dataType)) for field in schema.fields)
            except UnstorableTypeError as error:
                raise _Unfit(error.message) from None
            if any(column.type == VOID for column in found):
                raise _Unfit("a part of it has a column without a type")
            hidden.append(block)
            columns.append(found)
            _register(session, placeholder(-index - 1), spark_schema(found), made)
            with_id = StructType([*spark_schema(found).fields, StructField(ROW_ID, LongType())])
            _register(session, view_name(-index - 1, Mode.AFTER), with_id, made)
        root, _ = _typed_block(session, plan.root)
    except PySparkException as error:
        raise _Unfit(f"Spark does not take a part of it by itself ({str(error).splitlines()[0]})") from error
    finally:
        for name in made:
            session.catalog.dropTempView(name)
    return Plan(root, tuple(hidden)), tuple(columns)


def _typed_block(session: SparkSession, block: Block) -> tuple[Block, StructType]:
    if isinstance(block, Whole):
        return block, _renamed(session.sql(block.text).schema, block.names)
    if isinstance(block, Group):
        return _typed_group(session, block)
    if isinstance(block, Partitioned):
        _checked(session, block.rows)
        text = partitioned_sql(block, Mode.AFTER, frozenset(), moved=None)
        return block, StructType(session.sql(text).schema.fields[:-1])
    schema = _checked(session, block)
    return block, StructType(schema.fields[:-1])


def _typed_group(session: SparkSession, group: Group) -> tuple[Group, StructType]:
    rows = rows_sql(group.rows, Mode.AFTER, frozenset())
    schema = _checked(session, group.rows)
    try:
        types = {field.name: str(from_spark(field.dataType)) for field in schema.fields}
    except UnstorableTypeError as error:
        raise _Unfit(error.message) from None
    if "VOID" in types.values():
        raise _Unfit("a value in it has no type")
    keys = keys_of(group)
    calls = [f"{aggregate.direct} AS _sw_r{index}" for index, aggregate in enumerate(group.aggregates)]
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    results = session.sql(f"SELECT {', '.join([*keys, *calls])} FROM ({rows}){grouped}")
    aggregates = tuple(
        dataclasses.replace(
            aggregate,
            argument_types=tuple(types[name] for name in aggregate.arguments),
            result_type=_type_name(results.schema[f"_sw_r{index}"]),
        )
        for index, aggregate in enumerate(group.aggregates)
    )
    found = dataclasses.replace(group, key_types=tuple(types[key] for key in keys), aggregates=aggregates)
    items = [f"{item} AS {quote(name)}" for item, name in zip(group.items, group.names, strict=True)]
    where = f" WHERE {group.having}" if group.having else ""
    outputs = session.sql(
        f"SELECT {', '.join(items)} FROM (SELECT {', '.join([*keys, *calls])} FROM ({rows}){grouped}){where}"
    )
    folding_of(found)  # fails here, if it does, rather than in an epoch
    return found, outputs.schema


def _type_name(field: StructField) -> str:
    try:
        return str(from_spark(field.dataType))
    except UnstorableTypeError as error:
        raise _Unfit(error.message) from None


def _checked(session: SparkSession, rows: Rows) -> StructType:
    """The schema of rows, once it is sure that Spark, too, sees nothing but rows in them."""
    text = rows_sql(rows, Mode.AFTER, frozenset())
    operators = [
        match.group(1) for line in analyzed_plan(session, text).splitlines() if (match := _OPERATOR.match(line))
    ]
    generates = _generates(rows)
    for operator in ("Aggregate", "Window", "Generate", "Distinct", "Sort", "GlobalLimit"):
        if operator in operators and not (generates and operator in ("Window", "Generate")):
            raise _Unfit(f"Spark sees {operator.upper()} where a row by itself was expected")
    return session.sql(text).schema


def _generates(rows: Rows) -> bool:
    match rows:
        case UnionAll(branches):
            return any(_generates(branch) for branch in branches)
        case Select():
            inner = [source.input for source in rows.sources if not isinstance(source.input, int)]
            return rows.generates or any(_generates(each) for each in inner)


def _renamed(schema: StructType, names: tuple[str, ...]) -> StructType:
    return StructType([StructField(name, field.dataType) for name, field in zip(names, schema.fields, strict=True)])


def output_types(
    runtime: Runtime, known: Definitions, view: Relation, changed: Mapping[RelationId, tuple[Column, ...]]
) -> list[Column]:
    """The outputs that a view would have if relations had other columns; Spark's own error if it could not be."""
    inputs = []
    for each in view.view.inputs:
        relation = known.by_id[each.relation]
        columns = changed.get(relation.id, relation.columns)
        names = {name.lower() for name in each.columns}
        inputs.append(dataclasses.replace(relation, columns=tuple(c for c in columns if c.name.lower() in names)))
    block = known.blocks[view.id]
    with runtime.analyzing, _schemas(runtime.spark.session, inputs) as session:
        schema = _typed_block(session, block)[1]
    return [Column(field.name, from_spark(field.dataType)) for field in schema.fields]

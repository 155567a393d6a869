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
from stepwell.engine.definitions import Definitions, load
from stepwell.engine.failures import translated
from stepwell.engine.read.queries import plain_name
from stepwell.engine.read.system import SYSTEM_NAMESPACE
from stepwell.engine.runtime import Runtime
from stepwell.model.durations import parse_duration
from stepwell.model.errors import (
    DuplicateNameError,
    InvalidDefinitionError,
    ReservedNameError,
    StepwellError,
    UnstorableTypeError,
    UnsupportedError,
    nearest,
)
from stepwell.model.files import DIFF, EPOCH, HIDDEN_PREFIX, ROW_ID
from stepwell.model.relations import Column, Relation, RelationKind, can_be_time, is_integer_time
from stepwell.model.types import VOID, quote
from stepwell.model.views import Emission, EmitMode, Input, RelationId, placeholder
from stepwell.plan.blocks import Block, Group, Partitioned, Plan, Rows, Select, UnionAll, Whole
from stepwell.plan.decompose import Decomposer
from stepwell.plan.groups import folding_of
from stepwell.plan.lateness import ENTRY, Judged, judged_in, with_sources
from stepwell.plan.render import Mode, keys_of, partitioned_sql, rows_sql, view_name
from stepwell.plan.times import Timing, timing_of
from stepwell.sql import Composition, Reference, find_references, forbidden_function, window_calls
from stepwell.sql.statements import CreateView, Slice
from stepwell.storage.types import from_spark, spark_schema

_ONE_THING = (
    (r"named_struct\(", "struct("),
    (r"\bNOT isnull\(", "isnotnull("),
    (r"\bJoin Cross\b", "Join Inner"),
    (r"(LateralJoin .*), Cross", r"\1, Inner"),
    (r"cast\((\d{4}-\d\d-\d\d) as date\)", r"\1"),
    (r"cast\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) as timestamp\)", r"\1"),
)
"""Ways in which two texts of one meaning differ in Spark's plan: a comma for a CROSS JOIN, DATE '…' for a CAST."""

_OPERATOR = re.compile(r"^[\s:|+\-]*(\w+)")


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What a CREATE VIEW comes to. `hidden` are the columns of the plan's hidden blocks.

    `timings` are the time columns of these and, last, of the view; `ledger` has the columns of a late row.
    """

    columns: tuple[Column, ...]
    bound: str
    parents: tuple[RelationId, ...]
    inputs: tuple[Input, ...]
    plan: Plan
    hidden: tuple[tuple[Column, ...], ...]
    timings: tuple[Timing | None, ...]
    emission: Emission
    judged: Judged | None
    ledger: tuple[Column, ...]


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
        tables = frozenset(int(relation.id) for relation in inputs if relation.kind == RelationKind.TABLE)
        plan, again = Decomposer(known, times, tables).plan(text, names)
        if not isinstance(plan.root, Whole):
            reason = _misread(session, text, again)
            plan = Plan(Whole(text, names, reason)) if reason else plan
        try:
            plan, hidden, _ = _typed(session, plan, known, None)
        except _Unfit as reason:
            plan, hidden = Plan(Whole(text, names, str(reason))), ()
        timings = _timings(statement, plan, times, columns)
        emission = _emission(runtime, statement, columns, inputs, timings[-1])
        judged = judged_in(plan, times) if emission.tolerance is not None else None
        ledger = _typed(session, plan, known, judged)[2] if judged is not None else ()
    return Analyzed(
        columns,
        text,
        parents,
        tuple(Input(each.id, tuple(column.name for column in each.columns)) for each in inputs),
        plan,
        hidden,
        timings,
        emission,
        judged,
        ledger,
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
    if "$" in name.last:
        raise UnsupportedError(f'a view cannot read "{name}"', place=name.slice.place, hint="Query it instead.")
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
    plan = re.sub(r"\bdate_trunc\(\w+", lambda match: match[0].lower(), plan)
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


def _typed(
    session: SparkSession, plan: Plan, known: Mapping[str, tuple[str, ...]], judged: Judged | None
) -> tuple[Plan, tuple[tuple[Column, ...], ...], tuple[Column, ...]]:
    """The plan with the types that Spark finds, the columns of its hidden blocks, and those of a judged row."""
    made: list[str] = []
    late: tuple[Column, ...] = ()
    names = {int(name.removeprefix("_sw_rel")): each for name, each in known.items()}
    hidden: list[Block] = []
    columns: list[tuple[Column, ...]] = []
    try:
        for index, block in enumerate(plan.hidden):
            block, schema = _typed_block(session, block)
            if judged is not None and judged.index == index:
                late = _late_columns(session, block, judged, names)
            try:
                found = tuple(Column(field.name, from_spark(field.dataType)) for field in schema.fields)
            except UnstorableTypeError as error:
                raise _Unfit(error.message) from None
            if any(column.type == VOID for column in found):
                raise _Unfit("a part of it has a column without a type")
            hidden.append(block)
            columns.append(found)
            names[-index - 1] = tuple(column.name for column in found)
            _register(session, placeholder(-index - 1), spark_schema(found), made)
            with_id = StructType([*spark_schema(found).fields, StructField(ROW_ID, LongType())])
            _register(session, view_name(-index - 1, Mode.AFTER), with_id, made)
        root, _ = _typed_block(session, plan.root)
        if judged is not None and judged.index == len(plan.hidden):
            late = _late_columns(session, root, judged, names)
    except PySparkException as error:
        raise _Unfit(f"Spark does not take a part of it by itself ({str(error).splitlines()[0]})") from error
    finally:
        for name in made:
            session.catalog.dropTempView(name)
    return Plan(root, tuple(hidden)), tuple(columns), late


def _late_columns(
    session: SparkSession, block: Block, judged: Judged, names: Mapping[int, tuple[str, ...]]
) -> tuple[Column, ...]:
    rows = with_sources(block, judged.timing.column, names, window=judged.timing.transfer.is_window)
    schema = session.sql(rows_sql(rows, Mode.AFTER, frozenset())).schema
    found = [Column(field.name, from_spark(field.dataType)) for field in schema.fields if field.name != ROW_ID]
    return (*found, *ENTRY)


# -- event time -------------------------------------------------------------------------------------------------------


def _timings(
    statement: CreateView, plan: Plan, times: Mapping[int, str], columns: tuple[Column, ...]
) -> tuple[Timing | None, ...]:
    """The time columns of the hidden blocks and of the view."""
    known, found = dict(times), []
    for index, block in enumerate(plan.hidden):
        timing = timing_of(block, known)
        if timing is not None:
            known[-1 - index] = timing.column
        found.append(timing)
    chosen = statement.options.time_column
    if chosen is not None:
        column = next((each for each in columns if each.name.lower() == chosen.lower()), None)
        if column is None or not can_be_time(column.type):
            what = "is no column of the view" if column is None else f"is {column.type}, and no time"
            raise InvalidDefinitionError(
                f'time_column "{chosen}" {what}',
                place=statement.name.slice.place,
                hint=nearest(chosen, [each.name for each in columns if can_be_time(each.type)]),
            )
    return (*found, timing_of(plan.root, known, chosen))


def _emission(
    runtime: Runtime,
    statement: CreateView,
    columns: tuple[Column, ...],
    inputs: Sequence[Relation],
    timing: Timing | None,
) -> Emission:
    """EMIT and ALLOW LATENESS, once it is sure that they mean something for this view."""
    emit = statement.emit
    mode = emit.mode or EmitMode.UPDATE
    if mode == EmitMode.WATERMARK or emit.lateness is not None:
        where = emit.emit_slice if mode == EmitMode.WATERMARK else emit.lateness_slice
        what = f"EMIT {mode.value}" if mode == EmitMode.WATERMARK else "ALLOW LATENESS"
        assert where is not None
        timed = load(runtime).timed
        if not any(each.id in timed for each in inputs):
            names = " and ".join(f'"{each.name}"' for each in inputs)
            raise InvalidDefinitionError(
                f"{what} needs a watermark, and {names or 'nothing'} has none",
                place=where.place,
                hint="Declare one on the table: WATERMARK FOR ts AS ts - INTERVAL '5 seconds'; views follow.",
            )
        if timing is None:
            raise InvalidDefinitionError(
                f'{what} needs a time column with a watermark, and "{statement.name}" has none',
                place=where.place,
                detail="A watermark passes through a time column, the start or the end of a window, a bucket, and any"
                " of these plus a constant.",
                hint="Group by a window and show it, such as TUMBLE_START(ts, INTERVAL '1 minute') AS bar_time.",
            )
    lateness = None
    if emit.lateness is not None and timing is not None:
        assert emit.lateness_slice is not None
        type_ = next(each.type for each in columns if each.name == timing.column)
        number, duration = emit.lateness
        integer = is_integer_time(type_)
        if integer != (number is not None) and number != 0:
            wanted = "a whole number" if integer else "an INTERVAL"
            raise InvalidDefinitionError(
                f'"{timing.column}" is {type_}, so lateness is {wanted}', place=emit.lateness_slice.place
            )
        lateness = number if number is not None else parse_duration(duration or "")
    return Emission(mode, emit.every, lateness)


# -- blocks -----------------------------------------------------------------------------------------------------------


def _typed_block(session: SparkSession, block: Block) -> tuple[Block, StructType]:
    if isinstance(block, Whole):
        return block, _renamed(session.sql(block.text).schema, block.names)
    if isinstance(block, Group):
        return _typed_group(session, block)
    if isinstance(block, Partitioned):
        _checked(session, block.rows)
        text = partitioned_sql(block, rows_sql(block.rows, Mode.AFTER, frozenset()), moved=None)
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

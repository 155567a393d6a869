"""Analysis: a view's text to its columns and its plan. What the text means is for Spark to say.

Spark analyzes the text over empty stand-ins for the relations that it names. Its analyzed plan is read as a tree, the
tree is printed, and only if Spark takes what was printed for the same query is the tree used; else it is a whole.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from stepwell.algebra.expressions import Call, walk
from stepwell.algebra.lowering import lowered
from stepwell.algebra.nodes import Moment, expressions_of, nodes_of, scans_of
from stepwell.algebra.printing import UnprintableError, print_outputs, scan_name
from stepwell.algebra.pruning import pruned
from stepwell.algebra.pushing import pushed
from stepwell.algebra.reading import QueryTree, UnknownPartError, read_query
from stepwell.engine.define.deferral import deferral_of
from stepwell.engine.definitions import Definitions
from stepwell.engine.failures import translated
from stepwell.engine.jvm import PlanReader
from stepwell.engine.meanings import TIME_ZONE, recorded
from stepwell.engine.read.queries import plain_name
from stepwell.engine.read.system import SYSTEM_NAMESPACE
from stepwell.engine.runtime import Runtime
from stepwell.model.durations import parse_duration
from stepwell.model.epochs import FIRST_EPOCH
from stepwell.model.errors import (
    DuplicateNameError,
    InvalidDefinitionError,
    Place,
    ReservedNameError,
    UndefinedTableError,
    UnstorableTypeError,
    UnsupportedError,
    nearest,
)
from stepwell.model.files import DIFF, EPOCH, HIDDEN_PREFIX, ROW_ID
from stepwell.model.limits import Limits
from stepwell.model.relations import Column, Definition, Relation, RelationKind, can_be_time, is_integer_time
from stepwell.model.types import VOID, parse_type, quote
from stepwell.model.views import Deferral, Emission, EmitMode, Input, RelationId, Settings, placeholder
from stepwell.plan.decomposition import decomposed
from stepwell.plan.lateness import Judged, judged_in, with_sources
from stepwell.plan.lineage import lineage_of
from stepwell.plan.render import block_sql
from stepwell.plan.times import Times, Timing, timing_of
from stepwell.rules.blocks import Block, GroupBlock, RowBlock, ViewPlan, WholeBlock, WindowBlock, rows_of
from stepwell.rules.groups import has_states
from stepwell.rules.lateness import ENTRY
from stepwell.sql import Composition, Reference, find_references, forbidden_function, refuse_outside, window_calls
from stepwell.sql.statements import CreateView, Name, Slice
from stepwell.storage import listed_frame
from stepwell.storage.types import from_spark, spark_schema


@dataclass(frozen=True, slots=True)
class Analyzed:
    """What a CREATE VIEW comes to. `hidden` are the columns of the plan's hidden blocks.

    `timings` are the time columns of these and, last, of the view; `ledger` has the columns of a late row.
    """

    columns: tuple[Column, ...]
    bound: str
    parents: tuple[RelationId, ...]
    inputs: tuple[Input, ...]
    plan: ViewPlan
    hidden: tuple[tuple[Column, ...], ...]
    timings: tuple[Timing | None, ...]
    emission: Emission
    judged: Judged | None
    ledger: tuple[Column, ...]
    lineage: dict[str, list[tuple[int, str]]]
    """What each column is made of, in the stored relations that are read."""
    settings: Settings = ()
    """What was not as usual in the session that said what the text means."""
    deferral: Deferral | None = None


@dataclass(frozen=True, slots=True)
class AsCreated:
    """What a text was read with when its view was created: the settings, and the columns of each relation."""

    settings: Settings
    columns: Mapping[RelationId, AbstractSet[str]]


def analyze(runtime: Runtime, known: Definitions, statement: CreateView, before: AsCreated | None = None) -> Analyzed:
    """Let Spark read the text, and take it apart as far as that can be done without changing what it means.

    It names relations as `known`: those that are there, or will be when the statement is carried out. A text that was
    read `before` means what it did then.
    """
    refuse_outside(statement.query)
    bound, parents, inputs = _bind(known, statement)
    base = runtime.spark.session if before is None else runtime.spark.under(before.settings)
    if before is not None:
        inputs = tuple(_narrowed(each, before.columns.get(each.id)) for each in inputs)
    with runtime.analyzing, _schemas(base, inputs) as session:
        with translated(bound):
            frame = session.sql(bound.text)
            schema = frame.schema
        columns = _columns(statement, schema)
        _refuse_unnamed(statement, schema, {column.name for each in inputs for column in each.columns})
        names = tuple(column.name for column in columns)
        times = {int(relation.id): time for relation in inputs if (time := relation.time_column)}
        reader, settings = runtime.spark.plans, recorded(session)
        _refuse_changing(reader, frame, statement)
        plan, lineage = _plan(reader, session, frame, bound.text, names, inputs, times, runtime.limits)
        if times and TIME_ZONE in dict(settings):
            _require_no_zone(plan, dict(settings)[TIME_ZONE])
    hidden = tuple(block_columns(block) for block in plan.hidden)
    timings = _timings(statement, plan, times, columns)
    deferral = deferral_of(statement, plan, inputs, settings)
    emission = _emission(known, statement, columns, inputs, timings[-1])
    judged = judged_in(plan, times) if emission.tolerance is not None else None
    ledger = _late_columns(plan, judged, inputs, hidden) if judged is not None else ()
    return Analyzed(
        columns,
        bound.text,
        parents,
        tuple(Input(each.id, tuple(column.name for column in each.columns)) for each in inputs),
        plan,
        hidden,
        timings,
        emission,
        judged,
        ledger,
        lineage,
        settings,
        deferral,
    )


@contextmanager
def bound_frame(runtime: Runtime, known: Definitions, query: Slice) -> Iterator[DataFrame]:
    """A query over empty stand-ins for the relations that it names as `known`: it has columns, and no rows."""
    replacements, _, inputs = _stand_ins(known, find_references(query))
    bound = Composition().add_slice(query, replacements | window_calls(query))
    with runtime.analyzing, _schemas(runtime.spark.session, inputs) as session, translated(bound):
        yield session.sql(bound.text)


def means_the_same(runtime: Runtime, known: Definitions, view: Relation, statement: CreateView) -> bool:
    """Whether the query of a view that is there and that of a statement are the same to Spark, however written.

    Both are read with what the view was created with: its settings, and the columns that its parents had.
    """
    definition = view.view
    if definition.text == statement.query.text:
        return True
    bound, _, named = _bind(known, statement)
    columns = {each.relation: frozenset(each.columns) for each in definition.inputs}
    inputs = {each.id: each for each in (*(known.by_id[id_] for id_ in columns), *named)}
    narrowed = [_narrowed(each, columns.get(each.id)) for each in inputs.values()]
    reader = runtime.spark.plans
    with runtime.analyzing, _schemas(runtime.spark.under(definition.settings), narrowed) as session:
        try:
            old, new = session.sql(definition.bound), session.sql(bound.text)
            found = _columns(statement, new.schema)
            if [(each.name, each.type) for each in found] != [(each.name, each.type) for each in view.columns]:
                return False
            return reader.same(*(reader.prepared(reader.analyzed(each)) for each in (old, new)))
        except (PySparkException, Py4JJavaError):
            return False  # whoever replaces the view by it is told what is wrong with it


def _narrowed(relation: Relation, names: AbstractSet[str] | None) -> Relation:
    if names is None:
        return relation
    return dataclasses.replace(relation, columns=tuple(each for each in relation.columns if each.name in names))


def plan_text(runtime: Runtime, text: str, columns: Mapping[int, Mapping[str, str]], times: Times) -> ViewPlan:
    """The plan of a text over stand-ins for relations that have these columns, by number."""
    inputs = [
        Relation(
            RelationId(number),
            placeholder(number),
            Definition(),
            tuple(Column(name, parse_type(type_)) for name, type_ in found.items()),
            FIRST_EPOCH,
        )
        for number, found in columns.items()
    ]
    with runtime.analyzing, _schemas(runtime.spark.session, inputs) as session, translated():
        frame = session.sql(text)
        names = tuple(frame.columns)
        return _plan(runtime.spark.plans, session, frame, text, names, inputs, times, runtime.limits)[0]


def read_text(
    reader: PlanReader, session: SparkSession, frame: DataFrame, numbers: Mapping[str, int]
) -> QueryTree | str:
    """The tree of a query that Spark has analyzed, or why there is none that means the same to Spark."""
    try:
        prepared = reader.prepared(reader.analyzed(frame))
        query = read_query(reader.read(prepared), numbers)
        text = print_outputs(query.tree, [(column, f"o{index}") for index, column in enumerate(query.outputs)])
    except UnknownPartError as part:
        return f"{part} has no rule"
    except UnprintableError as part:
        return f"{part} cannot be written in SQL"
    except (PySparkException, Py4JJavaError) as error:
        return f"Spark does not turn its subqueries into joins ({_first_line(error)})"
    with _without_ordinals(session):
        try:
            again = reader.prepared(reader.analyzed(session.sql(text)))
        except (PySparkException, Py4JJavaError) as error:
            return f"Spark does not take what we would write for it ({_first_line(error)})"
    if not reader.same(prepared, again):
        return "Spark takes what we would write for it for another query"
    return query


def _plan(
    reader: PlanReader,
    session: SparkSession,
    frame: DataFrame,
    text: str,
    names: tuple[str, ...],
    inputs: Sequence[Relation],
    times: Times,
    limits: Limits,
) -> tuple[ViewPlan, dict[str, list[tuple[int, str]]]]:
    """The blocks of a query, and what its columns are made of."""
    numbers = {placeholder(relation.id): int(relation.id) for relation in inputs}
    whole = tuple(int(relation.id) for relation in inputs)
    query = read_text(reader, session, frame, numbers)
    if isinstance(query, str):
        return ViewPlan(WholeBlock(text, names, query, whole)), {}
    _refuse_windows_of_text(query)
    try:
        query = lowered(query)
        query = dataclasses.replace(query, tree=pushed(query.tree))
        kept = {
            column.id
            for scan in scans_of(query.tree)
            for column, name in zip(scan.columns, scan.names, strict=True)
            if times.get(scan.relation, "").lower() == name.lower()
        }
        query = dataclasses.replace(query, tree=pruned(query.tree, {each.id for each in query.outputs}, kept))
        made = lineage_of(query.tree)
        lineage = {name: list(made.get(each.id, ())) for name, each in zip(names, query.outputs, strict=True)}
        plan = decomposed(query, names, times, limits)
        for block in (*plan.hidden, plan.root):
            if isinstance(block, GroupBlock):
                has_states(block)  # fails here, if it does, rather than in an epoch
            _require_storable(rows_of(block) if isinstance(block, GroupBlock | WindowBlock) else None)
        for block in plan.hidden:
            block_columns(block)
    except UnknownPartError as part:
        return ViewPlan(WholeBlock(text, names, f"{part} has no rule", whole)), {}
    except UnstorableTypeError as error:
        return ViewPlan(WholeBlock(text, names, error.message, whole)), {}
    return plan, lineage


def _refuse_windows_of_text(query: QueryTree) -> None:
    """Refuse a window over a text: Spark would cast it to an instant, and fail at the first that is none."""
    for node in nodes_of(query.tree):
        for expression in expressions_of(node):
            for each in walk(expression):
                if isinstance(each, Call) and each.function == "UnixMicros":
                    inner = each.arguments[0]
                    if isinstance(inner, Call) and inner.function == "Cast" and inner.arguments[0].type == "STRING":
                        raise InvalidDefinitionError(
                            "a window is over time, and what this one is over is STRING",
                            hint="CAST it to TIMESTAMP in a subquery, if every text is an instant.",
                        )


_ZONED = frozenset({"TruncTimestamp", "TimestampAddInterval", "TimeAdd", "AddMonths"})
_TIMES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"})


def _require_no_zone(plan: ViewPlan, zone: str) -> None:
    """Refuse event time that goes by the zone of a session: watermarks pass through days and months of UTC only."""
    for block in (*plan.hidden, plan.root):
        if isinstance(block, WholeBlock):
            continue
        for node in nodes_of(rows_of(block).tree):
            for each in (inner for expression in expressions_of(node) for inner in walk(expression)):
                if isinstance(each, Call) and (each.function in _ZONED or _is_between_times(each)):
                    raise UnsupportedError(
                        f"a table with a time column is read, and its times in the zone of the session, {zone}",
                        detail="Watermarks pass through days, months and days that are added as those of UTC only.",
                        hint=f"Name the zone, as time_bucket(INTERVAL '1 day', ts, '{zone}') does, and set"
                        f" {TIME_ZONE} to UTC.",
                    )


def _is_between_times(call: Call) -> bool:
    inner = call.arguments[0].type if call.arguments else ""
    return call.function == "Cast" and call.type in _TIMES and inner in _TIMES and inner != call.type


def _require_storable(rows: RowBlock | None) -> None:
    for column in rows.columns if rows is not None else ():
        if parse_type(column.type) == VOID:
            raise UnstorableTypeError("a value in it has no type")


def block_columns(block: Block) -> tuple[Column, ...]:
    """The columns of a hidden block, as they are stored."""
    match block:
        case RowBlock(_, columns, names) | WindowBlock(columns=columns, names=names):
            found: Sequence[Any] = columns
        case GroupBlock(items=items, names=names):
            found = items
        case WholeBlock():
            raise UnstorableTypeError("the types of a whole are not known")
    return tuple(Column(name, parse_type(each.type)) for name, each in zip(names, found, strict=True))


@contextmanager
def _without_ordinals(session: SparkSession) -> Iterator[None]:
    """A session in which a number in GROUP BY or ORDER BY is a number."""
    settings = ("spark.sql.groupByOrdinal", "spark.sql.orderByOrdinal")
    before = {name: session.conf.get(name) for name in settings}
    for name in settings:
        session.conf.set(name, "false")
    try:
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value or "true")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _refuse_changing(reader: PlanReader, frame: DataFrame, statement: CreateView) -> None:
    """Refuse a query that gives other rows each time it is asked, whatever it reads."""
    plan = reader.analyzed(frame)
    what = reader.undetermined(plan) or ("the current time or user" if reader.changes_with_time(plan) else None)
    if what is not None:
        raise _changing(what, statement.query.place)


def _changing(what: str, place: Place) -> UnsupportedError:
    return UnsupportedError(
        f"{what} gives another value each time it is asked, so no view can stay equal to it",
        place=place,
        hint="Store such a value in a column when the row is inserted.",
    )


# -- names ------------------------------------------------------------------------------------------------------------


def _bind(
    known: Definitions, statement: CreateView
) -> tuple[Composition, tuple[RelationId, ...], tuple[Relation, ...]]:
    """The text with placeholders, the relations it names, and the stored ones behind them."""
    function = forbidden_function(statement.query)
    if function is not None:
        what = function.text if " " in function.text else f"{function.text}()"
        raise _changing(what, function.place)
    references = find_references(statement.query)
    for reference in references:
        _refuse_reference(statement, reference)
    replacements, parents, inputs = _stand_ins(known, references)
    replacements |= window_calls(statement.query)
    if statement.columns is None:
        bound = Composition().add_slice(statement.query, replacements)
    else:
        bound = Composition().add("SELECT * FROM (").add_slice(statement.query, replacements)
        bound.add(f") AS _sw_v({', '.join(each.text for each in statement.columns)})")
        plain = Composition().add_slice(statement.query, replacements)
        bound = plain if statement.materialized else bound
    return bound, parents, inputs


def _stand_ins(
    known: Definitions, references: Sequence[Reference]
) -> tuple[dict[Slice, str], tuple[RelationId, ...], tuple[Relation, ...]]:
    """The placeholders for what a text names, the relations themselves, and the stored ones behind them."""
    parents: dict[RelationId, None] = {}
    inputs: dict[RelationId, Relation] = {}
    replacements: dict[Slice, str] = {}
    for reference in references:
        relation = _relation_called(known, reference.name)
        parents[relation.id] = None
        alias = "" if reference.aliased else f" AS {quote(reference.name.last)}"
        if relation.kind == RelationKind.VIEW:
            replacements[reference.slice] = f"({relation.view.bound}){alias}"
            for each in relation.view.inputs:
                found = known.by_id[each.relation]
                kept = tuple(column for column in found.columns if column.name in each.columns)
                inputs.setdefault(found.id, dataclasses.replace(found, columns=kept))
        else:
            replacements[reference.slice] = placeholder(relation.id) + alias
            inputs[relation.id] = relation
    return replacements, tuple(parents), tuple(inputs.values())


def _relation_called(known: Definitions, name: Name) -> Relation:
    called = plain_name(name)
    found = known.called(called)
    if found is None:
        names = [each.name for each in known.by_id.values() if not each.is_hidden]
        raise UndefinedTableError(
            f'relation "{called}" does not exist',
            place=name.slice.place,
            hint=nearest(called, names) or "SHOW TABLES lists those that do.",
        )
    return found


def _refuse_reference(statement: CreateView, reference: Reference) -> None:
    name = reference.name
    if reference.as_of or reference.changes:
        raise UnsupportedError("a view reads its relations as they are, not as they were", place=reference.slice.place)
    if "$" in name.last:
        raise UnsupportedError(f'a view cannot read "{name}"', place=name.slice.place, hint="QueryTree it instead.")
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


def _refuse_unnamed(statement: CreateView, schema: StructType, known: AbstractSet[str]) -> None:
    """Refuse a column that has only the text of its expression for a name; one of those read may be called anything."""
    if statement.columns is not None:
        return
    for name in schema.names:
        if not (re.fullmatch(r"[^\W\d]\w*", name) or name in known or quote(name) in statement.query.text):
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
        _register(base, scan_name(number, Moment.AFTER), with_id, made)

    for relation in inputs:
        register(relation.id, relation.columns)
    try:
        yield base
    finally:
        for name in made:
            base.catalog.dropTempView(name)


def _register(session: SparkSession, name: str, schema: StructType, made: list[str]) -> None:
    listed_frame(session, [], schema).createOrReplaceTempView(name)
    made.append(name)


def _late_columns(
    plan: ViewPlan, judged: Judged, inputs: Sequence[Relation], hidden: tuple[tuple[Column, ...], ...]
) -> tuple[Column, ...]:
    """The columns of a row that came too late."""
    types = {int(each.id): {column.name: str(column.type) for column in each.columns} for each in inputs}
    types.update({-1 - index: {each.name: str(each.type) for each in found} for index, found in enumerate(hidden)})
    block = (*plan.hidden, plan.root)[judged.index]
    rows = with_sources(rows_of(block), judged.timing.column, types, window=judged.timing.transfer.is_window)
    found = [Column(name, parse_type(each.type)) for name, each in zip(rows.names, rows.columns, strict=True)]
    return (*found, *ENTRY)


# -- event time -------------------------------------------------------------------------------------------------------


def _timings(
    statement: CreateView, plan: ViewPlan, times: Mapping[int, str], columns: tuple[Column, ...]
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
    known: Definitions,
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
        if not any(each.id in known.timed for each in inputs):
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
    with runtime.analyzing, _schemas(runtime.spark.under(view.view.settings), inputs) as session:
        schema = session.sql(block_sql(block)).schema
    fields = schema.fields[: len(block.names)]
    return [Column(name, from_spark(each.dataType)) for name, each in zip(block.names, fields, strict=True)]

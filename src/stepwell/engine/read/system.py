"""System tables: what the catalog knows, under the namespace `stepwell`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from stepwell.catalog import (
    Transaction,
    barriers,
    control,
    deferrals,
    files,
    jobs,
    lives,
    loads,
    relations,
    views,
    watermarks,
)
from stepwell.engine.definitions import load_in
from stepwell.engine.read.deferred import buckets_of, stale_labels
from stepwell.engine.read.lineage import parents_of_column
from stepwell.engine.runtime import Runtime
from stepwell.model.durations import format_duration
from stepwell.model.errors import UndefinedTableError, nearest
from stepwell.model.files import Store
from stepwell.model.intervals import Interval, common
from stepwell.model.invalidations import InvalidationLog
from stepwell.model.jobs import JobState
from stepwell.model.lifecycle import Life, ViewState, reflected, state_of, why_stopped
from stepwell.model.relations import Chunking, Column, Relation, RelationKind, is_integer_time
from stepwell.model.rows import Rows
from stepwell.model.types import BIGINT, BOOLEAN, STRING, TIMESTAMP
from stepwell.model.views import RelationId
from stepwell.model.watermarks import NEVER, MarkRecord, written
from stepwell.plan import content_at, plan_publication
from stepwell.sql import find_references
from stepwell.sql.statements import Name, Slice
from stepwell.storage import listed_frame
from stepwell.storage.types import spark_schema

SYSTEM_NAMESPACE = "stepwell"

_PLAIN_SELECT = re.compile(rf"SELECT\s+(\*|[\w\s,]+?)\s+FROM\s+{SYSTEM_NAMESPACE}\s*\.\s*(\w+)", re.IGNORECASE)

SystemValue = int | str | bool | datetime.datetime | None


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table of the catalog's own knowledge."""

    columns: tuple[Column, ...]
    read: Callable[[Transaction, Runtime], list[tuple[SystemValue, ...]]]


def read_system_table(runtime: Runtime, name: Name) -> tuple[SystemTable, list[tuple[SystemValue, ...]]]:
    """A system table and its rows now; no JVM is needed."""
    table = SYSTEM_TABLES.get(name.last.lower())
    if table is None:
        raise UndefinedTableError(
            f'system table "{name}" does not exist',
            place=name.slice.place,
            hint=nearest(name.last, SYSTEM_TABLES) or f"There are {', '.join(sorted(SYSTEM_TABLES))}.",
        )
    with runtime.catalog.read() as tx:
        return table, table.read(tx, runtime)


def system_rows(runtime: Runtime, query: Slice) -> Rows | None:
    """The answer to a plain SELECT of one system table, by the catalog alone; None if the query is more than that."""
    match = _PLAIN_SELECT.fullmatch(query.text.strip())
    if match is None:
        return None
    start = query.start + match.start(2)
    name = Name((SYSTEM_NAMESPACE, match.group(2)), Slice(query.source, start, start + len(match.group(2))))
    table, rows = read_system_table(runtime, name)
    names = [column.name for column in table.columns]
    if match.group(1) == "*":
        return Rows(names, rows)
    wanted = [each.strip().lower() for each in match.group(1).split(",")]
    if not all(each in names for each in wanted):
        return None
    return Rows(wanted, [tuple(row[names.index(each)] for each in wanted) for row in rows])


def reads_system_alone(query: Slice) -> bool:
    """Whether a query reads system tables and nothing else: however it is written, its answer is small and finished."""
    names = [reference.name for reference in find_references(query)]
    return bool(names) and all(len(name.parts) == 2 and name.parts[0].lower() == SYSTEM_NAMESPACE for name in names)


def finished(frame: DataFrame) -> Rows:
    """The rows of a small query, with instants as the catalog itself gives them."""
    return Rows(frame.columns, [tuple(map(_in_utc, row)) for row in frame.collect()])


def _in_utc(value: object) -> object:
    return value.astimezone(datetime.UTC) if isinstance(value, datetime.datetime) else value


def system_frame(runtime: Runtime, name: Name) -> DataFrame:
    """A system table as a DataFrame, to be joined with anything."""
    table, rows = read_system_table(runtime, name)
    return listed_frame(runtime.spark.session, rows, spark_schema(table.columns))


def _tables(tx: Transaction, runtime: Runtime) -> list[tuple[SystemValue, ...]]:
    epoch = control.look(tx).readable_epoch
    found: list[tuple[SystemValue, ...]] = []
    for relation in relations.get_all(tx):
        if relation.is_hidden or not relation.is_stored:
            continue
        there = files.content(tx, relation.id, epoch)
        content = content_at(there, epoch)
        published = barriers.publication_state(tx, relation.id)[1]
        plan = plan_publication(there, files.published(tx, relation.id), epoch, published)
        chunking = relation.chunking
        found.append(
            (
                relation.name,
                relation.id,
                relation.kind.value,
                content.count,
                len(content.files),
                content.bytes,
                ", ".join(relation.key) or None,
                f"{chunking.column} every {_width(relation, chunking)}" if chunking else None,
                relation.time_column,
                relation.created_epoch,
                published,
                0 if plan is None else epoch - (published or 0),
                runtime.warehouse.location(runtime.warehouse.folder(relation.id, Store.ROWS)),
            )
        )
    return found


def _width(relation: Relation, chunking: Chunking) -> str:
    is_number = is_integer_time(relation.column(chunking.column).type)
    return str(chunking.width) if is_number else format_duration(chunking.width)


def _epochs(tx: Transaction, _: Runtime) -> list[tuple[SystemValue, ...]]:
    return [
        (
            each.epoch,
            _instant(each.committed_at),
            _instant(each.readable_at),
            each.changed,
            each.inserted,
            each.retracted,
            each.took,
        )
        for each in barriers.readable(tx)
    ]


def _views(tx: Transaction, runtime: Runtime) -> list[tuple[SystemValue, ...]]:
    all_lives = lives.get_all(tx)
    known = {relation.id: relation for relation in relations.get_all(tx)}
    found: list[tuple[SystemValue, ...]] = []
    for relation in known.values():
        if relation.kind not in (RelationKind.MATERIALIZED, RelationKind.VIEW):
            continue
        life = all_lives.get(relation.id)
        found.append(
            (
                relation.name,
                relation.id,
                relation.kind.value,
                _state(relation, life).value if life else None,
                reflected(life) if life else None,
                why_stopped(life, lambda id_: known[id_].name) if life else None,
                relation.view.policy.value if life else None,
                relation.created_epoch,
                relation.view.text,
                *_deferred(tx, runtime, relation),
            )
        )
    return found


def _state(relation: Relation, life: Life) -> ViewState:
    """A view's life in one word; of a deferred one, whether its schedule goes on."""
    return ViewState.PAUSED if relation.deferral is not None and relation.deferral.paused else state_of(life)


def _deferred(tx: Transaction, runtime: Runtime, view: Relation) -> tuple[SystemValue, ...]:
    """What is special about a deferred view: how far it is stored, its lag and schedule, how much is stale."""
    deferral = view.deferral
    if deferral is None:
        return (None,) * 4
    done = deferrals.completed(tx, view.id)
    buckets = buckets_of(deferral)
    first = buckets.storable.start
    stale = common(stale_labels(tx, load_in(runtime, tx), view, None), (Interval(first, max(first, done)),))
    endless = any(each.start == first for each in stale)
    lag = str(deferral.lag) if deferral.integer else format_duration(deferral.lag)
    return (
        written(done, integer=deferral.integer),
        lag,
        format_duration(deferral.schedule) if deferral.schedule else None,
        None if endless else buckets.count(stale, runtime.limits.counted_buckets),
    )


def _dependencies(tx: Transaction, _: Runtime) -> list[tuple[SystemValue, ...]]:
    known = {relation.id: relation for relation in relations.get_all(tx)}
    return [
        (each.name, known[parent].name, each.kind.value, known[parent].kind.value)
        for each in known.values()
        if each.definition.view and not each.is_hidden
        for parent in each.view.parents
    ]


def _refreshes(tx: Transaction, _: Runtime) -> list[tuple[SystemValue, ...]]:
    """What each epoch did to each view; the parts of a view's query that are kept apart count as the view's own."""
    known = {relation.id: relation for relation in relations.get_all(tx)}
    owners = {block: each.name for each in known.values() if each.definition.view for block in each.view.blocks}
    return [
        (
            each.epoch,
            owners.get(each.relation, known[each.relation].name),
            each.relation in owners,
            each.rule,
            each.steps,
            each.rows_in,
            each.inserted,
            each.retracted,
            each.bytes_read,
            each.jobs,
            each.microseconds,
            _instant(each.started_at),
            each.rows_there,
            each.expected,
            each.recompute_expected,
        )
        for each in views.all_refreshes(tx)
        if each.relation in known
    ]


def _lineage(tx: Transaction, runtime: Runtime) -> list[tuple[SystemValue, ...]]:
    known = load_in(runtime, tx)
    return [
        (each.name, column.name, known.name(parent), name)
        for each in known.by_id.values()
        if each.definition.view and not each.is_hidden
        for column in each.columns
        for parent, name in parents_of_column(known, each, column.name)
    ]


def _loads(tx: Transaction, _: Runtime) -> list[tuple[SystemValue, ...]]:
    names = {relation.id: relation.name for relation in relations.get_all(tx)}
    return [
        (
            each.label.text,
            names.get(each.relation),
            each.label.files,
            each.label.rows,
            each.epoch,
            _instant(each.at),
        )
        for each in loads.get_all(tx)
    ]


def _watermarks(tx: Transaction, runtime: Runtime) -> list[tuple[SystemValue, ...]]:
    known, records = load_in(runtime, tx), watermarks.get_all(tx)
    found: list[tuple[SystemValue, ...]] = []
    for id_ in known.timed:
        relation = known.by_id[id_]
        if relation.is_hidden:
            continue
        record = records.get(id_) or MarkRecord(id_)
        time = relation.time_column
        integer = time is not None and is_integer_time(relation.column(time).type)
        found.append(
            (
                relation.name,
                relation.kind.value,
                time,
                written(record.mark, integer=integer),
                None if record.mark == NEVER else record.mark,
                record.idle,
                record.rows_ahead,
                record.null_times,
            )
        )
    return found


def _late_rows(tx: Transaction, runtime: Runtime) -> list[tuple[SystemValue, ...]]:
    known = load_in(runtime, tx).by_id
    owners = {block: each.name for each in known.values() if each.definition.view for block in each.view.blocks}
    return [
        (owners.get(id_) or known[id_].name, each.epoch, each.inserted, each.retracted)
        for each in watermarks.late_counts(tx)
        if (id_ := RelationId(each.relation)) in known
    ]


def _instant(microseconds: int | None) -> datetime.datetime | None:
    if microseconds is None:
        return None
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=microseconds)


def _thresholds(tx: Transaction, runtime: Runtime) -> list[tuple[SystemValue, ...]]:
    """How far sources are watched, and how far the continuous aggregates over them are complete."""
    known = load_in(runtime, tx)
    found: list[tuple[SystemValue, ...]] = []
    for view in known.by_id.values():
        if view.deferral is not None:
            source, integer = known.by_id[view.deferral.source], view.deferral.integer
            threshold = deferrals.threshold(tx, source.id, view.deferral.column)
            ends = [NEVER if threshold is None else threshold, deferrals.completed(tx, view.id)]
            said = [written(each, integer=integer) for each in ends]
            found.append((view.name, source.name, view.deferral.column, *said, view.deferral.lag))
    return found


def _invalidations(tx: Transaction, runtime: Runtime) -> list[tuple[SystemValue, ...]]:
    """What was changed below thresholds: in the logs of sources, and in those of views."""
    known = load_in(runtime, tx)
    found: list[tuple[SystemValue, ...]] = []
    logs: dict[tuple[RelationId, str | None], tuple[InvalidationLog, bool]] = {}
    for view in known.by_id.values():
        deferral = view.deferral
        if deferral is not None:
            logs[view.id, None] = deferrals.view_log(tx, view.id), deferral.integer
            watched = [(deferral.source, deferral.column), *((id_, "") for id_ in deferral.dimensions)]
            for id_, column in watched:
                logs[id_, column] = deferrals.source_log(tx, id_, column), deferral.integer
    for (id_, time), (log, integer) in logs.items():
        for each in log:
            ends = [written(end, integer=integer) for end in (each.range.start, each.range.end)]
            found.append((known.name(id_), "view" if time is None else "source", time or None, *ends, each.epoch))
    return found


def _jobs(tx: Transaction, _: Runtime) -> list[tuple[SystemValue, ...]]:
    """What goes on beside statements, and what has ended: the latest last."""
    names = {relation.id: relation.name for relation in relations.get_all(tx)}
    return [
        (
            job.id,
            job.kind.value,
            None if job.relation is None else names.get(job.relation),
            job.asked_by.value,
            job.state.value if job.wanted is None else f"{job.state.value}, to be {job.wanted.value}",
            job.progress.phase,
            job.progress.done,
            job.progress.total,
            job.attempts,
            job.error.message if job.error else None,
            _instant(job.created_at),
            _instant(job.started_at),
            _instant(job.ended_at),
            _instant(job.not_before) if job.state == JobState.QUEUED and job.attempts else None,
        )
        for job in jobs.get_all(tx)
    ]


SYSTEM_TABLES = {
    "jobs": SystemTable(
        (
            Column("job", BIGINT),
            Column("kind", STRING),
            Column("name", STRING),
            Column("asked_by", STRING),
            Column("state", STRING),
            Column("phase", STRING),
            Column("done", BIGINT),
            Column("total", BIGINT),
            Column("attempts", BIGINT),
            Column("error", STRING),
            Column("created_at", TIMESTAMP),
            Column("started_at", TIMESTAMP),
            Column("ended_at", TIMESTAMP),
            Column("next_attempt_at", TIMESTAMP),
        ),
        _jobs,
    ),
    "thresholds": SystemTable(
        (
            Column("view", STRING),
            Column("source", STRING),
            Column("time_column", STRING),
            Column("threshold", STRING),
            Column("completed", STRING),
            Column("lag", BIGINT),
        ),
        _thresholds,
    ),
    "invalidations": SystemTable(
        (
            Column("name", STRING),
            Column("log", STRING),
            Column("time_column", STRING),
            Column("start", STRING),
            Column("end", STRING),
            Column("epoch", BIGINT),
        ),
        _invalidations,
    ),
    "views": SystemTable(
        (
            Column("name", STRING),
            Column("id", BIGINT),
            Column("kind", STRING),
            Column("state", STRING),
            Column("reflects", BIGINT),
            Column("reason", STRING),
            Column("refresh_policy", STRING),
            Column("created_epoch", BIGINT),
            Column("query", STRING),
            Column("completed", STRING),
            Column("lag", STRING),
            Column("schedule", STRING),
            Column("stale_buckets", BIGINT),
        ),
        _views,
    ),
    "dependencies": SystemTable(
        (
            Column("name", STRING),
            Column("parent", STRING),
            Column("kind", STRING),
            Column("parent_kind", STRING),
        ),
        _dependencies,
    ),
    "lineage": SystemTable(
        (
            Column("name", STRING),
            Column("column", STRING),
            Column("parent", STRING),
            Column("parent_column", STRING),
        ),
        _lineage,
    ),
    "refreshes": SystemTable(
        (
            Column("epoch", BIGINT),
            Column("name", STRING),
            Column("is_part", BOOLEAN),
            Column("rule", STRING),
            Column("step", STRING),
            Column("rows_in", BIGINT),
            Column("rows_inserted", BIGINT),
            Column("rows_retracted", BIGINT),
            Column("bytes_read", BIGINT),
            Column("jobs", BIGINT),
            Column("microseconds", BIGINT),
            Column("started_at", TIMESTAMP),
            Column("rows_there", BIGINT),
            Column("expected", BIGINT),
            Column("recompute_expected", BIGINT),
        ),
        _refreshes,
    ),
    "tables": SystemTable(
        (
            Column("name", STRING),
            Column("id", BIGINT),
            Column("kind", STRING),
            Column("rows", BIGINT),
            Column("files", BIGINT),
            Column("bytes", BIGINT),
            Column("primary_key", STRING),
            Column("chunks", STRING),
            Column("time_column", STRING),
            Column("created_epoch", BIGINT),
            Column("published_epoch", BIGINT),
            Column("behind", BIGINT),
            Column("path", STRING),
        ),
        _tables,
    ),
    "loads": SystemTable(
        (
            Column("label", STRING),
            Column("name", STRING),
            Column("files", BIGINT),
            Column("rows", BIGINT),
            Column("epoch", BIGINT),
            Column("loaded_at", TIMESTAMP),
        ),
        _loads,
    ),
    "watermarks": SystemTable(
        (
            Column("name", STRING),
            Column("kind", STRING),
            Column("time_column", STRING),
            Column("watermark", STRING),
            Column("mark", BIGINT),
            Column("idle", BOOLEAN),
            Column("rows_ahead", BIGINT),
            Column("null_times", BIGINT),
        ),
        _watermarks,
    ),
    "late_rows": SystemTable(
        (
            Column("name", STRING),
            Column("epoch", BIGINT),
            Column("rows_inserted", BIGINT),
            Column("rows_retracted", BIGINT),
        ),
        _late_rows,
    ),
    "epochs": SystemTable(
        (
            Column("epoch", BIGINT),
            Column("committed_at", TIMESTAMP),
            Column("readable_at", TIMESTAMP),
            Column("relations_changed", BIGINT),
            Column("rows_inserted", BIGINT),
            Column("rows_retracted", BIGINT),
            Column("microseconds", BIGINT),
        ),
        _epochs,
    ),
}

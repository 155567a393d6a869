"""REFRESH as a statement and as a call: what a refresh was asked for becomes a job, and what it has done, rows."""

from __future__ import annotations

import datetime
import re
from typing import Protocol

from stepwell.catalog import jobs
from stepwell.engine.define.creation import view_called
from stepwell.engine.definitions import Definitions, load_in
from stepwell.engine.inspect.staleness import require_deferred
from stepwell.engine.read.deferred import buckets_of
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import InvalidDefinitionError, SqlSyntaxError, StepwellError
from stepwell.model.intervals import Interval
from stepwell.model.jobs import AskedBy, Job, JobId, JobRequest, JobState, RefreshRequest
from stepwell.model.relations import Relation
from stepwell.model.rows import Rows
from stepwell.model.views import RelationId
from stepwell.model.watermarks import FOREVER, NEVER, moment_of, written
from stepwell.sql import parse
from stepwell.sql.statements import RefreshView, Slice


class Waits(Protocol):
    """Whoever sees to it that jobs are carried out."""

    def wait_job(self, id_: JobId, *, cancels: bool = True) -> Job: ...

    def ensure_led(self) -> None: ...

    def flush(self) -> None: ...


def answer_refresh(runtime: Runtime, body: RefreshView, leader: Waits) -> Rows:
    """Refresh a deferred view, and say what has become of it; in the background only how the job is called."""
    with runtime.catalog.read() as tx:
        view = view_called(tx, body.name)
        require_deferred(view, body.name)
        known = load_in(runtime, tx)
    assert view.deferral is not None
    levels = _levels(known, view) if body.cascade else (view.id,)
    request = RefreshRequest(levels, _window(view, body), body.force)
    if runtime.switches.background:
        job = ask_for(runtime, request)
        leader.ensure_led()
        return Rows(["job"], [(job,)], notes=[f"job {job} goes on in the background; WAIT waits for it"])
    return _told(known, levels, run_job(runtime, request, leader))


def refresh_view(
    runtime: Runtime, leader: Waits, view: str, window: tuple[object, object], *, cascade: bool, force: bool
) -> Rows:
    """The same as a call from Python: the ends of the window are datetimes, dates, texts or numbers."""
    said = [f" {word} {_literal(end)}" for word, end in zip(("FROM", "TO"), window, strict=True) if end is not None]
    text = f"REFRESH MATERIALIZED VIEW {view}{''.join(said)}{' CASCADE' * cascade}{' FORCE' * force}"
    (statement,) = parse(text)
    assert isinstance(statement.body, RefreshView)
    return answer_refresh(runtime, statement.body, leader)


def ask_for(runtime: Runtime, request: JobRequest) -> JobId:
    """Ask whoever leads for something."""
    with runtime.catalog.write() as tx:
        return jobs.add(tx, request, AskedBy.USER, runtime.clock.now())


def run_job(runtime: Runtime, request: JobRequest, leader: Waits) -> Job:
    """Return once what was asked for is done; an error if it has failed."""
    job = leader.wait_job(ask_for(runtime, request))
    require_done(job)
    return job


def require_done(job: Job) -> None:
    """Raise what a job has failed of."""
    if job.state == JobState.FAILED and job.error is not None:
        why = job.error
        raise StepwellError(why.message, detail=why.detail, hint=why.hint, sqlstate=why.sqlstate)
    if job.state == JobState.CANCELLED:
        raise StepwellError(
            f"job {job.id} was cancelled", detail="What it has committed before stays.", sqlstate="57014"
        )


def _told(known: Definitions, levels: tuple[RelationId, ...], job: Job) -> Rows:
    """What a refresh has done, a row a view."""
    rows = []
    for id_, each in zip(levels, job.outcome, strict=True):
        deferral = known.by_id[id_].deferral
        completed = written(each["completed"], integer=deferral is not None and deferral.integer)
        rows.append((each["view"], each["batches"], each["inserted"], each["retracted"], completed, each["epoch"]))
    notes = [f'view "{each["view"]}" is already up to date' for each in job.outcome if not each["batches"]]
    return Rows(["view", "batches", "inserted", "retracted", "completed", "epoch"], rows, notes=notes)


def _levels(known: Definitions, view: Relation) -> tuple[RelationId, ...]:
    """A view and the deferred ones below it, the lowest first."""
    found = [view.id]
    while view.deferral is not None and (view := known.by_id[view.deferral.source]).deferral is not None:
        found.insert(0, view.id)
    return tuple(found)


def _literal(end: object) -> str:
    if isinstance(end, int):
        return str(end)
    if isinstance(end, datetime.datetime | datetime.date):
        return f"'{end.isoformat()}'"
    return f"'{end}'"


def _window(view: Relation, body: RefreshView) -> Interval:
    assert view.deferral is not None
    integer = view.deferral.integer
    start = NEVER if body.start is None else _moment(body.start, integer)
    end = FOREVER if body.end is None else _moment(body.end, integer)
    where = body.start or body.end
    if start >= end:
        raise InvalidDefinitionError(
            "a refresh goes from an earlier time to a later one", place=where.place if where else None
        )
    window = Interval(start, end)
    if buckets_of(view.deferral).inside(window) is None:
        raise InvalidDefinitionError(
            f'no bucket of view "{view.name}" lies inside this range',
            place=where.place if where else None,
            hint="A range is taken for the whole buckets inside it.",
        )
    return window


def _moment(text: Slice, integer: bool) -> int:
    found = re.fullmatch(r"(?:\w+\s*)?'([^']*)'|(-?\s*\d+)", text.text.strip())
    if found is None or integer != (found.group(2) is not None):
        wanted = "a whole number" if integer else "a time such as TIMESTAMP '2026-01-31 12:00:00'"
        raise SqlSyntaxError(f"{text.text} is not {wanted}", place=text.place)
    if integer:
        return int(found.group(2).replace(" ", ""))
    try:
        return moment_of(datetime.datetime.fromisoformat(found.group(1)))
    except ValueError as error:
        raise SqlSyntaxError(f'"{found.group(1)}" is not a time', place=text.place) from error

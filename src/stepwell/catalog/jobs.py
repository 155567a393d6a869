"""Jobs in the catalog: who asked for what, how far it is, and when the schedules of views are due.

A leader claims a job under its term, and every transaction of the job checks both: the term still leads, and nobody
wants the job to stop. The lease is locked before the control row, as everywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from stepwell.catalog import leases, pins
from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import jobs, schedules
from stepwell.model.errors import CancelledError
from stepwell.model.jobs import (
    OPEN,
    AskedBy,
    Job,
    JobError,
    JobId,
    JobKind,
    JobProgress,
    JobRequest,
    JobState,
    RefreshRequest,
    request_of,
)
from stepwell.model.views import RelationId

_IS_OPEN = jobs.c.state.in_([each.value for each in OPEN])


def add(tx: Transaction, request: JobRequest, asked_by: AskedBy, now: int) -> JobId:
    """Ask for something to be done; whoever leads begins it."""
    row = {
        "kind": request.kind.value,
        "asked_by": asked_by.value,
        "relation_id": request.relation,
        "request": request.as_json(),
        "state": JobState.QUEUED.value,
        "phase": JobProgress().phase,
        "done": 0,
        "attempts": 0,
        "not_before": now,
        "created_at": now,
    }
    return JobId(int(tx.execute(sa.insert(jobs).values(row).returning(jobs.c.id)).scalar_one()))


def find(tx: Transaction, id_: JobId) -> Job | None:
    row = tx.execute(sa.select(jobs).where(jobs.c.id == id_)).one_or_none()
    return None if row is None else _job(row)


def get_all(tx: Transaction) -> list[Job]:
    """All that are remembered, the oldest first."""
    return [_job(row) for row in tx.execute(sa.select(jobs).order_by(jobs.c.id))]


def get_open(tx: Transaction) -> list[Job]:
    """Those of which something is still to come, the oldest first."""
    return [_job(row) for row in tx.execute(sa.select(jobs).where(_IS_OPEN).order_by(jobs.c.id))]


# -- a job's life, as its leader sees it -------------------------------------------------------------------------------


def adopt(tx: Transaction, term: int) -> None:
    """Take over what earlier leaders left behind: it begins again, from what it has committed."""
    leases.check(tx, term)
    running = sa.and_(jobs.c.state == JobState.RUNNING.value, jobs.c.term < term)
    for row in tx.execute(sa.select(jobs.c.id, jobs.c.term).where(running)).all():
        pins.unpin_all(tx, holder(row.id, row.term))
    becomes = sa.func.coalesce(jobs.c.wanted, JobState.QUEUED.value)
    tx.execute(sa.update(jobs).where(running).values(state=becomes, term=None, wanted=None))


def holder(id_: JobId, term: int) -> str:
    """Who pins an epoch for a job: no other attempt at it."""
    return f"job {id_} of term {term}"


def claim(tx: Transaction, id_: JobId, term: int, now: int) -> bool:
    """Begin a job under a term; False if it is no longer to be begun."""
    leases.check(tx, term)
    waiting = sa.and_(jobs.c.id == id_, jobs.c.state == JobState.QUEUED.value)
    claimed = {
        "state": JobState.RUNNING.value,
        "term": term,
        "started_at": sa.func.coalesce(jobs.c.started_at, now),
        "attempts": jobs.c.attempts + 1,
    }
    return bool(tx.execute(sa.update(jobs).where(waiting).values(claimed)).rowcount)


def keep(tx: Transaction, id_: JobId, term: int, progress: JobProgress) -> None:
    """Go on with a job: an error if another leads by now, or if somebody wants it to stop."""
    leases.check(tx, term)
    mine = sa.and_(jobs.c.id == id_, jobs.c.term == term, jobs.c.wanted.is_(None))
    if not tx.execute(sa.update(jobs).where(mine).values(**dataclasses.asdict(progress))).rowcount:
        raise CancelledError(f"job {id_} was stopped")


def reach(tx: Transaction, id_: JobId, request: JobRequest) -> None:
    """Remember how far a job has come, with what it has committed."""
    tx.execute(sa.update(jobs).where(jobs.c.id == id_).values(request=request.as_json()))


def end(
    tx: Transaction,
    id_: JobId,
    term: int,
    state: JobState,
    now: int,
    *,
    error: JobError | None = None,
    outcome: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Say what has become of a job that ran under a term."""
    leases.check(tx, term)
    values: dict[str, Any] = {"state": state.value, "term": None, "wanted": None}
    if state not in OPEN:
        values["ended_at"] = now
    if error is not None:
        values["error"] = dataclasses.asdict(error)
    if outcome is not None:
        values["outcome"] = [dict(each) for each in outcome]
    tx.execute(sa.update(jobs).where(jobs.c.id == id_, jobs.c.term == term).values(values))


def retry(tx: Transaction, id_: JobId, term: int, not_before: int, error: JobError) -> None:
    """Let a job that has failed be tried again, not before a time."""
    end(tx, id_, term, JobState.QUEUED, 0, error=error)
    tx.execute(sa.update(jobs).where(jobs.c.id == id_).values(not_before=not_before))


# -- what users want ---------------------------------------------------------------------------------------------------


def want(tx: Transaction, job: Job, state: JobState, now: int) -> None:
    """Let an open job be cancelled, paused or queued again; one that runs is stopped by its leader."""
    own = sa.and_(jobs.c.id == job.id, jobs.c.state == job.state.value)
    if job.state == JobState.RUNNING:
        wanted = None if state == JobState.QUEUED else state.value
        tx.execute(sa.update(jobs).where(own).values(wanted=wanted))
        return
    ended = now if state not in OPEN else None
    tx.execute(sa.update(jobs).where(own).values(state=state.value, ended_at=ended, not_before=now))


def forget_all_but(tx: Transaction, most: int) -> None:
    """Forget the oldest of those that have ended."""
    ended = sa.select(jobs.c.id).where(~_IS_OPEN).order_by(jobs.c.id.desc()).offset(most)
    tx.execute(sa.delete(jobs).where(jobs.c.id.in_(ended.scalar_subquery())))


# -- schedules ---------------------------------------------------------------------------------------------------------


def schedule(tx: Transaction, view: RelationId, due_at: int | None) -> None:
    """Let a view be refreshed when it is due, and not before; None is never."""
    tx.execute(sa.delete(schedules).where(schedules.c.relation_id == view))
    if due_at is not None:
        tx.execute(sa.insert(schedules).values(relation_id=view, due_at=due_at))


def start_schedule(tx: Transaction, view: RelationId, every: int, now: int) -> None:
    """Let a view be refreshed now, and from now on by itself."""
    if not any(job.relation == view and job.asked_by == AskedBy.SCHEDULE for job in get_open(tx)):
        add(tx, RefreshRequest((view,)), AskedBy.SCHEDULE, now)
    schedule(tx, view, now + every)


def scheduled(tx: Transaction) -> dict[RelationId, int]:
    """The views that have a schedule, and when they are due."""
    return {RelationId(row.relation_id): int(row.due_at) for row in tx.execute(sa.select(schedules))}


def unschedule(tx: Transaction, views: Sequence[RelationId]) -> None:
    tx.execute(sa.delete(schedules).where(schedules.c.relation_id.in_(views)))


def _job(row: Any) -> Job:
    return Job(
        JobId(row.id),
        JobKind(row.kind),
        AskedBy(row.asked_by),
        None if row.relation_id is None else RelationId(row.relation_id),
        request_of(JobKind(row.kind), row.request),
        JobState(row.state),
        JobProgress(row.phase, row.done, row.total),
        row.attempts,
        row.not_before,
        row.created_at,
        row.started_at,
        row.ended_at,
        None if row.wanted is None else JobState(row.wanted),
        None if row.error is None else JobError(**row.error),
        tuple(row.outcome or ()),
    )

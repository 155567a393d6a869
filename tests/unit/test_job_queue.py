"""Jobs without Spark: whose turn it is, when a schedule is due, and who may go on, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stepwell.catalog import Catalog, Transaction, jobs, leases, open_catalog, pins
from stepwell.model.epochs import Epoch
from stepwell.model.errors import CancelledError, FencedError
from stepwell.model.intervals import ALWAYS, Interval
from stepwell.model.jobs import (
    AskedBy,
    Job,
    JobError,
    JobId,
    JobKind,
    JobProgress,
    JobState,
    RefreshRequest,
    next_attempt,
    next_run,
    said_of_progress,
    startable,
)
from stepwell.model.views import RelationId

DAILY, HOURLY = RelationId(2), RelationId(3)


@pytest.fixture(params=["memory", "postgresql"])
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    url = "memory:" if request.param == "memory" else request.getfixturevalue("postgres").new_database()
    opened = open_catalog(url)
    yield opened
    opened.close()


def job(id_: int, *levels: int, state: JobState = JobState.QUEUED, not_before: int = 0) -> Job:
    request = RefreshRequest(tuple(RelationId(each) for each in levels))
    return Job(JobId(id_), JobKind.REFRESH, AskedBy.USER, request.view, request, state, JobProgress(), 0, not_before, 0)


def ids(found: list[Job]) -> list[int]:
    return [each.id for each in found]


def test_jobs_begin_in_order_and_no_two_hold_one_relation() -> None:
    assert ids(startable([job(2, 7), job(1, 7), job(3, 8)], 0, 9)) == [1, 3]
    assert ids(startable([job(1, 7, state=JobState.RUNNING), job(2, 7), job(3, 8)], 0, 9)) == [3]
    assert ids(startable([job(1, 5, 6, 7), job(2, 5), job(3, 9)], 0, 9)) == [1, 3], "a cascade holds all its levels"
    assert ids(startable([job(1, 1), job(2, 2), job(3, 3)], 0, 2)) == [1, 2]
    assert ids(startable([job(1, 1, state=JobState.RUNNING), job(2, 2), job(3, 3)], 0, 2)) == [2]


def test_who_waits_for_another_attempt_keeps_its_place_and_one_that_is_paused_does_not() -> None:
    assert ids(startable([job(1, 7, not_before=10), job(2, 7), job(3, 8)], 5, 9)) == [3]
    assert ids(startable([job(1, 7, not_before=10), job(2, 7)], 10, 9)) == [1]
    assert ids(startable([job(1, 7, state=JobState.PAUSED), job(2, 7)], 0, 9)) == [2]


def test_runs_that_nobody_led_are_one_run() -> None:
    assert next_run(due=100, every=10, now=100) == 110
    assert next_run(due=100, every=10, now=104) == 110
    assert next_run(due=100, every=10, now=179) == 180
    assert next_run(due=100, every=10, now=180) == 190


def test_each_wait_is_twice_the_one_before() -> None:
    assert [next_attempt(attempts, 1000, 10) - 1000 for attempts in (1, 2, 3, 4)] == [10, 20, 40, 80]


def test_a_request_comes_back_as_it_was_asked(catalog: Catalog) -> None:
    asked = RefreshRequest((DAILY, HOURLY), Interval(5, 70), force=True)
    with catalog.write() as tx:
        id_ = jobs.add(tx, asked, AskedBy.USER, 11)
        found = jobs.find(tx, id_)
    assert found is not None
    assert (found.request, found.relation, found.state, found.created_at) == (asked, HOURLY, JobState.QUEUED, 11)
    assert RefreshRequest((DAILY,)).window == ALWAYS
    assert said_of_progress(found) == f"waiting for job {id_} to begin"


def lead(catalog: Catalog) -> int:
    with catalog.write() as tx:
        term = leases.take(tx, leases.look(tx), "somebody", 2**60)
    assert term is not None
    return term


def test_a_job_goes_on_under_the_next_leader_and_the_one_before_can_commit_nothing(catalog: Catalog) -> None:
    first = lead(catalog)
    with catalog.write() as tx:
        id_ = jobs.add(tx, RefreshRequest((DAILY,)), AskedBy.USER, 0)
        assert jobs.claim(tx, id_, first, 1)
        assert not jobs.claim(tx, id_, first, 1), "it runs already"
        jobs.keep(tx, id_, first, JobProgress("at it", 1, 3))
        pins.pin(tx, Epoch(1), jobs.holder(id_, first), 1)
    second = lead(catalog)
    attempts: list[Callable[[Transaction], None]] = [
        lambda tx: jobs.keep(tx, id_, first, JobProgress("at it", 2, 3)),
        lambda tx: jobs.end(tx, id_, first, JobState.DONE, 5),
        lambda tx: jobs.adopt(tx, first),
    ]
    for attempt in attempts:
        with pytest.raises(FencedError), catalog.write() as tx:
            attempt(tx)
    with catalog.write() as tx:
        jobs.adopt(tx, second)
        assert pins.pinned(tx) == [], "what the first one saw need not be kept"
        found = jobs.find(tx, id_)
        assert found is not None
        assert (found.state, found.progress) == (JobState.QUEUED, JobProgress("at it", 1, 3))
        assert jobs.claim(tx, id_, second, 9)
        jobs.end(tx, id_, second, JobState.DONE, 9, outcome=[{"view": "daily"}])
        done = jobs.find(tx, id_)
    assert done is not None
    assert (done.state, done.started_at, done.ended_at, done.attempts) == (JobState.DONE, 1, 9, 2)
    assert done.outcome == ({"view": "daily"},)


@pytest.mark.parametrize("wanted", [JobState.CANCELLED, JobState.PAUSED])
def test_who_is_to_stop_hears_of_it_at_its_next_transaction(catalog: Catalog, wanted: JobState) -> None:
    term = lead(catalog)
    with catalog.write() as tx:
        id_ = jobs.add(tx, RefreshRequest((DAILY,)), AskedBy.USER, 0)
        jobs.claim(tx, id_, term, 1)
        running = jobs.find(tx, id_)
        assert running is not None
        jobs.want(tx, running, wanted, 2)
    with pytest.raises(CancelledError), catalog.write() as tx:
        jobs.keep(tx, id_, term, JobProgress())
    later = lead(catalog)
    with catalog.write() as tx:
        jobs.adopt(tx, later)  # the process that should have stopped has died
        found = jobs.find(tx, id_)
    assert found is not None
    assert (found.state, found.wanted) == (wanted, None)


def test_a_job_that_waits_is_cancelled_at_once_and_history_is_bounded(catalog: Catalog) -> None:
    with catalog.write() as tx:
        made = [jobs.add(tx, RefreshRequest((DAILY,)), AskedBy.SCHEDULE, 0) for _ in range(5)]
        for each in jobs.get_open(tx)[:4]:
            jobs.want(tx, each, JobState.CANCELLED, 7)
        assert ids(jobs.get_open(tx)) == made[4:]
        jobs.forget_all_but(tx, 2)
        assert ids(jobs.get_all(tx)) == made[2:], "the last two that have ended, and the one that has not"


def test_a_failed_attempt_says_why_and_when_the_next_one_is(catalog: Catalog) -> None:
    term = lead(catalog)
    why = JobError("no", "really not", sqlstate="22000")
    with catalog.write() as tx:
        id_ = jobs.add(tx, RefreshRequest((DAILY,)), AskedBy.SCHEDULE, 0)
        jobs.claim(tx, id_, term, 1)
        jobs.retry(tx, id_, term, 50, why)
        found = jobs.find(tx, id_)
    assert found is not None
    assert (found.state, found.error, found.not_before, found.ended_at) == (JobState.QUEUED, why, 50, None)
    assert startable([found], 49, 9) == []


def test_a_schedule_has_one_time_at_which_it_is_due(catalog: Catalog) -> None:
    with catalog.write() as tx:
        jobs.schedule(tx, DAILY, 10)
        jobs.schedule(tx, DAILY, 20)
        jobs.schedule(tx, HOURLY, 30)
        assert jobs.scheduled(tx) == {DAILY: 20, HOURLY: 30}
        jobs.schedule(tx, DAILY, None)
        jobs.unschedule(tx, [HOURLY])
        assert jobs.scheduled(tx) == {}

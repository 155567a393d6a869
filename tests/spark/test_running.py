"""Statements in flight: two threads of one database share neither a progress nor a cancellation."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import stepwell
from stepwell.cli.waiting import wait_for
from stepwell.database import RunningStatement
from stepwell.model.errors import CancelledError

ENDLESS = "SELECT count(*) FROM range(0, 100000000000, 1, 10000) WHERE id % 7 = 3"
"""Ten thousand short tasks: minutes of them, and each soon hears that it is not wanted any more."""


class Worker:
    """A statement in a thread of its own."""

    def __init__(self, db: stepwell.Database, action: Callable[[], object]) -> None:
        self._started = threading.Event()
        self.statement: RunningStatement | None = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(db, action))
        self.thread.start()
        assert self._started.wait(60)

    def _run(self, db: stepwell.Database, action: Callable[[], object]) -> None:
        try:
            with db.statement() as self.statement:
                self._started.set()
                action()
        except BaseException as error:
            self.error = error

    def wait(self) -> None:
        self.thread.join(60)
        assert not self.thread.is_alive()


@contextmanager
def endless(db: stepwell.Database) -> Iterator[Worker]:
    """A query that ends only if it is cancelled."""
    worker = Worker(db, lambda: db.sql(ENDLESS).collect())
    try:
        assert worker.statement is not None
        while not db.progress_of(worker.statement).tasks:
            assert worker.thread.is_alive()
        yield worker
    finally:
        assert worker.statement is not None
        db.cancel(worker.statement)
        worker.wait()


def test_a_cancellation_is_not_lost_to_the_next_statement(db: stepwell.Database) -> None:
    arrived, goes_on = threading.Event(), threading.Event()

    def between_two_jobs() -> None:
        arrived.set()
        assert goes_on.wait(60)
        db.sql("SELECT 1")

    worker = Worker(db, between_two_jobs)
    assert arrived.wait(60)
    db.cancel()
    db.sql("CREATE TABLE t (v INT)")  # which begins after the cancellation and is not meant by it
    goes_on.set()
    worker.wait()
    assert isinstance(worker.error, CancelledError)


def test_one_of_two_statements_is_cancelled_and_the_other_goes_on(db: stepwell.Database) -> None:
    with endless(db) as one, endless(db) as other:
        assert one.statement is not None
        db.cancel(one.statement)
        one.wait()
        assert one.error is not None
        assert other.thread.is_alive()
        assert db.running == [other.statement]


def test_two_statements_have_a_progress_each(db: stepwell.Database) -> None:
    with endless(db):
        seen = []

        def look() -> None:
            with db._runtime.doing("looking"):
                assert worker_statement() is not None
                seen.append(db.progress_of(worker_statement()))

        def worker_statement() -> RunningStatement:
            statement = db._runtime.running.current
            assert statement is not None
            return statement

        worker = Worker(db, look)
        worker.wait()
        assert worker.error is None
        assert [(each.what, each.tasks) for each in seen] == [("looking", 0)]
        assert db.progress.what != "looking"
        assert db.progress.tasks > 0


def test_a_thread_keeps_the_job_group_it_had(db: stepwell.Database) -> None:
    context = db.spark.sparkContext
    context.setJobGroup("mine", "a user's own")
    try:
        db.sql("SELECT 1")
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # which takes it away


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_cancelled_before_it_writes_is_not_applied(db: stepwell.Database, count: int) -> None:
    db.sql("CREATE TABLE t (v INT)")
    goes_on = threading.Event()

    def write() -> None:
        assert goes_on.wait(60)
        db.insert("t", [(1,)])

    worker = Worker(db, write)
    for _ in range(count):
        db.cancel()
    goes_on.set()
    worker.wait()
    assert isinstance(worker.error, CancelledError)
    assert [tuple(row) for row in db.sql("SELECT count(*) FROM t").collect()] == [(0,)]


def test_ctrl_c_before_a_statement_has_begun_cancels_it(db: stepwell.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever presses it is back at the prompt: nothing may go on behind."""
    right, heard = db.statement, threading.Event()

    @contextmanager
    def late() -> Iterator[RunningStatement]:
        signal.raise_signal(signal.SIGINT)  # the main thread hears it, which waits for us to begin
        with right() as statement:
            yield statement

    def endless() -> None:
        statement = db._runtime.running.current
        assert statement is not None
        while not statement.is_cancelled:
            assert not heard.wait(0.01)
        heard.set()
        raise CancelledError("the statement was cancelled")

    monkeypatch.setattr(db, "statement", late)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(CancelledError):
            wait_for(db, endless)
    except KeyboardInterrupt:
        pytest.fail("nobody has cancelled the statement")
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard.is_set()

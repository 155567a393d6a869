"""Jobs end to end: schedules by the clock, retries, cancel, pause and resume, and what is left for the next process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import stepwell
from stepwell.model.clock import ManualClock
from stepwell.model.limits import Limits
from views import answer

QUERY = "SELECT date_trunc('DAY', ts) AS day, count(*) AS n, sum(x) AS total FROM t GROUP BY 1"
START = 1_769_904_000_000_000  # 2026-02-01
LIMITS = Limits(job_poll_seconds=0.02)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def db(tmp_path: Path, clock: ManualClock) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path / "w", clock=clock, _limits=LIMITS) as database:
        database.sql("CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP, x INT)")
        insert(database, *range(1, 8))
        yield database


def insert(db: stepwell.Database, *days: int, first: int = 0) -> None:
    values = ", ".join(f"({first + day}, TIMESTAMP '2026-01-{day:02} 12:00:00', {day})" for day in days)
    db.sql(f"INSERT INTO t VALUES {values}")


def create(db: stepwell.Database, options: str, name: str = "daily") -> None:
    db.sql(f"CREATE MATERIALIZED VIEW {name} WITH (refresh = 'deferred'{options}) AS {QUERY}")


def jobs_of(db: stepwell.Database) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in answer(db, "SELECT job, asked_by, state, attempts FROM stepwell.jobs")]


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for what another thread does; what never comes fails."""
    for _ in range(1200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")


def stored(db: stepwell.Database) -> list[int]:
    return sorted(row[0].day for row in answer(db, "SELECT * FROM daily$stored"))


def ended(db: stepwell.Database, count: int) -> bool:
    found = jobs_of(db)
    return len(found) >= count and all(each[2] in ("done", "failed", "cancelled") for each in found)


def test_a_schedule_refreshes_by_the_clock_and_stands_while_it_is_paused(
    db: stepwell.Database, clock: ManualClock
) -> None:
    create(db, ", schedule = INTERVAL 1 HOUR, lag = INTERVAL 1 DAY")
    eventually(lambda: ended(db, 1))
    assert stored(db) == [1, 2, 3, 4, 5], "the first refresh is due at once"
    insert(db, 3, first=100)
    assert [row[1] for row in answer(db, "SELECT * FROM stepwell.invalidations") if row[0] == "t"] == ["source"]
    clock.advance(hours=5)
    eventually(lambda: ended(db, 2))
    db.sql("WAIT MATERIALIZED VIEW daily")
    assert jobs_of(db) == [(1, "schedule", "done", 1), (2, "schedule", "done", 1)], "five hours that nobody led are one"
    assert answer(db, "SELECT * FROM stepwell.invalidations WHERE end <> 'infinity'") == []
    assert sorted(answer(db, "SELECT * FROM daily$stored")) == sorted(answer(db, f"{QUERY} HAVING day(day) < 6"))

    db.sql("ALTER MATERIALIZED VIEW daily PAUSE")
    insert(db, 4, first=200)
    clock.advance(hours=9)
    time.sleep(0.5)
    assert len(jobs_of(db)) == 2
    assert [row[0] for row in answer(db, "SELECT state FROM stepwell.views")] == ["paused"]
    with pytest.raises(stepwell.StepwellError, match="is paused already"):
        db.sql("ALTER MATERIALIZED VIEW daily PAUSE")
    db.sql("ALTER MATERIALIZED VIEW daily RESUME")
    eventually(lambda: ended(db, 3))
    assert sorted(answer(db, "SELECT * FROM daily$stored")) == sorted(answer(db, f"{QUERY} HAVING day(day) < 6"))
    db.sql("DROP MATERIALIZED VIEW daily")
    clock.advance(hours=9)
    time.sleep(0.2)
    assert len(jobs_of(db)) == 3


def test_a_policy_leaves_alone_what_lies_before_its_start_and_after_its_end(
    db: stepwell.Database, clock: ManualClock
) -> None:
    create(db, ", schedule = INTERVAL 1 HOUR, start_offset = INTERVAL 4 DAYS, end_offset = INTERVAL 1 DAY")
    eventually(lambda: ended(db, 1))
    assert stored(db) == [4, 5]
    assert sorted(answer(db, "SELECT * FROM daily")) == sorted(answer(db, QUERY))
    report = db.refresh("daily", "2026-01-01", "2026-01-03")
    assert stored(db) == [1, 2, 4, 5]
    assert report.columns[0] == "view"
    assert "start_offset = INTERVAL '4 days'" in answer(db, "SHOW CREATE MATERIALIZED VIEW daily")[0][1]
    for options, said in (
        ("schedule = INTERVAL 0 SECONDS", "more than nothing"),
        ("schedule = 5", "more than nothing"),
        ("start_offset = INTERVAL 1 HOUR", "inside the end_offset"),
        ("start_offset = 7", "an INTERVAL"),
        ("lag = INTERVAL 9 DAYS", "inside the lag"),
    ):
        with pytest.raises(stepwell.StepwellError, match=said):
            db.sql(f"ALTER MATERIALIZED VIEW daily SET ({options})")


def test_a_scheduled_refresh_that_fails_is_tried_again_later_and_then_given_up(
    db: stepwell.Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = True

    def fail(name: str) -> None:
        if failing and name == "refresh.written":
            raise OSError("the disk is away")

    monkeypatch.setattr("stepwell.engine.maintain.deferred.failpoint", fail)
    create(db, ", schedule = INTERVAL 1 DAY")
    for attempt in range(1, LIMITS.job_tries):
        eventually(lambda attempt=attempt: jobs_of(db) == [(1, "schedule", "queued", attempt)])  # type: ignore[misc]
        assert answer(db, "SELECT error FROM stepwell.jobs") == [("OSError: the disk is away",)]
        clock.advance(seconds=2**attempt)
    eventually(lambda: jobs_of(db) == [(1, "schedule", "failed", LIMITS.job_tries)])
    with pytest.raises(stepwell.StepwellError, match="the disk is away"):
        db.sql("WAIT MATERIALIZED VIEW daily")
    with pytest.raises(stepwell.StepwellError, match="the disk is away"):
        db.sql("REFRESH MATERIALIZED VIEW daily")
    assert jobs_of(db)[1] == (2, "user", "failed", 1), "who waits hears of it at once"
    failing = False
    clock.advance(days=1)
    eventually(lambda: ended(db, 3))
    assert jobs_of(db)[2][2] == "done"
    assert sorted(answer(db, "SELECT * FROM daily")) == sorted(answer(db, QUERY))


class Gate:
    """A place inside a refresh at which it waits until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, times: int) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self._name, self._times = name, times
        monkeypatch.setattr("stepwell.engine.maintain.deferred.failpoint", self._pass)

    def _pass(self, name: str) -> None:
        if name == self._name:
            self._times -= 1
            if self._times == 0:
                self.reached.set()
                assert self.open.wait(60)


def test_a_refresh_in_the_background_can_be_paused_resumed_and_cancelled(
    db: stepwell.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(db, ", batch = 1")
    db.sql("SET background_ddl = true")
    gate = Gate(monkeypatch, "refresh.batch", 2)
    assert answer(db, "REFRESH MATERIALIZED VIEW daily") == [(1,)]
    assert gate.reached.wait(60)
    assert answer(db, "SHOW JOBS")[0][4:8] == ("running", 'refreshing "daily"', 2, 6)
    db.sql("PAUSE JOB 1")
    with pytest.raises(stepwell.StepwellError, match="job 1 is paused already"):
        db.sql("PAUSE JOB 1")
    gate.open.set()
    eventually(lambda: jobs_of(db)[0][2] == "paused")
    with pytest.raises(stepwell.StepwellError, match="job 1 is paused"):
        db.sql("WAIT")
    assert stored(db) == [5, 6], "two batches are there, the newest first"
    assert sorted(answer(db, "SELECT * FROM daily")) == sorted(answer(db, QUERY))
    db.sql("RESUME JOB 1")
    db.sql("WAIT")
    assert stored(db) == [1, 2, 3, 4, 5, 6]
    gate = Gate(monkeypatch, "refresh.written", 1)
    db.sql("REFRESH MATERIALIZED VIEW daily FORCE")
    assert gate.reached.wait(60)
    db.sql("CANCEL JOB 2")
    gate.open.set()
    with pytest.raises(stepwell.StepwellError, match="job 2 was cancelled") as caught:
        db.sql("WAIT MATERIALIZED VIEW daily")
    assert caught.value.sqlstate == "57014"
    for text, said in (("CANCEL JOB 2", "is cancelled already"), ("RESUME JOB 1", "is done already"),
                       ("CANCEL JOB 77", "there is no job 77"), ("PAUSE JOB x", "the number of a job")):  # fmt: skip
        with pytest.raises(stepwell.StepwellError, match=said):
            db.sql(text)
    db.sql("SET background_ddl = false")
    db.sql("REFRESH MATERIALIZED VIEW daily")
    assert answer(db, "VERIFY daily")[0][2] is True


def test_whoever_stops_waiting_cancels_and_ddl_ends_a_refresh_at_its_next_batch(
    db: stepwell.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(db, ", batch = 1")
    said: list[stepwell.StepwellError] = []

    def refresh() -> None:
        try:
            db.sql("REFRESH MATERIALIZED VIEW daily")
        except stepwell.StepwellError as error:
            said.append(error)

    def begin(name: str, times: int) -> tuple[Gate, threading.Thread]:
        gate, thread = Gate(monkeypatch, name, times), threading.Thread(target=refresh)
        thread.start()
        assert gate.reached.wait(60)
        return gate, thread

    gate, thread = begin("refresh.batch", 1)
    db.cancel()
    thread.join()
    gate.open.set()
    assert said.pop().sqlstate == "57014"
    eventually(lambda: ended(db, 1))
    assert jobs_of(db)[0][2] == "cancelled"
    db.flush()  # nobody has waited for the barrier of its batch
    assert stored(db) == [6]
    gate, thread = begin("refresh.written", 1)
    db.sql("ALTER MATERIALIZED VIEW daily RENAME TO days")
    db.sql("ALTER MATERIALIZED VIEW days RENAME TO daily; ALTER TABLE t ADD COLUMN y INT")
    gate.open.set()
    thread.join()
    assert "was altered meanwhile" in said.pop().message
    gate, thread = begin("refresh.written", 1)
    db.sql("DROP MATERIALIZED VIEW daily")
    gate.open.set()
    thread.join()
    assert "was dropped meanwhile" in said.pop().message


def test_close_leaves_a_job_to_the_next_process_which_goes_on_with_it(
    tmp_path: Path, db: stepwell.Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(db, ", batch = 1")
    db.sql("SET background_ddl = true")
    gate = Gate(monkeypatch, "refresh.batch", 2)
    db.sql("REFRESH MATERIALIZED VIEW daily")
    assert gate.reached.wait(60)
    threading.Timer(0.5, gate.open.set).start()
    db.close()
    with stepwell.connect(tmp_path / "w", clock=clock, _limits=LIMITS) as again:
        again.sql("WAIT")
        assert jobs_of(again)[0][1:] == ("user", "done", 2)
        assert stored(again) == [1, 2, 3, 4, 5, 6]
        assert answer(again, "VERIFY daily")[0][2] is True


def test_a_cascade_brings_all_levels_to_one_cut_while_writers_write(
    db: stepwell.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the levels a late row comes: no level has it stored, and all of their logs know of it."""
    create(db, "")
    weeks = "SELECT time_bucket(INTERVAL 2 DAYS, day) AS two, sum(total) AS total, sum(n) AS n FROM daily GROUP BY 1"
    db.sql(f"CREATE MATERIALIZED VIEW wide WITH (refresh = 'deferred') AS {weeks}")
    gate = Gate(monkeypatch, "refresh.written", 2)  # of the second level
    thread = threading.Thread(target=lambda: db.sql("REFRESH MATERIALIZED VIEW wide CASCADE"))
    thread.start()
    assert gate.reached.wait(60)
    before = {name: sorted(answer(db, f"SELECT * FROM {name}$direct")) for name in ("daily", "wide")}
    insert(db, 2, first=100)
    gate.open.set()
    thread.join()
    assert sorted(answer(db, "SELECT * FROM daily$stored")) == [row for row in before["daily"] if row[0].day < 7]
    assert sorted(answer(db, "SELECT * FROM wide$stored")) == before["wide"][:3]
    for name in ("daily", "wide"):
        assert sorted(answer(db, f"SELECT * FROM {name}")) == sorted(answer(db, f"SELECT * FROM {name}$direct"))
    db.sql("REFRESH MATERIALIZED VIEW wide CASCADE")
    assert answer(db, "VERIFY wide")[0][2] is True

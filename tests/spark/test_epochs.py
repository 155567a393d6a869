"""Many epochs: few files, few jobs, the loop and its settings, retention and vacuum."""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

import stepwell
import writing
from stepwell.catalog import control, files, pins
from stepwell.engine import vacuum
from stepwell.model.clock import ManualClock
from stepwell.model.epochs import Epoch
from stepwell.model.errors import DataFileError, EpochNotRetainedError, WarehouseError

HOUR = 3_600_000_000


def jobs_of(db: stepwell.Database, text: str) -> int:
    """How many Spark jobs a query starts."""
    context = db.spark.sparkContext
    group = f"jobs-{time.monotonic_ns()}"
    context.setJobGroup(group, text)
    try:
        frame = db.sql(text)
        assert isinstance(frame, DataFrame)
        frame.collect()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None takes it away
    return len(context.statusTracker().getJobIdsForGroup(group))


def live_files(db: stepwell.Database, name: str = "t") -> int:
    shown = db.sql("SELECT name, files FROM stepwell.tables")
    assert isinstance(shown, stepwell.Rows)
    return int(dict(shown.tuples())[name])


MANY = 1000 if os.environ.get("STEPWELL_TORTURE") else 300


def test_after_many_epochs_a_table_has_few_files_and_is_read_with_as_few_jobs(db: stepwell.Database) -> None:
    relation = writing.table(db)
    db.sql("SELECT 1").collect()  # so that heavier merges run in the background, as they do in a session that reads
    for value in range(10):
        writing.write(db, relation, [value])
    jobs = jobs_of(db, "SELECT * FROM t")
    for value in range(10, MANY):
        writing.write(db, relation, [value])
    assert live_files(db) <= 64
    assert jobs_of(db, "SELECT * FROM t") == jobs
    assert sorted(row[0] for row in db.sql("SELECT v FROM t").collect()) == list(range(MANY))
    half = MANY // 2  # the first epoch made the table, so each has the number of its value, and two more
    held = db.sql(f"SELECT count(*), max(v) FROM t VERSION AS OF {half}").collect()[0]
    assert tuple(held) == (half - 1, half - 2)
    changed = db.sql(f"SELECT _epoch, v FROM changes(t, {half - 2}, {half + 1}) ORDER BY 1").collect()
    assert [tuple(row) for row in changed] == [(epoch, epoch - 2) for epoch in (half - 1, half, half + 1)]


def test_an_epoch_with_nothing_in_it_costs_no_job_and_changes_nothing(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a INT)")
    db.sql("INSERT INTO t VALUES (1)")
    before = db.epoch
    assert db.sql("UPDATE t SET a = a").collect()[0].epoch is None
    assert db.sql("DELETE FROM t WHERE a = 5").collect()[0].epoch is None
    assert db.flush() == before


def test_rows_are_computed_by_spark_even_if_it_is_one(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a INT); CREATE TABLE k (id INT PRIMARY KEY, v INT); INSERT INTO k VALUES (1, 1)")
    jobs = db.spark.sparkContext._jsc.sc().statusStore()
    for text in (
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 2",
        "DELETE FROM t",
        "INSERT INTO k VALUES (1, 2)",
        "TRUNCATE TABLE k",
    ):
        before = _last_job(jobs)
        db.sql(text)
        assert _last_job(jobs) > before, text


def _last_job(jobs: Any) -> int:
    """The number of the last job that Spark has begun, whatever group it belongs to."""
    found = jobs.jobsList(None)
    return max(int(found.apply(index).jobId()) for index in range(found.size()))


def test_with_an_interval_writes_are_acknowledged_first_and_readable_later(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a INT); SET barrier_interval = '1 hour'")
    db.sql("INSERT INTO t VALUES (1)")
    assert db.sql("SELECT * FROM t").collect() == []
    db.sql("UPDATE t SET a = 2")  # a statement that changes rows sees what is acknowledged
    db.sql("FLUSH")
    assert [row.a for row in db.sql("SELECT a FROM t").collect()] == [2]
    assert [(row.a, row._diff) for row in db.sql("SELECT * FROM changes(t, 1)").collect()] == [(2, 1)]


def test_with_an_interval_the_loop_makes_epochs_by_itself(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a INT); SET barrier_interval = '100 milliseconds'")
    db.sql("INSERT INTO t VALUES (1)")
    for _ in range(100):
        if db.sql("SELECT * FROM t").collect():
            return
        time.sleep(0.1)
    pytest.fail("no barrier came")


def test_a_session_that_finds_an_interval_set_runs_the_loop_itself(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE t (a INT); SET barrier_interval = '100 milliseconds'")
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("INSERT INTO t VALUES (1)")
        for _ in range(100):
            if db.sql("SELECT * FROM t").collect():
                return
            time.sleep(0.1)
        pytest.fail("nobody ran the loop")


def test_two_deletes_of_one_row_in_one_interval_take_it_once(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as one, stepwell.connect(tmp_path / "w") as other:
        one.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (1), (2); SET barrier_interval = '1 hour'")
        other.sql("SET barrier_interval = '1 hour'")
        one.sql("DELETE FROM t WHERE a = 1")
        other.sql("DELETE FROM t WHERE a = 1")
        one.sql("FLUSH")
        assert [row.a for row in one.sql("SELECT a FROM t").collect()] == [2]
        counts = one.sql("SELECT a, sum(_diff) AS n FROM changes(t, 1) GROUP BY a ORDER BY a").collect()
        assert [tuple(row) for row in counts] == [(1, 0), (2, 1)]


def test_old_epochs_go_with_the_retention_but_not_while_pinned(tmp_path: Path) -> None:
    clock = ManualClock()
    with stepwell.connect(tmp_path / "w", clock=clock) as db:
        db.sql("SET retention = '1 day'; CREATE TABLE t (a INT)")
        for value in range(4):
            db.sql(f"INSERT INTO t VALUES ({value})")
            clock.advance(hours=1)
        db.sql("DELETE FROM t WHERE a = 0; OPTIMIZE t")
        with db._runtime.catalog.write() as tx:
            pin = pins.pin(tx, Epoch(3), "a test", 0)
        clock.advance(days=2)
        db.sql("INSERT INTO t VALUES (9); VACUUM")
        assert db.sql("SELECT count(*) FROM t VERSION AS OF 3").collect()[0][0] == 2
        with db._runtime.catalog.write() as tx:
            pins.unpin(tx, pin)
        db.sql("VACUUM")
        with pytest.raises(EpochNotRetainedError) as caught:
            db.sql("SELECT * FROM t VERSION AS OF 3")
        assert "oldest epoch kept is" in str(caught.value)
        assert sorted(row.a for row in db.sql("SELECT a FROM t").collect()) == [1, 2, 3, 9]
        with pytest.raises(EpochNotRetainedError):
            db.changes("t", after=0)


def test_a_lazy_reader_finds_its_files_for_an_hour(tmp_path: Path) -> None:
    clock = ManualClock()
    with stepwell.connect(tmp_path / "w", clock=clock) as db:
        db.sql("SET retention = '0 seconds'; CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)")
        lazy = db.sql("SELECT * FROM t")
        db.sql("DELETE FROM t WHERE a = 1; OPTIMIZE t")
        clock.advance(hours=0.9)
        vacuum(db._runtime, 0)
        assert len(lazy.collect()) == 2
        clock.advance(hours=0.2)
        assert vacuum(db._runtime, 0) > 0
        with pytest.raises(Exception, match="parquet"):
            lazy.collect()
        assert [row.a for row in db.sql("SELECT a FROM t").collect()] == [2]


def test_a_dropped_table_leaves_the_disk_and_its_name_starts_anew(tmp_path: Path) -> None:
    clock = ManualClock()
    with stepwell.connect(tmp_path / "w", clock=clock) as db:
        db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1); DROP TABLE t; CREATE TABLE t (b STRING)")
        assert db.sql("SELECT * FROM t").columns == ["b"]
        assert (tmp_path / "w/data/1").exists()
        clock.advance(hours=2)
        db.sql("VACUUM")
        assert not (tmp_path / "w/data/1").exists()


def test_timestamps_lead_to_the_epoch_that_was_current(tmp_path: Path) -> None:
    clock = ManualClock(at=1_767_225_600_000_000)  # 2026-01-01
    with stepwell.connect(tmp_path / "w", clock=clock) as db:
        db.sql("CREATE TABLE t (a INT)")
        for value in range(3):
            clock.advance(hours=1)
            db.sql(f"INSERT INTO t VALUES ({value})")
        held = db.sql("SELECT count(*) FROM t TIMESTAMP AS OF '2026-01-01 02:30:00'").collect()
        assert held[0][0] == 2
        with pytest.raises(EpochNotRetainedError):
            db.sql("SELECT * FROM t TIMESTAMP AS OF '2025-01-01'")
        shown = db.sql("SELECT epoch, readable_at FROM stepwell.epochs")
        assert isinstance(shown, stepwell.Rows)
        assert shown.tuples()[-1] == (4, datetime.datetime(2026, 1, 1, 3, tzinfo=datetime.UTC))


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_file_that_is_missing_or_damaged_is_named(db: stepwell.Database, tmp_path: Path, harm: str) -> None:
    db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    [path] = (tmp_path / "warehouse/data/1/rows").glob("*.parquet")
    if harm == "missing":
        path.unlink()
        with pytest.raises(DataFileError, match=path.name):
            db.sql("SELECT * FROM t")
    else:
        path.write_bytes(path.read_bytes()[:40])
        with pytest.raises(DataFileError, match=path.name):
            db.sql("INSERT INTO t SELECT * FROM t")
        with pytest.raises(Exception, match=path.name):
            db.sql("SELECT * FROM t").collect()


def test_a_warehouse_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WarehouseError, match="cannot be written"):
        stepwell.connect(tmp_path / "file" / "warehouse")


def test_a_foreign_session_keeps_its_settings_and_lends_its_rows(db: stepwell.Database, tmp_path: Path) -> None:
    theirs = db.spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    theirs.conf.set("spark.sql.ansi.enabled", "false")
    with stepwell.connect(tmp_path / "other", spark=theirs) as other:
        other.sql("CREATE TABLE t (a INT, b STRING)")
        other.insert("t", theirs.createDataFrame([("x", 1)], "b STRING, a INT"))
        assert [tuple(row) for row in other.sql("SELECT * FROM t").collect()] == [(1, "x")]
        assert other.spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert theirs.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert theirs.conf.get("spark.sql.ansi.enabled") == "false"
    assert theirs.sql("SHOW VIEWS").collect() == []


def test_reads_of_the_file_list_stay_the_same_after_compaction(db: stepwell.Database) -> None:
    relation = writing.table(db)
    for value in range(30):
        writing.write(db, relation, [value])
    with db._runtime.catalog.read() as tx:
        epoch = control.look(tx).readable_epoch
        assert len(files.content(tx, relation.id, epoch)) < 30
    for at in (5, 12, 31):
        assert db.sql(f"SELECT count(*) FROM t VERSION AS OF {at}").collect()[0][0] == at - 1

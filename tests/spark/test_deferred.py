"""Continuous aggregates: what is read equals the query at every moment, whatever is stored, late, moved or dropped."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepwell
from stepwell.catalog import deferrals
from stepwell.engine.definitions import load
from stepwell.engine.maintain import materializing
from stepwell.engine.read.deferred import DeferredReads, Face, stale_labels
from stepwell.model.intervals import ALWAYS, Intervals, without
from views import answer, contents

TORTURE = bool(os.environ.get("STEPWELL_TORTURE"))

TRADES = "CREATE TABLE trades (id INT PRIMARY KEY, ts TIMESTAMP, symbol STRING, price DOUBLE, amount INT)"
DAILY = (
    "SELECT time_bucket(INTERVAL 1 DAY, ts) AS day, symbol, avg(price) AS mean, max(price) AS high, count(*) AS n"
    " FROM trades GROUP BY 1, 2"
)


def deferred(name: str, query: str, options: str = "") -> str:
    said = "".join(f", {each}" for each in [options] if each)
    return f"CREATE MATERIALIZED VIEW {name} WITH (refresh = 'deferred'{said}) AS {query}"


def rows(db: stepwell.Database, text: str) -> Counter[Any]:
    return Counter(answer(db, text))


def at(day: int, hour: int = 0) -> str:
    return f"TIMESTAMP '2026-01-{day:02} {hour:02}:00:00'"


def insert(db: stepwell.Database, *trades: tuple[int, str, str, float]) -> None:
    values = ", ".join(f"({id_}, {ts}, '{symbol}', {price}D, 1)" for id_, ts, symbol, price in trades)
    db.sql(f"INSERT INTO trades VALUES {values}")


def log_of(db: stepwell.Database, name: str) -> list[tuple[Any, ...]]:
    found = answer(db, "SELECT name, log, start, end, epoch FROM stepwell.invalidations")
    return [each[1:] for each in found if each[0] == name]


def test_a_view_an_hour_behind_shows_a_late_trade_at_once_and_stores_it_when_refreshed(db: stepwell.Database) -> None:
    db.sql(TRADES)
    insert(db, (1, at(1, 10), "a", 1.0), (2, at(1, 11), "a", 3.0), (3, at(2, 10), "a", 5.0), (4, "NULL", "n", 9.0))
    insert(db, (5, at(3, 10), "b", 7.0))
    db.sql(deferred("daily", DAILY, "lag = INTERVAL 1 HOUR"))
    assert rows(db, "SELECT * FROM daily") == rows(db, DAILY)
    assert answer(db, "SELECT * FROM daily$stored") == []
    (report,) = answer(db, "REFRESH MATERIALIZED VIEW daily")
    assert report[:5] == ("daily", 1, 2, 0, "2026-01-03 00:00:00")
    assert {row[0].day for row in answer(db, "SELECT day FROM daily$stored")} == {1, 2}
    assert rows(db, "SELECT * FROM daily") == rows(db, DAILY)
    insert(db, (6, at(1, 12), "a", 1e300))  # which cannot be added the fast way
    (entry,) = log_of(db, "trades")
    assert entry[:3] == ("source", "2026-01-01 12:00:00", "2026-01-01 12:00:00.000001")
    assert rows(db, "SELECT * FROM daily") == rows(db, DAILY)
    stale = answer(db, "EXPLAIN STALENESS daily")
    assert ("2026-01-01 00:00:00", "2026-01-02 00:00:00", '"trades" has changed', db.epoch, 1) in stale
    assert answer(db, "REFRESH MATERIALIZED VIEW daily")[0][1:4] == (1, 1, 1)
    assert log_of(db, "trades") == []
    assert rows(db, "SELECT * FROM daily$stored") == Counter(r for r in rows(db, DAILY) if r[0] and r[0].day < 3)
    again = db.sql("REFRESH MATERIALIZED VIEW daily")
    assert isinstance(again, stepwell.Rows)
    assert again.notes == ['view "daily" is already up to date']
    assert answer(db, "VERIFY MATERIALIZED VIEW daily")[0][2] is True
    db.sql("TRUNCATE TABLE trades")
    assert answer(db, "SELECT * FROM daily") == []
    db.sql("REFRESH MATERIALIZED VIEW daily TO TIMESTAMP '2026-01-02 12:00:00'")
    assert {row[0].day for row in answer(db, "SELECT day FROM daily$stored")} == {2}, (
        "a window is the buckets inside it"
    )


def test_a_fresh_range_offers_spark_no_file_of_the_source(db: stepwell.Database) -> None:
    db.sql(TRADES.replace("ts TIMESTAMP", "ts TIMESTAMP NOT NULL"))
    for day in (1, 2, 3):
        insert(db, (day, at(day, 9), "a", day))
    db.sql(deferred("daily", DAILY, "lag = -INTERVAL 1 DAY"))
    db.sql("REFRESH MATERIALIZED VIEW daily")
    assert offered(db, "daily") == []
    insert(db, (9, at(2, 11), "a", 4.0))
    assert len(offered(db, "daily")) == 2, "the files of that day alone"
    assert rows(db, "SELECT * FROM daily") == rows(db, DAILY)


def offered(db: stepwell.Database, name: str) -> list[str]:
    """The files of sources that a read hands to Spark."""
    runtime = db._runtime
    view = load(runtime).called(name)
    assert view is not None
    reads = DeferredReads(runtime, db.spark, db.epoch)
    reads.face(view, Face.USER)
    return reads.offered


def test_two_views_of_one_source_share_a_threshold_and_have_logs_of_their_own(db: stepwell.Database) -> None:
    hourly = "SELECT date_trunc('HOUR', ts) AS hour, sum(amount) AS total FROM trades GROUP BY 1"
    db.sql(TRADES)
    insert(db, (1, at(1, 1), "a", 1.0), (2, at(2, 5), "a", 2.0), (3, at(3, 1), "b", 3.0))
    db.sql(f"{deferred('daily', DAILY)}; {deferred('hourly', hourly)}")
    db.sql("REFRESH MATERIALIZED VIEW daily; REFRESH MATERIALIZED VIEW hourly")
    db.sql("UPDATE trades SET ts = TIMESTAMP '2026-01-02 07:30:00' WHERE id = 1")
    db.sql("REFRESH MATERIALIZED VIEW hourly")
    assert log_of(db, "trades") == []
    assert log_of(db, "daily")[0][1:3] == ("2026-01-01 00:00:00", "2026-01-03 00:00:00")
    assert rows(db, "SELECT * FROM hourly$stored") == Counter(r for r in rows(db, hourly) if r[0].day < 3)
    assert rows(db, "SELECT * FROM daily") == rows(db, DAILY)
    db.sql("DROP MATERIALIZED VIEW daily")
    assert [each[0] for each in answer(db, "SELECT view FROM stepwell.thresholds")] == ["hourly"]
    db.sql("DROP MATERIALIZED VIEW hourly")
    with db._runtime.catalog.read() as tx:
        source = load(db._runtime).called("trades")
        assert source is not None
        assert deferrals.threshold(tx, source.id, "ts") is None
    insert(db, (8, at(1, 2), "a", 1.0))
    assert answer(db, "SELECT * FROM stepwell.invalidations") == []


def test_dimensions_hierarchies_and_children_of_every_kind(db: stepwell.Database) -> None:
    """A dimension that changes touches all; months of days see a late row before any refresh; children see rows stored."""
    named = (
        "SELECT time_bucket(INTERVAL 1 DAY, ts) AS day, s.label AS label, sum(t.amount) AS total, count(*) AS n"
        " FROM trades t JOIN symbols s ON t.symbol = s.symbol GROUP BY 1, 2"
    )
    monthly = "SELECT date_trunc('MONTH', day) AS month, sum(total) AS total FROM named GROUP BY 1"
    counts = "SELECT label, count(*) AS days FROM named GROUP BY label"
    db.sql(f"{TRADES}; CREATE TABLE symbols (symbol STRING, label STRING)")
    db.sql("INSERT INTO symbols VALUES ('a', 'first'), ('b', 'second')")
    insert(db, (1, at(1, 1), "a", 1.0), (2, at(2, 5), "b", 2.0), (3, at(3, 1), "a", 3.0))
    db.sql(deferred("named", named))
    db.sql(f"{deferred('monthly', monthly, 'lag = -INTERVAL 40 DAYS')}; CREATE MATERIALIZED VIEW counts AS {counts}")

    def follows() -> None:
        assert rows(db, "SELECT * FROM named") == rows(db, named)
        expected = f"SELECT date_trunc('MONTH', day) AS month, sum(total) AS total FROM ({named}) GROUP BY 1"
        assert rows(db, "SELECT * FROM monthly") == rows(db, expected)
        stored = "SELECT label, count(*) AS days FROM named$stored GROUP BY label"
        assert rows(db, "SELECT * FROM counts") == rows(db, stored)

    follows()
    db.sql("REFRESH MATERIALIZED VIEW monthly CASCADE")
    follows()
    insert(db, (7, at(1, 6), "b", 1.0))
    follows()
    db.sql("REFRESH MATERIALIZED VIEW named")
    assert answer(db, "SELECT * FROM counts WHERE label = 'second'") == [("second", 2)]
    follows()
    db.sql("UPDATE symbols SET label = 'third' WHERE symbol = 'a'")
    follows()
    db.sql("REFRESH MATERIALIZED VIEW monthly CASCADE")
    follows()
    assert answer(db, "VERIFY monthly")[0][2] is True
    with pytest.raises(stepwell.StepwellError, match="cannot be dropped"):
        db.sql("DROP MATERIALIZED VIEW named")


def test_a_continuous_view_is_a_source(db: stepwell.Database) -> None:
    db.sql(TRADES)
    insert(db, (1, at(1, 1), "a", 1.0), (2, at(2, 5), "b", 2.0))
    bars = "SELECT date_trunc('HOUR', ts) AS hour, sum(amount) AS total FROM trades GROUP BY 1"
    daily = "SELECT date_trunc('DAY', hour) AS day, sum(total) AS total FROM bars GROUP BY 1"
    db.sql(f"CREATE MATERIALIZED VIEW bars AS {bars}; {deferred('daily', daily)}")
    db.sql("REFRESH MATERIALIZED VIEW daily")
    insert(db, (3, at(1, 1), "a", 1.0))
    assert [each[0] for each in log_of(db, "bars")] == ["source"]
    assert rows(db, "SELECT * FROM daily") == rows(db, daily)
    db.sql("REFRESH MATERIALIZED VIEW daily")
    assert rows(db, "SELECT * FROM daily$stored") == Counter(r for r in rows(db, daily) if r[0].day < 2)


def test_a_late_row_in_a_month_computes_its_day_anew_and_no_other(
    db: stepwell.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partial results by day of the source: what they come to is the query, whatever its aggregates."""
    monthly = (
        "SELECT date_trunc('MONTH', ts) AS month, symbol, avg(price) AS mean, max(price) AS high, count(*) AS n,"
        " sum(amount) FILTER (WHERE price > 2) AS some, max_by(id, price) AS best FROM trades GROUP BY 1, 2"
        " HAVING count(*) > 1"
    )
    db.sql(TRADES.replace("amount INT)", "amount INT) CHUNK BY ts"))
    for day in (1, 5, 9):
        insert(db, *((10 * day + k, at(day, k), "ab"[k % 2], k + day / 100) for k in range(6)))
    db.sql(deferred("monthly", monthly, "lag = -INTERVAL 40 DAYS"))
    seen: list[list[str]] = []
    touched_chunks = materializing.touched_chunks

    def spy(runtime: Any, reads: DeferredReads, view: Any, times: Intervals) -> materializing.Made:
        made = touched_chunks(runtime, reads, view, times)
        seen.append(reads.offered)
        return made

    monkeypatch.setattr("stepwell.engine.maintain.deferred.touched_chunks", spy)
    assert answer(db, "REFRESH MATERIALIZED VIEW monthly")[0][2:4] == (2, 0)
    assert len(answer(db, "SELECT * FROM monthly$state")) == 6
    first, fifth, ninth = seen[0]
    for number, price in enumerate(("1.5D", "1e300D", "DOUBLE('NaN')", "-0.0D"), 100):
        db.sql(f"INSERT INTO trades VALUES ({number}, {at(5, number % 24)}, 'a', {price}, 1)")
        assert contents(db, "SELECT * FROM monthly") == contents(db, monthly)
    db.sql("REFRESH MATERIALIZED VIEW monthly")
    assert fifth in seen[-1]
    assert not {first, ninth}.intersection(seen[-1]), "that day's files, and no other"
    db.sql("DELETE FROM trades WHERE id IN (101, 102)")
    db.sql("REFRESH MATERIALIZED VIEW monthly")
    assert contents(db, "SELECT * FROM monthly$stored") == contents(db, monthly)
    assert contents(db, "SELECT * FROM monthly$state") == contents(db, "SELECT * FROM monthly$partial")
    assert answer(db, "VERIFY monthly")[0][2] is True
    with monkeypatch.context() as seeded:
        seeded.setattr(deferrals, "log_change", lambda *_: None)
        insert(db, (200, at(7, 1), "a", 7.0), (201, at(7, 2), "a", -7.0))
    verdict = answer(db, "VERIFY monthly")[0]
    assert verdict[2] is False
    assert verdict[-1] == 1, "a partial result is not that of its rows"


def test_local_time_windows_two_time_columns_and_children_that_wait_for_buckets(db: stepwell.Database) -> None:
    db.sql(
        "CREATE TABLE t (id INT, ts TIMESTAMP, seen TIMESTAMP, v INT, WATERMARK FOR ts AS ts - INTERVAL '1 hour');"
        "CREATE TABLE u (id INT, at TIMESTAMP, v INT)"
    )
    values = ", ".join(f"({day}, {at(day, 10)}, {at(day + 2, 1)}, {day})" for day in range(1, 16))
    db.sql(f"INSERT INTO t VALUES {values}")
    dst = ", ".join(f"({hour}, TIMESTAMP '2026-10-24 12:30:00' + INTERVAL {hour} HOURS, 1)" for hour in range(48))
    db.sql(f"INSERT INTO u VALUES {dst}")
    berlin = "SELECT time_bucket(INTERVAL 1 DAY, at, 'Europe/Berlin') AS day, count(*) AS n FROM u GROUP BY 1"
    ranked = (
        "SELECT date_trunc('DAY', ts) AS day, v % 2 AS odd, sum(v) AS total,"
        " rank() OVER (PARTITION BY date_trunc('DAY', ts) ORDER BY sum(v) DESC) AS place FROM t GROUP BY 1, 2"
    )
    daily = "SELECT date_trunc('DAY', ts) AS day, sum(v) AS total FROM t GROUP BY 1"
    seen = "SELECT date_trunc('DAY', seen) AS day, sum(v) AS total FROM t GROUP BY 1"
    queries = {"berlin": berlin, "ranked": ranked, "daily": daily, "seen": seen}
    db.sql("; ".join(deferred(name, query, "batch = 3") for name, query in queries.items()))
    weekly = "SELECT TUMBLE_START(day, INTERVAL 7 DAYS) AS week, sum(total) AS total FROM daily GROUP BY TUMBLE(day, INTERVAL 7 DAYS)"
    db.sql(
        f"CREATE MATERIALIZED VIEW weekly AS {weekly} EMIT AFTER WATERMARK; CREATE MATERIALIZED VIEW live AS {weekly}"
    )
    db.sql(f"REFRESH MATERIALIZED VIEW daily FROM {at(10)} TO {at(13)}")
    assert [len(answer(db, f"SELECT * FROM {name}")) for name in ("weekly", "live")] == [0, 1]
    for name in queries:
        db.sql(f"REFRESH MATERIALIZED VIEW {name}")
    assert [row[1] for row in sorted(answer(db, "SELECT * FROM weekly"))] == [28, 77], "no window before it is filled"
    db.sql(f"INSERT INTO t VALUES (50, {at(2, 11)}, {at(16, 2)}, 1000), (51, {at(30, 11)}, {at(30)}, 1)")
    db.sql("UPDATE u SET at = at - INTERVAL 30 MINUTES WHERE id IN (9, 10, 13)")
    assert [row[3:5] for row in answer(db, "SELECT * FROM stepwell.thresholds") if row[0] in ("daily", "seen")] == [
        ("2026-01-15 00:00:00", "2026-01-15 00:00:00"), ("2026-01-17 00:00:00", "2026-01-17 00:00:00"),
    ]  # fmt: skip
    for refreshed in (False, True):
        for name, query in queries.items():
            if refreshed:
                db.sql(f"REFRESH MATERIALIZED VIEW {name}")
            assert rows(db, f"SELECT * FROM {name}") == rows(db, query), name
            assert rows(db, f"SELECT * FROM {name}$direct") == rows(db, query), name
            assert answer(db, f"VERIFY {name}")[0][2] is True, name
    assert [row[1] for row in sorted(answer(db, "SELECT * FROM live"))] == [1028, 77, 15]
    assert [row[1] for row in sorted(answer(db, "SELECT * FROM weekly"))] == [28, 77, 15], "a late bucket is late"
    assert len(answer(db, "SELECT * FROM weekly$late")) == 2


def test_random_histories_with_refreshes_are_read_as_the_query_at_every_epoch(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """After every step real-time equals direct and the query; stored equals it outside the log; thresholds never fall.

    Where nothing is stale no file of the source is read, and a process that opens the warehouse anew sees the same.
    """
    dice, steps = random.Random(14), 80 if TORTURE else 10
    weekly = "SELECT time_bucket(INTERVAL 7 DAYS, day) AS week, symbol, sum(n) AS n FROM daily GROUP BY 1, 2"
    wide = (
        "SELECT time_bucket(INTERVAL 9 DAYS, ts) AS start, sum(price) AS total, min(id) AS low FROM trades GROUP BY 1"
    )
    inner = {"daily": DAILY, "weekly": weekly.replace("FROM daily", f"FROM ({DAILY})"), "wide": wide}
    db = stepwell.connect(tmp_path / "w")
    db.sql(TRADES.replace("amount INT)", "amount INT) CHUNK BY ts"))
    insert(db, *((number, at(dice.randint(1, 6), dice.randint(0, 23)), "a", float(number)) for number in range(6)))
    db.sql(deferred("daily", DAILY, "batch = 2"))
    db.sql(
        f"{deferred('weekly', weekly, 'lag = -INTERVAL 7 DAYS')}; {deferred('wide', wide, 'lag = -INTERVAL 9 DAYS')}"
    )
    expected: dict[int, Counter[Any]] = {}
    marks, number = [("", "")], 100
    for step in range(steps):
        number += 1
        moment = "NULL" if dice.random() < 0.1 else at(dice.randint(1, 20), dice.randint(0, 23))
        row = f"({number if dice.random() < 0.7 else dice.randint(0, 5)}, {moment}, '{dice.choice('ab')}', {number}, 1)"
        changes = (
            f"INSERT INTO trades VALUES {row}",
            f"MERGE INTO trades USING (SELECT * FROM VALUES {row} AS s(id, ts, symbol, price, amount)) s"
            " ON trades.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
            f"UPDATE trades SET ts = {moment} WHERE id % 5 = {dice.randint(0, 4)}",
            f"UPDATE trades SET price = price + 1 WHERE id % 3 = {dice.randint(0, 2)}",
            f"DELETE FROM trades WHERE id % 7 = {dice.randint(0, 6)}",
            *(["TRUNCATE TABLE trades"] if dice.random() < 0.1 else []),
        )
        refreshes = (
            "REFRESH MATERIALIZED VIEW daily",
            "REFRESH MATERIALIZED VIEW wide",
            "REFRESH MATERIALIZED VIEW weekly CASCADE",
            f"REFRESH MATERIALIZED VIEW daily FROM {at(dice.randint(1, 9))} TO {at(dice.randint(11, 20))} FORCE",
        )
        db.sql(dice.choice(refreshes if dice.random() < 0.45 else changes))
        if step % 5 == 4:
            db.close()
            db = stepwell.connect(tmp_path / "w")
        expected[db.epoch] = rows(db, DAILY)
        assert rows(db, "SELECT * FROM daily") == expected[db.epoch]
        for name in ("weekly", "wide"):
            assert rows(db, f"SELECT * FROM {name}") == rows(db, inner[name]), name
        marks.append(_thresholds(db))
    assert marks == sorted(marks), "neither moves back"
    db.sql("DELETE FROM trades WHERE ts IS NULL; OPTIMIZE trades")
    for name, query in inner.items():
        assert _stored_where_fresh(db, name), name
        db.sql(f"ALTER MATERIALIZED VIEW {name} SET (lag = -INTERVAL 40 DAYS)")
        db.sql(f"REFRESH MATERIALIZED VIEW {name} CASCADE")
        assert offered(db, name) == [], name
        assert rows(db, f"SELECT * FROM {name}") == rows(db, f"SELECT * FROM {name}$direct") == rows(db, query)
        assert answer(db, f"VERIFY {name}")[0][2] is True
    for epoch in dice.sample(sorted(expected), 3):
        assert rows(db, f"SELECT * FROM daily VERSION AS OF {epoch}") == expected[epoch]
    db.close()
    record_property("steps of continuous aggregates", steps)


def _thresholds(db: stepwell.Database) -> tuple[str, str]:
    (found,) = (each for each in answer(db, "SELECT * FROM stepwell.thresholds") if each[0] == "daily")
    assert found[4] <= found[3], "completed is never above the threshold"
    return ("" if found[3] == "-infinity" else found[3]), ("" if found[4] == "-infinity" else found[4])


def _stored_where_fresh(db: stepwell.Database, name: str) -> bool:
    runtime = db._runtime
    known = load(runtime)
    view = known.called(name)
    assert view is not None
    with runtime.catalog.read() as tx:
        fresh = without((ALWAYS,), stale_labels(tx, known, view, db.epoch))
    reads = DeferredReads(runtime, db.spark, db.epoch)
    names = [column.name for column in view.columns]
    stored, direct = (
        Counter(map(tuple, frame.select(*names).collect()))
        for frame in (reads.face(view, Face.STORED, fresh), reads.face(view, Face.DIRECT, fresh, nulls=False))
    )
    return stored == direct


def test_a_write_that_is_not_logged_is_seen(db: stepwell.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of the tests: with a bug seeded in the log, what is read is wrong, and VERIFY says so."""
    db.sql(TRADES)
    insert(db, (1, at(1, 1), "a", 1.0), (2, at(3, 5), "b", 2.0))
    db.sql(deferred("daily", DAILY))
    db.sql("REFRESH MATERIALIZED VIEW daily")
    with monkeypatch.context() as seeded:
        seeded.setattr(deferrals, "log_change", lambda *_: None)
        insert(db, (3, at(1, 2), "a", 3.0))
    assert rows(db, "SELECT * FROM daily") != rows(db, DAILY)
    assert answer(db, "VERIFY daily REPAIR")[0][2] is False
    assert rows(db, "SELECT * FROM daily") == rows(db, DAILY)
    assert answer(db, "VERIFY daily")[0][2] is True


def test_writers_and_refreshes_at_once_lose_nothing(db: stepwell.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer parked before its acknowledgement, one that nobody waited for, and refreshes beside each other."""
    db.sql(TRADES)
    insert(db, *((day, at(day, 12), "a", float(day)) for day in range(1, 5)))
    hourly = "SELECT date_trunc('HOUR', ts) AS hour, sum(amount) AS total FROM trades GROUP BY 1"
    db.sql(f"{deferred('daily', DAILY, 'batch = 1')}; {deferred('hourly', hourly)}")
    staged, released = threading.Event(), threading.Event()

    def park(name: str) -> None:
        if name == "acknowledge.before" and threading.current_thread() is writer:
            staged.set()
            assert released.wait(120)

    writer = threading.Thread(target=lambda: insert(db, (50, at(1, 3), "late", 50.0)))
    monkeypatch.setattr("stepwell.engine.write.transactions.failpoint", park)
    writer.start()
    assert staged.wait(120)
    db.sql("REFRESH MATERIALIZED VIEW daily")
    released.set()
    writer.join()
    assert [each[0] for each in log_of(db, "trades")] == ["source"], "it was tested against the new threshold"
    assert rows(db, "SELECT * FROM daily") == rows(db, DAILY)

    db.sql("SET barrier_interval = '1 hour'")
    insert(db, (51, at(2, 4), "late", 51.0))
    db.sql("REFRESH MATERIALIZED VIEW daily")
    assert rows(db, "SELECT * FROM daily") == rows(db, DAILY)
    assert rows(db, "SELECT * FROM daily$stored") == Counter(r for r in rows(db, DAILY) if r[0].day < 4)
    db.sql("SET barrier_interval = '0 seconds'")

    insert(db, (52, at(1, 5), "late", 52.0), (53, at(3, 5), "late", 53.0))
    errors: list[BaseException] = []

    def refresh(name: str) -> None:
        try:
            db.sql(f"REFRESH MATERIALIZED VIEW {name} FORCE")
        except BaseException as error:
            errors.append(error)

    beside = [threading.Thread(target=refresh, args=(name,)) for name in ("daily", "daily", "hourly")]
    for thread in beside:
        thread.start()
    for number in range(3):
        insert(db, (60 + number, at(1 + number, 7), "beside", 1.0))
        assert rows(db, "SELECT * FROM daily") == rows(db, DAILY)
    for thread in beside:
        thread.join()
    assert errors == []
    for name, query in (("daily", DAILY), ("hourly", hourly)):
        assert rows(db, f"SELECT * FROM {name}") == rows(db, query)
        assert _stored_where_fresh(db, name), name


REFUSED = {
    "no bucket": (deferred("v", "SELECT symbol, count(*) AS n FROM trades GROUP BY symbol"), "groups by no bucket"),
    "not shown": (
        deferred("v", "SELECT count(*) AS n FROM trades GROUP BY date_trunc('DAY', ts)"),
        "does not show the bucket",
    ),
    "two buckets": (
        deferred("v", "SELECT date_trunc('DAY', ts) AS d, date_trunc('HOUR', ts) AS h, count(*) AS n FROM trades GROUP BY 1, 2"),
        "2 buckets",
    ),
    "outer join": (
        deferred("v", "SELECT date_trunc('DAY', t.ts) AS d, count(*) AS n FROM k LEFT JOIN trades t ON k.id = t.id GROUP BY 1"),
        "outer join",
    ),
    "self join": (
        deferred("v", "SELECT date_trunc('DAY', t.ts) AS d, count(*) AS n FROM trades t JOIN trades u ON t.id = u.id GROUP BY 1"),
        "itself|2 buckets",
    ),
    "rows": (deferred("v", "SELECT ts, symbol FROM trades"), "not one GROUP BY"),
    "across buckets": (
        deferred("v", "SELECT date_trunc('DAY', ts) AS d, sum(count(*)) OVER (ORDER BY date_trunc('DAY', ts)) AS n FROM trades GROUP BY 1"),
        "beyond its bucket",
    ),
    "no partial results": ("SELECT * FROM daily$state", "keeps no partial results"),
    "emit": (deferred("v", f"{DAILY} EMIT PERIODICALLY INTERVAL 1 MINUTE"), "no EMIT"),
    "lag alone": (f"CREATE MATERIALIZED VIEW v WITH (lag = INTERVAL 1 DAY) AS {DAILY}", "deferred views"),
    "batch of none": (deferred("v", DAILY, "batch = 0"), "number of buckets"),
    "number for a lag": (deferred("v", DAILY, "lag = 5"), "an INTERVAL"),
    "continuous": ("REFRESH MATERIALIZED VIEW live", "always fresh"),
    "backwards": (f"REFRESH MATERIALIZED VIEW daily FROM {at(3)} TO {at(2)}", "earlier time to a later"),
    "too narrow": (f"REFRESH MATERIALIZED VIEW daily FROM {at(3, 1)} TO {at(3, 2)}", "no bucket"),
    "no such face": ("SELECT * FROM daily$late", "no face"),
    "written to": ("INSERT INTO daily$stored SELECT * FROM daily", "VALUES or a query"),
    "pause": ("ALTER MATERIALIZED VIEW daily PAUSE", "has no schedule"),
    "replaced": (f"CREATE OR REPLACE MATERIALIZED VIEW daily AS {DAILY}", "cannot be replaced"),
}  # fmt: skip


def test_what_cannot_be_deferred_or_refreshed_says_so_and_changes_nothing(db: stepwell.Database) -> None:
    db.sql(f"{TRADES}; CREATE TABLE k (id INT)")
    db.sql(f"{deferred('daily', DAILY)}; CREATE MATERIALIZED VIEW live AS {DAILY}")
    before = answer(db, "SHOW TABLES")
    for name, (text, message) in REFUSED.items():
        with pytest.raises(stepwell.StepwellError, match=message) as caught:
            db.sql(text)
        assert caught.value.sqlstate != "XX000", name
    with pytest.raises(stepwell.StepwellError, match="nowhere"):
        db.sql(f"{deferred('v', DAILY)}; CREATE MATERIALIZED VIEW w AS SELECT a FROM nowhere")
    assert answer(db, "SHOW TABLES") == before
    assert [each[0] for each in answer(db, "SELECT view FROM stepwell.thresholds")] == ["daily"]
    db.sql("ALTER MATERIALIZED VIEW daily SET (lag = INTERVAL 2 DAYS, materialized_only = true)")
    assert "lag = INTERVAL '2 days', materialized_only = true" in answer(db, "SHOW CREATE daily")[0][1]
    insert(db, (1, at(1, 1), "a", 1.0))
    assert answer(db, "SELECT * FROM daily") == []

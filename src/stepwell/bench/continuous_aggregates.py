"""`stepwell bench aggregates`: what continuous aggregates cost writers, refreshes and readers."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from stepwell.bench.measure import BenchReport, best_of_three, median, null_job, seconds, stock_session
from stepwell.catalog import deferrals, open_catalog, relations, sqlite_url
from stepwell.database import Database, connect
from stepwell.model.watermarks import NEVER

DAYS = 100
START = 1_767_225_600  # 2026-01-01, in seconds
ROWS = 1000

LEVELS = {
    "hourly": "SELECT date_trunc('HOUR', ts) AS hour, symbol, sum(price) AS total, max(price) AS high, count(*) AS n"
    " FROM {trades} GROUP BY 1, 2",
    "daily": "SELECT date_trunc('DAY', hour) AS day, symbol, sum(total) AS total, max(high) AS high, sum(n) AS n"
    " FROM {hourly} GROUP BY 1, 2",
    "monthly": "SELECT date_trunc('MONTH', day) AS month, symbol, sum(total) AS total, max(high) AS high, sum(n) AS n"
    " FROM {daily} GROUP BY 1, 2",
}
LAGS = {"hourly": "0 seconds", "daily": "-1 day", "monthly": "-31 days"}
"""So that the last day and the last month are stored too, as far as they go."""


def run_aggregates(report: BenchReport, folder: Path, *, rows: int = 10_000_000) -> None:
    """Three levels of continuous aggregates over `rows` trades of a hundred days, in chunks of a day."""
    with connect(folder / "warehouse") as db:
        unit = null_job(stock_session(db.spark))
        report.figure("null job (stock session, warm, median of 15)", f"{unit * 1000:.0f} ms")
        for table in ("trades", "plain"):
            db.sql(f"CREATE TABLE {table} (ts TIMESTAMP, symbol INT, price DOUBLE) CHUNK BY ts EVERY INTERVAL 1 DAY")
            db.insert(table, _trades(db.spark, rows))
        raw = str(folder / "raw")
        _trades(db.spark, rows).write.parquet(raw)
        bench = _Bench(report, db, unit)
        bench.first_refresh(raw, folder)
        bench.inserts(folder)
        bench.refreshes()
        bench.reads()


def _trades(spark: SparkSession, rows: int) -> DataFrame:
    """Trades of all symbols, spread evenly over the days."""
    at = f"timestamp_micros({START}L * 1000000 + CAST(id * {DAYS * 86_400_000_000 / rows} AS BIGINT))"
    return spark.range(rows).selectExpr(
        f"{at} AS ts", "CAST(id % 100 AS INT) AS symbol", "CAST(id % 1000 AS DOUBLE) AS price"
    )


def _batch(at: Callable[[int], int], rows: int = ROWS) -> pa.Table:
    """New rows, each at its second since the start."""
    moments = [(START + at(number)) * 1_000_000 for number in range(rows)]
    return pa.table(
        {
            "ts": pa.array(moments, pa.timestamp("us", tz="UTC")),
            "symbol": pa.array([number % 100 for number in range(rows)], pa.int32()),
            "price": pa.array([float(number % 1000) for number in range(rows)], pa.float64()),
        }
    )


class _Bench:
    """The parts of the benchmark, on one warehouse."""

    def __init__(self, report: BenchReport, db: Database, unit: float) -> None:
        self.report, self.db, self.unit = report, db, unit
        self._later = DAYS * 86_400

    def _create(self) -> None:
        for name, query in LEVELS.items():
            text = query.format(trades="trades", hourly="hourly", daily="daily")
            lag = f"INTERVAL '{LAGS[name]}'".replace("INTERVAL '-", "-INTERVAL '")
            options = f"refresh = 'deferred', lag = {lag}, max_future = INTERVAL 10000 DAYS"
            self.db.sql(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {text}")

    def first_refresh(self, raw: str, folder: Path) -> None:
        spark = stock_session(self.db.spark)
        number = iter(range(100))

        def plainly() -> None:
            """What a user without stepwell writes: each level from the one below it."""
            spark.read.parquet(raw).createOrReplaceTempView("trades")
            for name, query in LEVELS.items():
                place = str(folder / f"{name}-{next(number)}")
                spark.sql(query.format(trades="trades", hourly="hourly", daily="daily")).write.parquet(place)
                spark.read.parquet(place).createOrReplaceTempView(name)

        plain = best_of_three(plainly)
        self._create()
        took = seconds(lambda: self.db.sql("REFRESH MATERIALIZED VIEW monthly CASCADE"))
        self.report.figure("three levels by plain Spark, best of three", f"{plain:.1f} s")
        self.report.figure("first refresh of three levels", f"{took:.1f} s")
        self.report.figure("  against plain Spark", f"{took / plain:.2f}", reach="<= 1.5", good=took <= 1.5 * plain)
        self.db.sql("DROP MATERIALIZED VIEW hourly CASCADE")
        quiet = self._p95_until(time.monotonic() + 20)
        self._create()
        refresh = threading.Thread(target=lambda: self.db.sql("REFRESH MATERIALIZED VIEW monthly CASCADE"))
        refresh.start()
        beside = self._p95_while(refresh.is_alive)
        refresh.join()
        self.report.figure(f"p95 of INSERT of {ROWS} rows, quiet", f"{quiet / self.unit:.1f} null jobs")
        self.report.figure("  during a first refresh", f"{beside / self.unit:.1f} null jobs")
        self.report.figure("  against quiet", f"{beside / quiet:.2f}", reach="<= 1.3", good=beside <= 1.3 * quiet)

    def _p95_until(self, end: float) -> float:
        return self._p95_while(lambda: time.monotonic() < end)

    def _p95_while(self, going: Callable[[], bool]) -> float:
        found: list[float] = []
        while going() or len(found) < 5:
            found.append(seconds(lambda: self.db.insert("trades", self._new())))
        return sorted(found)[max(0, int(len(found) * 0.95) - 1)]

    def _new(self, rows: int = ROWS, seconds: int = 60) -> pa.Table:
        """Rows after all that are there, spread over so many seconds."""
        first, self._later = self._later, self._later + seconds
        return _batch(lambda number: first + number * seconds // rows, rows)

    def inserts(self, folder: Path) -> None:
        """INSERT above and below the threshold against a table that nobody watches, turn by turn."""
        self.db.sql("REFRESH MATERIALIZED VIEW monthly CASCADE")
        kinds: dict[str, Callable[[int], object]] = {
            "plain": lambda _: self.db.insert("plain", self._new()),
            "above": lambda _: self.db.insert("trades", self._new()),
            "below": lambda turn: self.db.insert("trades", _batch(lambda number: turn * 3600 + number)),
        }
        took: dict[str, list[float]] = {kind: [] for kind in kinds}
        for turn in range(12):
            for kind, insert in kinds.items():
                took[kind].append(seconds(lambda insert=insert, turn=turn: insert(turn)))  # type: ignore[misc]
        middle = {kind: statistics.median(each[2:]) for kind, each in took.items()}
        self.report.figure(f"INSERT of {ROWS} rows, no views", f"{middle['plain'] / self.unit:.1f} null jobs")
        for kind in ("above", "below"):
            ratio = middle[kind] / middle["plain"]
            self.report.figure(f"  {kind} the threshold", f"{ratio:.2f}", reach="<= 1.1", good=ratio <= 1.1)
        catalog = open_catalog(sqlite_url(str(folder / "warehouse" / "catalog.db")))
        try:

            def raise_threshold() -> None:
                with catalog.write() as tx:
                    deferrals.raise_threshold(tx, relations.get(tx, "trades").id, "ts", NEVER)

            self.report.figure("  first transaction of a refresh", f"{median(raise_threshold, 15) * 1000:.1f} ms")
        finally:
            catalog.close()

    def refreshes(self) -> None:
        refresh = "REFRESH MATERIALIZED VIEW monthly CASCADE"
        self.db.sql(refresh)
        self.report.figure("refresh, already up to date", f"{seconds(lambda: self.db.sql(refresh)):.2f} s")
        self.db.insert("trades", self._new(100_000, 86_400))
        self.report.figure("refresh after 100 000 new rows", f"{seconds(lambda: self.db.sql(refresh)):.1f} s")
        self.db.insert("trades", _batch(lambda number: number * (DAYS * 86_400 // ROWS)))
        self.report.figure(
            "refresh after 1 000 late rows over all history", f"{seconds(lambda: self.db.sql(refresh)):.1f} s"
        )

    def reads(self) -> None:
        """The real-time face with stale buckets and a tail, against what is stored and against the query."""
        query = "SELECT sum(n), sum(total), max(high) FROM {}"

        def read(face: str) -> float:
            return median(lambda: self.db.sql(query.format(face)).collect(), 5)

        stored, direct = read("hourly$stored"), read("hourly$direct")
        self.report.figure("read what is stored of the hours", f"{stored / self.unit:.1f} null jobs")
        self.report.figure("  compute them from the trades", f"{direct / stored:.1f} x stored")
        self.report.figure("  real-time, nothing stale", f"{read('hourly') / stored:.2f} x stored")
        for buckets in (10, 1000):
            step = DAYS * 24 // buckets
            self.db.insert("trades", _batch(lambda number, step=step: number * step * 3600, buckets))  # type: ignore[misc]
            self.report.figure(f"  real-time, {buckets} stale buckets", f"{read('hourly') / stored:.2f} x stored")
        self.db.insert("trades", self._new(100_000))
        self.report.figure("  and a tail of 100 000 rows", f"{read('hourly') / stored:.2f} x stored")

"""`stepwell bench ohlc`: bars of 1 second, 1 minute and 1 hour over generated trades.

The trades: 100 symbols, the first of them by far the busiest (the number is 100 u³ for a uniform u), about one a
millisecond in time, four in five on a tenth of a second, so that ties are the rule; each comes up to two seconds late.
The seed is `SEED`; prices wander around 100.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from stepwell.bench.measure import (
    BenchReport,
    best_of_three,
    bytes_read,
    epoch_cost,
    median,
    megabytes,
    null_job,
    peak_memory,
    seconds,
    stock_session,
)
from stepwell.database import Database, connect
from stepwell.graph import WatermarkTracker
from stepwell.model.rows import Rows
from stepwell.model.watermarks import Transfer

SEED = 20_260_101
START = 1_704_103_200_000_000
"""2024-01-01 10:00:00 UTC, in microseconds."""

SMALL, LARGE = 1_000, 100_000

_WIDTHS = (("ohlc_1s", "1 second"), ("ohlc_1m", "1 minute"), ("ohlc_1h", "1 hour"))
_OF_TRADES = (
    "FIRST_VALUE(price) AS open, MAX(price) AS high, MIN(price) AS low, LAST_VALUE(price) AS close,"
    " SUM(quantity) AS volume"
)
_OF_BARS = (
    "FIRST_VALUE(open) AS open, MAX(high) AS high, MIN(low) AS low, LAST_VALUE(close) AS close, SUM(volume) AS volume"
)


def trades(session: SparkSession, first: int, rows: int) -> DataFrame:
    """The trades numbered from `first` on."""
    at = f"{START} + id * 1000 - CAST(2000000 * pow(rand({SEED + 1}), 4) AS BIGINT)"
    return session.range(first, first + rows, 1, 4).selectExpr(
        "id",
        f"concat('S', lpad(CAST(floor(100 * pow(rand({SEED}), 3)) AS STRING), 2, '0')) AS symbol",
        f"round(100 + 10 * sin(id / 100000) + rand({SEED + 2}), 2) AS price",
        f"1 + CAST(100 * rand({SEED + 3}) AS BIGINT) AS quantity",
        f"timestamp_micros(IF(id % 5 = 0, {at}, ({at}) div 100000 * 100000)) AS event_time",
    )


def run_ohlc(
    report: BenchReport, folder: Path, *, rows: int = 10_000_000, small: int = 1_000_000, times: int = 30
) -> None:
    """Build, new rows, late rows and corrections; small epochs over `small` rows of history and `times` as many."""
    _tracker(report)
    with connect(folder / "unit") as db:
        unit = null_job(stock_session(db.spark))
        report.figure("null job (stock session, warm, median of 15)", f"{unit * 1000:.0f} ms")
    _cascade(report, folder / "cascade", rows, unit)
    few = _small_epochs(report, folder / "few", small, unit)
    many = _small_epochs(report, folder / "many", small * times, unit)
    report.figure(f"{times} x the history", f"{many / few:.2f}", reach="<= 1.2", good=many <= 1.2 * few)
    report.figure("peak memory, Java and Python", megabytes(peak_memory()))


def _create(db: Database, clauses: str = "") -> None:
    source, time_column, columns = "trades", "event_time", _OF_TRADES
    for name, width in _WIDTHS:
        window = f"{time_column}, INTERVAL '{width}'"
        db.sql(
            f"CREATE MATERIALIZED VIEW {name} AS SELECT symbol, TUMBLE_START({window}) AS bar_time, {columns}"
            f" FROM {source} GROUP BY symbol, TUMBLE({window}) {clauses if name != 'ohlc_1s' else ''}"
        )
        source, time_column, columns = name, "bar_time", _OF_BARS


def _load(db: Database, rows: int) -> None:
    db.sql(
        "CREATE TABLE trades (id BIGINT, symbol STRING, price DOUBLE, quantity BIGINT, event_time TIMESTAMP,"
        " WATERMARK FOR event_time AS event_time - INTERVAL '2 seconds')"
    )
    db.insert("trades", trades(db.spark, 0, rows))


def _plain(session: SparkSession, source: str, folder: Path) -> None:
    """The three levels as plain Spark computes and writes them, each from the one below."""
    key, at, first, last, high, low, volume = "id", "event_time", "price", "price", "price", "price", "quantity"
    for name, width in _WIDTHS:
        order = f"unix_micros({at}) * 1000 + {key} % 1000" if key else f"unix_micros({at})"
        session.read.parquet(source).createOrReplaceTempView("_bench_source")
        made = session.sql(
            f"SELECT symbol, window({at}, '{width}').start AS bar_time, min_by({first}, {order}) AS open,"
            f" max({high}) AS high, min({low}) AS low, max_by({last}, {order}) AS close, sum({volume}) AS volume"
            f" FROM _bench_source GROUP BY symbol, window({at}, '{width}')"
        )
        source = str(folder / name)
        made.write.mode("overwrite").option("compression", "zstd").parquet(source)
        key, at, first, last, high, low, volume = "", "bar_time", "open", "close", "high", "low", "volume"


def _cascade(report: BenchReport, folder: Path, rows: int, unit: float) -> None:
    with connect(folder / "warehouse") as db:
        _load(db, rows)
        plain = stock_session(db.spark)
        source = str(folder / "plain.parquet")
        trades(plain, 0, rows).write.option("compression", "zstd").parquet(source)
        recompute = best_of_three(lambda: _plain(plain, source, folder))
        built = seconds(lambda: _create(db))
        report.figure(f"plain Spark computes and writes three levels of {rows} trades", f"{recompute:.1f} s")
        report.figure(
            "(a) build of the three levels, against plain Spark",
            f"{built / recompute:.2f} x",
            reach="<= 1.0",
            good=built <= recompute,
        )
        number = iter(range(rows, 100 * rows, LARGE))
        batches = [trades(db.spark, next(number), LARGE).toArrow() for _ in range(4)]
        db.insert("trades", batches.pop())
        took = median(lambda: db.insert("trades", batches.pop()), 3)
        views = epoch_cost(db)
        each = views / LARGE / len(_WIDTHS) * 1e6
        report.figure(f"(b) {LARGE} new trades, durable and readable", f"{took:.2f} s")
        report.figure("  the views alone, a row and level", f"{each:.2f} us", reach="< 10", good=each < 10)
        report.figure("  against recomputing", f"{recompute / took:.1f} x", reach=">= 5", good=recompute >= 5 * took)
        held = _stored(db)
        report.figure("  the trades and bars hold", megabytes(held))
        _late(report, db, rows, recompute, unit)


def _late(report: BenchReport, db: Database, rows: int, recompute: float, unit: float) -> None:
    step = rows // SMALL
    for what, change in (
        (f"(d) {SMALL} late trades over all of history", lambda: _insert_late(db, rows, step)),
        (
            f"    UPDATE of {SMALL} old trades",
            lambda: db.sql(f"UPDATE trades SET price = price + 1 WHERE id % {step} = 7"),
        ),
        (f"    DELETE of {SMALL} old trades", lambda: db.sql(f"DELETE FROM trades WHERE id % {step} = 9")),
    ):
        before = bytes_read()
        _timed(report, what, change, db, recompute, unit)
        report.figure("  bytes read", megabytes(bytes_read() - before))


def _insert_late(db: Database, rows: int, step: int) -> None:
    late = (
        trades(db.spark, 0, rows)
        .where(f"id % {step} = 3")
        .selectExpr(f"id + {rows * 50} AS id", "symbol", "price", "quantity", "event_time")
    )
    db.insert("trades", late.toArrow())


def _timed(
    report: BenchReport, what: str, change: Callable[[], object], db: Database, recompute: float, unit: float
) -> None:
    took = seconds(change)
    views = epoch_cost(db)
    report.figure(what, f"{took:.2f} s")
    report.figure(
        "  the views alone, against recomputing",
        f"{recompute / views:.1f} x",
        reach="> 1",
        good=recompute > views,
    )


def _small_epochs(report: BenchReport, folder: Path, rows: int, unit: float) -> float:
    with connect(folder) as db:
        _load(db, rows)
        _create(db)
        batches = [trades(db.spark, rows + number * SMALL, SMALL).toArrow() for number in range(20)]
        for _ in range(5):
            db.insert("trades", batches.pop(0))
        took = median(lambda: db.insert("trades", batches.pop(0)), 11)
        jobs = took / unit
        report.figure(
            f"(c) {SMALL} new trades over {rows}, durable and readable",
            f"{jobs:.1f} null jobs",
            reach="<= 12",
            good=jobs <= 12,
        )
        return took


def _stored(db: Database) -> int:
    result = db.sql("SELECT bytes FROM stepwell.tables")
    assert isinstance(result, Rows)
    return sum(row[0] for row in result.tuples())


def _tracker(report: BenchReport) -> None:
    """A watermark through chains and diamonds of a thousand views."""
    size = 1000
    for what, parents in (
        ("chain", {node: [node - 1] for node in range(1, size)}),
        ("diamonds", {node: [node - 1, node - 2] if node % 3 == 0 else [node - (node % 3)] for node in range(1, size)}),
    ):
        tracker = WatermarkTracker(range(size), parents, dict.fromkeys(range(1, size), Transfer(1000, 1000)))
        best = min(_update(tracker, mark) for mark in range(10**6, 10**6 * 100, 10**6)) / size
        report.figure(
            f"(e) watermark: a view in a {what} of {size}", f"{best * 1e6:.2f} us", reach="< 1", good=best < 1e-6
        )


def _update(tracker: WatermarkTracker[int], mark: int) -> float:
    began = time.perf_counter()
    tracker.update(0, mark)
    return time.perf_counter() - began

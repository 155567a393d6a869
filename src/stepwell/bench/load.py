"""`stepwell bench load`: many rows from Parquet against plain Spark, and many writers against one."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from stepwell.bench.measure import BenchReport, best_of_three, seconds, stock_session
from stepwell.database import connect

BATCH = 100
_FILES = 8

_WRITER = """
import json, sys, time
from pathlib import Path
import stepwell
warehouse, go = sys.argv[1], Path(sys.argv[2])
number, batch, duration = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
with stepwell.connect(warehouse) as db:
    rows = [(number, value, f"writer {number}") for value in range(batch)]
    db.insert("events", rows)
    print("ready", flush=True)
    while not go.exists():
        time.sleep(0.01)
    began = time.perf_counter()
    took = []
    while time.perf_counter() - began < duration:
        at = time.perf_counter()
        db.insert("events", rows)
        took.append(time.perf_counter() - at)
    print(json.dumps([time.perf_counter() - began, took]), flush=True)
"""


def run_load(
    report: BenchReport, folder: Path, *, rows: int = 10_000_000, writers: int = 8, duration: float = 20.0
) -> None:
    """A bulk load, and small inserts by one process and by `writers` at once, for `duration` seconds each."""
    _bulk(report, folder, rows)
    one = _writers(report, folder / "one", 1, duration)
    many = _writers(report, folder / "many", writers, duration)
    report.figure(f"{writers} writers against one, rows a second", f"{many / one:.2f}")


def _bulk(report: BenchReport, folder: Path, rows: int) -> None:
    source, plain = folder / "source", folder / "plain"
    with connect(folder / "bulk") as db:
        stock = stock_session(db.spark)
        stock.conf.set("spark.sql.parquet.compression.codec", "zstd")
        stock.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        (
            stock.range(0, rows, numPartitions=_FILES)
            .selectExpr(
                "id AS trade",
                "concat('S', lpad(CAST(id * 7919 % 100 AS STRING), 2, '0')) AS symbol",
                "timestamp_micros(1767225600000000 + id * 1000) AS at",
                "100.0D + id * 104729 % 1000 / 100 AS price",
                "CAST(1 + id % 500 AS INT) AS quantity",
            )
            .write.parquet(str(source))
        )
        columns = "trade BIGINT, symbol STRING, at TIMESTAMP, price DOUBLE, quantity INT"

        def copy() -> None:
            shutil.rmtree(plain, ignore_errors=True)
            stock.read.schema(columns).parquet(str(source)).write.parquet(str(plain))

        theirs = best_of_three(copy)
        took = []
        for number in range(3):
            db.sql(f"CREATE TABLE trades_{number} ({columns})")
            took.append(seconds(lambda number=number: db.insert_parquet(f"trades_{number}", source)))  # type: ignore[misc]  # mypy cannot type the default
        ours = statistics.median(took)
    report.figure(f"plain Spark, {rows} rows read and written", f"{rows / theirs:,.0f} rows/s")
    report.figure("insert_parquet of the same", f"{rows / ours:,.0f} rows/s")
    report.figure("against plain Spark", f"{theirs / ours:.2f} x", reach=">= 0.8", good=theirs >= 0.8 * ours)


def _writers(report: BenchReport, folder: Path, count: int, duration: float) -> float:
    """Acknowledged and readable rows a second of so many processes that insert at once."""
    folder.mkdir(parents=True)
    go = folder / "go"
    with connect(folder / "warehouse") as db:
        db.sql("CREATE TABLE events (writer INT, v INT, note STRING)")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(folder / "warehouse"), str(go), str(number), str(BATCH), str(duration)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError("a writer of the benchmark did not start")
        go.touch()
        results = [json.loads(process.communicate(timeout=duration * 20 + 300)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    took = [each for _, times in results for each in times]
    rate = float(sum(len(times) * BATCH / elapsed for elapsed, times in results))
    p95 = sorted(took)[int(len(took) * 0.95)] if len(took) > 1 else took[0]
    who = "one writer" if count == 1 else f"{count} writers"
    report.figure(f"{who}, inserts of {BATCH} rows", f"{rate:,.0f} rows/s")
    report.figure(f"  p50, p95 of {len(took)} inserts", f"{statistics.median(took):.2f} s, {p95:.2f} s")
    time.sleep(1)
    return rate

"""`stepwell bench ingest`: small epochs, reading what they leave behind, upserts by key."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from stepwell.bench.measure import (
    BenchReport,
    best_of_three,
    bytes_read,
    median,
    megabytes,
    memory,
    null_job,
    seconds,
    stock_session,
)
from stepwell.database import Database, connect

ROWS = 1000
_QUERY = "SELECT symbol, sum(price), count(*), max(v) FROM {} GROUP BY symbol"


def run_ingest(report: BenchReport, folder: Path, *, epochs: int = 1000, keyed_rows: int = 1_000_000) -> None:
    """Small INSERT epochs after few and after many; a read with all of them and as many deletes pending; upserts."""
    with connect(folder / "warehouse") as db:
        stock = stock_session(db.spark)
        unit = null_job(stock)
        report.figure("null job (stock session, warm, median of 15)", f"{unit * 1000:.0f} ms")
        _small_epochs(report, db, unit, epochs)
        _read_pending(report, db, stock, folder, epochs)
        _upserts(report, db, keyed_rows)


def _batch(number: int) -> pa.Table:
    first = number * ROWS
    return pa.table(
        {
            "v": pa.array(range(first, first + ROWS), pa.int64()),
            "symbol": pa.array([f"S{value % 50:02}" for value in range(ROWS)]),
            "price": pa.array([100.0 + value % 77 for value in range(ROWS)]),
        }
    )


def _small_epochs(report: BenchReport, db: Database, unit: float, epochs: int) -> None:
    db.sql("CREATE TABLE ticks (v BIGINT, symbol STRING, price DOUBLE)")
    number = iter(range(10 * epochs))
    for _ in range(10):
        db.insert("ticks", _batch(next(number)))
    early, held = median(lambda: db.insert("ticks", _batch(next(number))), 21), memory()
    for _ in range(epochs - 31):
        db.insert("ticks", _batch(next(number)))
    late = median(lambda: db.insert("ticks", _batch(next(number))), 21)
    grown = memory() - held
    report.figure(
        f"INSERT of {ROWS} rows after 10 epochs", f"{early / unit:.2f} null jobs", reach="<= 3", good=early <= 3 * unit
    )
    report.figure(
        f"the same after {epochs} epochs", f"{late / unit:.2f} null jobs", reach="<= 3", good=late <= 3 * unit
    )
    report.figure("ratio", f"{late / early:.2f}", reach="<= 1.2", good=late <= 1.2 * early)
    report.figure("driver memory grown meanwhile", megabytes(grown), reach="flat, < 50 MB", good=grown < 50 * 2**20)


def _read_pending(report: BenchReport, db: Database, stock: SparkSession, folder: Path, epochs: int) -> None:
    db.sql(f"DELETE FROM ticks WHERE v % {epochs} = 7")
    shown = db.sql("SELECT name, files FROM stepwell.tables").collect()
    plain = folder / "plain"
    whole = db.sql("SELECT * FROM ticks")
    assert isinstance(whole, DataFrame)
    whole.coalesce(2).write.parquet(str(plain))
    stock.read.parquet(str(plain)).createOrReplaceTempView("plain")
    for _ in range(2):
        stock.sql(_QUERY.format("plain")).collect()
        db.sql(_QUERY.format("ticks")).collect()
    theirs = best_of_three(lambda: stock.sql(_QUERY.format("plain")).collect())
    ours = median(lambda: db.sql(_QUERY.format("ticks")).collect(), 9)
    deleted = sum(row["retracted"] for row in _retracted(db))
    report.figure(
        f"read with {epochs} epochs and {deleted} deletes pending ({dict(map(tuple, shown))['ticks']} files)",
        f"{ours / theirs:.2f} x plain",
        reach="<= 2",
        good=ours <= 2 * theirs,
    )


def _retracted(db: Database) -> list[dict[str, int]]:
    rows = db.sql("SELECT rows_retracted FROM stepwell.epochs").collect()
    return [{"retracted": row[0]} for row in rows]


def _upserts(report: BenchReport, db: Database, rows: int) -> None:
    db.sql("CREATE TABLE accounts (id BIGINT PRIMARY KEY, name STRING, balance DOUBLE)")
    loaded = seconds(
        lambda: db.insert(
            "accounts", db.spark.range(rows).selectExpr("id", "concat('account ', id) AS name", "id * 0.5 AS balance")
        )
    )
    report.figure(f"load of {rows} keyed rows", f"{loaded:.1f} s")
    table = db.sql("SELECT bytes FROM stepwell.tables").collect()
    step = max(1, rows // ROWS)

    def upsert(shift: int, stride: int) -> None:
        ids = [(value * stride + shift) % rows for value in range(ROWS)]
        db.insert("accounts", [(id_, f"changed {shift}", -1.0) for id_ in ids])

    upsert(1, step)
    for name, stride in (("spread over all keys", step), ("next to each other", 1)):
        before = bytes_read()
        took = seconds(lambda stride=stride: upsert(3, stride))  # type: ignore[misc]  # mypy cannot type the default
        report.figure(f"{ROWS} upserts, {name}", f"{took:.2f} s")
        report.figure(
            f"  bytes read, of {megabytes(sum(row[0] for row in table))} stored", megabytes(bytes_read() - before)
        )

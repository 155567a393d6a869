"""`stepwell bench tpch`: the queries of TPC-H as views, a thousandth of the orders changed, against recomputing."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from stepwell.bench.measure import BenchReport, best_of_three, null_job, stock_session
from stepwell.bench.tpch_queries import QUERIES, TABLES
from stepwell.database import Database, connect
from stepwell.model.errors import StepwellError

LONG = 20
"""A recomputation of at least so many null jobs is one that is worth saving."""

CHANGES = 3
"""So many changes are measured of a view, and the median counts; one before them waits for Spark to compile."""


def generate(folder: Path, scale: float) -> None:
    """The tables of TPC-H as Parquet, by tpchgen-cli."""
    program = shutil.which("tpchgen-cli") or str(Path(sys.executable).with_name("tpchgen-cli"))
    command = [program, "parquet", "--scale-factor", str(scale), "--output-dir", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError as error:
        raise StepwellError(
            "tpchgen-cli is not installed", hint="pip install 'stepwell[bench]'", sqlstate="58000"
        ) from error


def create(db: Database) -> None:
    for table, columns in TABLES.items():
        db.sql(f"CREATE TABLE {table} ({columns})")


def load(db: Database, folder: Path) -> None:
    for table in TABLES:
        db.insert_parquet(table, folder / f"{table}.parquet")


def change(db: Database, number: int, share: int = 3000, *, spread: bool = True) -> None:
    """One epoch: one in `share` orders with its lines goes and comes again under another key, and one is updated.

    They are `spread` over all orders, or neighbours: the way in which a day's orders lie together.
    """
    if spread:
        gone, kept = f"% {share} = {(number * 32 + 1) % share}", f"% {share} = {(number * 32 + 2) % share}"
    else:
        keys = db.sql("SELECT max(o_orderkey) AS top FROM orders WHERE o_orderkey < 100000000").collect()[0].top
        width = keys // share
        first = keys // 100 * (number % 100)
        gone, kept = (f"BETWEEN {at} AND {at + width - 1}" for at in (first, first + width))
    db.sql(f"""
        BEGIN;
        INSERT INTO orders SELECT o_orderkey + 100000000, * EXCEPT (o_orderkey) FROM orders WHERE o_orderkey {gone};
        INSERT INTO lineitem SELECT l_orderkey + 100000000, * EXCEPT (l_orderkey) FROM lineitem WHERE l_orderkey {gone};
        UPDATE orders SET o_totalprice = o_totalprice + 1, o_orderstatus = 'F' WHERE o_orderkey {kept};
        UPDATE lineitem SET l_quantity = l_quantity + 1, l_discount = 0.06 WHERE l_orderkey {kept};
        DELETE FROM lineitem WHERE l_orderkey {gone};
        DELETE FROM orders WHERE o_orderkey {gone};
        COMMIT""")


def run_tpch(
    report: BenchReport, folder: Path, *, scale: float = 1.0, names: Sequence[str] = (), spread: bool = True
) -> None:
    """Each view alone, then all of them in one epoch; of all queries, or of those that are named."""
    unknown = [name for name in names if name not in QUERIES]
    if unknown:
        raise StepwellError(f'TPC-H has no query "{unknown[0]}"', hint="They are q1 to q22.", sqlstate="42704")
    queries = {name: QUERIES[name] for name in names or QUERIES}
    source = folder / "source"
    generate(source, scale)
    with connect(folder / "warehouse") as db:
        stock = stock_session(db.spark)
        for table in TABLES:
            stock.read.parquet(str(source / f"{table}.parquet")).createOrReplaceTempView(table)
        unit = null_job(stock)
        report.figure("null job (stock session, warm, median of 15)", f"{unit * 1000:.0f} ms")
        create(db)
        load(db, source)
        baseline = {name: _recomputed(stock, query, folder / "plain") for name, query in queries.items()}
        numbers = iter(range((CHANGES + 1) * len(queries) + 1))

        def next_change() -> None:
            change(db, next(numbers), spread=spread)

        ratios = {name: _alone(report, db, name, next_change, unit, again) for name, again in baseline.items()}
        long = [ratio for name, ratio in ratios.items() if ratio is not None and baseline[name] >= LONG * unit]
        if long:
            middle = statistics.median(long)
            report.figure(f"median of the {len(long)} long ones", f"{middle:.1f} x", reach=">= 5", good=middle >= 5)
        for name, query in queries.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        next_change()
        took = _maintained(db)
        if took is None:
            return
        again = sum(baseline.values())
        report.figure(
            f"all {len(queries)} in one epoch: {took / unit:.0f} null jobs, recomputed {again / unit:.0f}",
            f"{again / took:.1f} x",
        )


def _alone(
    report: BenchReport, db: Database, name: str, next_change: Callable[[], None], unit: float, again: float
) -> float | None:
    """One view, built, changed and dropped: how many times as fast it follows as it is recomputed."""
    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}")
    next_change()
    seen = []
    for _ in range(CHANGES):
        next_change()
        seen.append(_maintained(db))
    db.sql(f"DROP MATERIALIZED VIEW {name}")
    took = statistics.median(each for each in seen if each is not None) if any(seen) else None
    long = "*" if again >= LONG * unit else " "
    if took is None:
        report.figure(f"{name:>4}{long}       - null jobs, recomputed {again / unit:6.1f}", "untouched")
        return None
    what = f"{name:>4}{long} {took / unit:7.1f} null jobs, recomputed {again / unit:6.1f}"
    report.figure(what, f"{again / took:.1f} x", reach=">= 0.83", good=took <= 1.2 * again)
    return again / took


def _maintained(db: Database) -> float | None:
    """Seconds that the views took in the newest epoch, from the first that began to the last that ended."""
    answer = db.sql("SELECT epoch, started_at, microseconds FROM stepwell.refreshes").collect()
    rows: list[tuple[int, datetime, int]] = [tuple(row) for row in answer]
    last = [(at.timestamp(), took / 1e6) for epoch, at, took in rows if epoch == db.epoch]
    if not last:
        return None
    return max(at + took for at, took in last) - min(at for at, _ in last)


def _recomputed(stock: SparkSession, query: str, out: Path) -> float:
    """Seconds that plain Spark takes to compute a query from Parquet and to write it."""

    def run() -> None:
        stock.sql(query).write.mode("overwrite").option("compression", "zstd").parquet(str(out))

    return best_of_three(run)

"""`stepwell bench views`: small epochs through a graph over little and much history, and a registry of many views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from stepwell.bench.measure import (
    BenchReport,
    bytes_read,
    epoch_cost,
    median,
    megabytes,
    null_job,
    seconds,
    stock_session,
)
from stepwell.database import Database, connect
from stepwell.graph import Registry
from stepwell.model.views import RelationId

ROWS = 1000


def run_views(report: BenchReport, folder: Path, *, rows: int = 1_000_000, times: int = 30) -> None:
    """1 000 changed rows through mv1 -> mv2, mv3 and through a GROUP BY, over `rows` and `times` as many."""
    _registry(report)
    with connect(folder / "unit") as db:
        unit = null_job(stock_session(db.spark))
        report.figure("null job (stock session, warm, median of 15)", f"{unit * 1000:.0f} ms")
    small = _graph(report, folder / "small", rows, unit)
    large = _graph(report, folder / "large", rows * times, unit)
    report.figure(f"{times} x the history", f"{large / small:.2f}", reach="<= 1.2", good=large <= 1.2 * small)
    few = _groups(report, folder / "few", rows, unit)
    many = _groups(report, folder / "many", rows * 10, unit)
    report.figure("10 x the groups", f"{many / few:.2f}")


def _load(db: Database, rows: int) -> None:
    db.sql("CREATE TABLE t1 (k BIGINT, v1 BIGINT, deleted BOOLEAN)")
    source = db.spark.range(rows).selectExpr("id AS k", "id % 1000 AS v1", "id % 10 = 0 AS deleted")
    db.insert("t1", source)


def _changes(number: int, rows: int) -> pa.Table:
    step = max(1, rows // ROWS)
    keys = [(value * step + number * 17) % rows for value in range(ROWS)]
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "v1": pa.array([value % 1000 for value in keys], pa.int64()),
            "deleted": pa.array([False] * ROWS),
        }
    )


def _graph(report: BenchReport, folder: Path, rows: int, unit: float) -> float:
    with connect(folder) as db:
        _load(db, rows)
        db.sql("CREATE MATERIALIZED VIEW mv1 AS SELECT * FROM t1 WHERE deleted = false")
        db.sql("CREATE MATERIALIZED VIEW mv2 AS SELECT sum(v1) AS sum_v1 FROM mv1")
        db.sql("CREATE MATERIALIZED VIEW mv3 AS SELECT count(v1) AS count_v1 FROM mv1")
        number = iter(range(1000))
        for _ in range(5):
            db.insert("t1", _changes(next(number), rows))
        took = median(lambda: db.insert("t1", _changes(next(number), rows)), 11)
        report.figure(f"{ROWS} new rows, {rows} in t1, durable and readable", f"{took / unit:.1f} null jobs")
        db.sql("DELETE FROM t1 WHERE k = 3")
        costs = []
        for index in range(5):
            low = (index * 7919) % (rows - 2000)
            db.sql(f"UPDATE t1 SET v1 = v1 + 1 WHERE k >= {low} AND k < {low + ROWS}")
            costs.append(epoch_cost(db))
        report.figure(f"{ROWS} updated rows, {rows} in t1, the views alone", f"{sorted(costs)[2] / unit:.1f} null jobs")
        return took


def _groups(report: BenchReport, folder: Path, groups: int, unit: float) -> float:
    with connect(folder) as db:
        _load(db, groups)
        built = seconds(
            lambda: db.sql("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v1) AS s, count(*) AS n FROM t1 GROUP BY k")
        )
        report.figure(f"build of {groups} groups", f"{built:.1f} s")
        number = iter(range(1000))
        for _ in range(3):
            db.insert("t1", _changes(next(number), groups))
        before = bytes_read()
        took = median(lambda: db.insert("t1", _changes(next(number), groups)), 5)
        report.figure(f"{ROWS} new rows, {groups} groups", f"{took / unit:.1f} null jobs")
        report.figure("  bytes read in one such epoch", megabytes((bytes_read() - before) // 5))
        return took


def _registry(report: BenchReport) -> None:
    """A graph of many views: look-ups, the order, and one view more."""
    times: dict[int, tuple[float, float, float]] = {}
    for size in (1000, 10_000):
        registry = Registry()
        for node in range(size):
            parents = [RelationId(parent) for parent in {node // 2, max(0, node - 3)} if parent < node]
            registry.add(RelationId(node), parents)
        times[size] = (_look_up(registry), _best(registry.order), _add(registry))
    (look, order, add), (look_ten, order_ten, add_ten) = times[1000], times[10_000]
    report.figure("registry: a look-up among 10 000 views", f"{look_ten * 1e9:.0f} ns")
    report.figure("  against 1 000 views", f"{look_ten / look:.2f}", reach="flat, <= 2", good=look_ten <= 2 * look)
    report.figure("registry: the order of 10 000 views", f"{order_ten * 1e3:.1f} ms")
    report.figure(
        "  against 1 000 views", f"{order_ten / order:.1f}", reach="linear, <= 20", good=order_ten <= 20 * order
    )
    report.figure("registry: one view more among 10 000", f"{add_ten * 1e6:.1f} us")
    report.figure("  against 1 000 views", f"{add_ten / add:.2f}", reach="flat, <= 2", good=add_ten <= 2 * add)


def _look_up(registry: Registry) -> float:
    nodes = [RelationId(node % len(registry)) for node in range(10_000)]
    return _best(lambda: [registry.parents(node) for node in nodes]) / len(nodes)


def _add(registry: Registry) -> float:
    numbers = iter(range(len(registry), 2 * len(registry)))
    return _best(lambda: registry.add(RelationId(next(numbers)), [RelationId(0)]))


def _best(action: Callable[[], object]) -> float:
    return min(seconds(action) for _ in range(20))

"""Queries as Spark analyzes them: what is taken apart, what keeps a watermark, where columns come from, what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import stepwell
from plans import plan_of
from stepwell.bench import nexmark, tpch_queries
from stepwell.model.watermarks import Transfer
from stepwell.plan.lineage import origins
from stepwell.plan.times import timing_of
from stepwell.rules.blocks import WholeBlock

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000

TIMED = {number: {"ts": "TIMESTAMP", "g": "INT", "k": "BIGINT"} for number in (1, 2, 3)}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path_factory.mktemp("analysis")) as database:
        yield database


# -- what is taken apart ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "queries"),
    [(tpch_queries.TABLES, tpch_queries.QUERIES), (nexmark.TABLES, nexmark.QUERIES)],
    ids=["tpch", "nexmark"],
)
def test_a_known_query_has_a_rule_for_every_part(
    db: stepwell.Database, tables: dict[str, str], queries: dict[str, str]
) -> None:
    for table, columns in tables.items():
        db.sql(f"CREATE TABLE {table} ({columns})")
    for name, query in queries.items():
        found = db.sql(f"EXPLAIN CREATE MATERIALIZED VIEW {name}_v AS {query}")
        assert isinstance(found, stepwell.Rows)
        assert [row for row in found.tuples() if row[1] == "query"] == [], name


# -- what keeps a watermark -------------------------------------------------------------------------------------------

KEPT = [
    ("SELECT ts, g FROM _sw_rel1", "ts", Transfer()),
    ("SELECT g, ts + INTERVAL '1 hour' AS later FROM _sw_rel1", "later", Transfer(shift=HOUR)),
    ("SELECT g, t.ts - INTERVAL 5 SECONDS AS sooner FROM _sw_rel1 t", "sooner", Transfer(shift=-5 * SECOND)),
    ("SELECT a.g, b.ts FROM _sw_rel2 a JOIN _sw_rel1 b ON a.g = b.g", "ts", Transfer()),
    ("SELECT ts FROM _sw_rel1 UNION ALL SELECT ts FROM _sw_rel1", "ts", Transfer()),
    ("SELECT g, ts, rank() OVER (PARTITION BY g ORDER BY k) AS r FROM _sw_rel1", "ts", Transfer()),
    ("SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS b, count(*) AS n FROM _sw_rel1 GROUP BY TUMBLE(ts, INTERVAL '1 minute')", "b", Transfer(MINUTE, MINUTE)),
    ("SELECT TUMBLE_END(ts, INTERVAL '1 minute') AS b, count(*) AS n FROM _sw_rel1 GROUP BY TUMBLE(ts, INTERVAL '1 minute')", "b", Transfer(MINUTE, MINUTE, shift=MINUTE)),
    ("SELECT HOP_START(ts, INTERVAL '1 minute', INTERVAL '5 minutes') AS b, count(*) AS n FROM _sw_rel1 GROUP BY HOP(ts, INTERVAL '1 minute', INTERVAL '5 minutes')", "b", Transfer(MINUTE, 5 * MINUTE)),
    ("SELECT window.start AS b, count(*) AS n FROM _sw_rel1 GROUP BY window(ts, '1 minute')", "b", Transfer(MINUTE, MINUTE)),
    ("SELECT window_start, count(*) AS n FROM TUMBLE(_sw_rel1, ts, INTERVAL '1 minute') GROUP BY window_start", "window_start", Transfer(MINUTE, MINUTE)),
    ("SELECT SESSION_END(ts, INTERVAL '1 minute') AS e, count(*) AS n FROM _sw_rel1 GROUP BY g, SESSION(ts, INTERVAL '1 minute')", "e", Transfer()),
    ("SELECT time_bucket(INTERVAL '5 minutes', ts) AS b, count(*) AS n FROM _sw_rel1 GROUP BY 1", "b", Transfer(5 * MINUTE, 5 * MINUTE, 946_857_600_000_000)),
    ("SELECT time_bucket(INTERVAL '1 day', ts, INTERVAL '2 hours') AS b, count(*) AS n FROM _sw_rel1 GROUP BY 1", "b", Transfer(DAY, DAY, 946_857_600_000_000 + 2 * HOUR)),
    ("SELECT time_bucket(INTERVAL '1 day', ts, TIMESTAMP '1970-01-02 00:00:01') AS b, count(*) AS n FROM _sw_rel1 GROUP BY 1", "b", Transfer(DAY, DAY, DAY + SECOND)),
    ("SELECT time_bucket(INTERVAL '3 months', ts) AS b, count(*) AS n FROM _sw_rel1 GROUP BY 1", "b", Transfer(months=3)),
    ("SELECT time_bucket(INTERVAL '1 month', ts, 'Europe/Berlin') AS b, count(*) AS n FROM _sw_rel1 GROUP BY 1", "b", Transfer(months=1, zone="Europe/Berlin")),
    ("SELECT time_bucket(INTERVAL '1 day', ts, 'Asia/Tokyo') AS b, count(*) AS n FROM _sw_rel1 GROUP BY 1", "b", Transfer(DAY, DAY, 946_857_600_000_000, zone="Asia/Tokyo")),
    ("SELECT date_trunc('hour', ts) AS b, count(*) AS n FROM _sw_rel1 GROUP BY 1", "b", Transfer(HOUR, HOUR)),
    ("SELECT date_trunc('week', ts) AS b, count(*) AS n FROM _sw_rel1 GROUP BY 1", "b", Transfer(7 * DAY, 7 * DAY, 4 * DAY)),
    ("SELECT CAST(ts AS DATE) AS b, count(*) AS n FROM _sw_rel1 GROUP BY 1", "b", Transfer(DAY, DAY)),
    ("SELECT ts, count(*) AS n FROM _sw_rel1 GROUP BY ts", "ts", Transfer()),
    ("SELECT TUMBLE_START(k, 10) AS b, count(*) AS n FROM _sw_rel3 GROUP BY TUMBLE(k, 10)", "b", Transfer(10, 10)),
    ("SELECT TUMBLE_END(k, 10) AS b, count(*) AS n FROM _sw_rel3 GROUP BY TUMBLE(k, 10)", "b", Transfer(10, 10, shift=10)),
    ("SELECT time_bucket(10, k, 3) AS b, count(*) AS n FROM _sw_rel3 GROUP BY 1", "b", Transfer(10, 10, 3)),
]  # fmt: skip

LOST = [
    "SELECT year(ts) AS y, count(*) AS n FROM _sw_rel1 GROUP BY 1",
    "SELECT g, max(ts) AS newest FROM _sw_rel1 GROUP BY g",
    "SELECT greatest(ts, TIMESTAMP '2024-01-01') AS x FROM _sw_rel1",
    "SELECT SESSION_START(ts, INTERVAL '1 minute') AS s, count(*) AS n FROM _sw_rel1 GROUP BY g, SESSION(ts, INTERVAL '1 minute')",
    "SELECT g FROM _sw_rel1",
    "SELECT ts FROM _sw_rel2",
    "SELECT ts FROM _sw_rel1 UNION ALL SELECT ts + INTERVAL '1 hour' FROM _sw_rel1",
]


def _timing(db: stepwell.Database, query: str) -> tuple[str, Transfer] | None:
    times = {1: "ts", 3: "k"}
    plan = plan_of(db, query, TIMED, times)
    known = dict(times)
    for index, block in enumerate(plan.hidden):
        if (found := timing_of(block, known)) is not None:
            known[-1 - index] = found.column
    timing = timing_of(plan.root, known)
    return None if timing is None else (timing.column, timing.transfer)


@pytest.mark.parametrize(("query", "column", "transfer"), KEPT, ids=range(len(KEPT)))
def test_these_keep_a_watermark(db: stepwell.Database, query: str, column: str, transfer: Transfer) -> None:
    assert _timing(db, query) == (column, transfer)


@pytest.mark.parametrize("query", LOST)
def test_these_lose_it(db: stepwell.Database, query: str) -> None:
    assert _timing(db, query) is None


# -- lineage ----------------------------------------------------------------------------------------------------------

COLUMNS = {
    1: {"a": "INT", "b": "INT", "c": "INT", "xs": "ARRAY<INT>"},
    2: {"a": "INT", "d": "INT"},
    3: {"k": "INT", "v": "INT"},
}
T, U, W = "_sw_rel1 AS t", "_sw_rel2 AS u", "_sw_rel3 AS w"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT a + b AS x, 1 AS one FROM {T} WHERE c > 0", [[(1, "a"), (1, "b")], []]),
        (f"SELECT t.a, u.d AS x FROM {T} JOIN {U} ON t.b = u.a", [[(1, "a")], [(2, "d")]]),
        (f"SELECT a AS x FROM {T} UNION ALL SELECT d FROM {U}", [[(1, "a"), (2, "d")]]),
        (f"SELECT b, sum(a) + max(c) AS s, count(*) AS n FROM {T} GROUP BY b", [[(1, "b")], [(1, "a"), (1, "c")], []]),
        (f"SELECT b, rank() OVER (PARTITION BY b ORDER BY a) AS r FROM {T}", [[(1, "b")], [(1, "b"), (1, "a")]]),
        (f"SELECT s.y AS x FROM (SELECT a * c AS y FROM {T}) AS s", [[(1, "a"), (1, "c")]]),
        (f"WITH z AS (SELECT a AS y FROM {T}) SELECT y FROM z", [[(1, "a")]]),
        (f"SELECT a, e.x AS y FROM {T} LATERAL VIEW explode(xs) e AS x", [[(1, "a")], [(1, "xs")]]),
        (f"SELECT a FROM {T} WHERE a IN (SELECT d FROM {U})", [[(1, "a")]]),
        (f"SELECT v AS top FROM {W} ORDER BY v LIMIT 3", [[(3, "v")]]),
        (f"SELECT DISTINCT a FROM {T}", [[(1, "a")]]),
    ],
)
def test_the_values_of_a_column_come_from_these(
    db: stepwell.Database, query: str, expected: list[list[tuple[int, str]]]
) -> None:
    plan = plan_of(db, query, COLUMNS, {})
    assert plan.hidden == ()
    assert [sorted(origins(plan.root, name)) for name in plan.root.names] == [sorted(each) for each in expected]


# -- wholes -----------------------------------------------------------------------------------------------------------


def test_a_query_with_an_unknown_node_is_a_whole_and_names_it(db: stepwell.Database) -> None:
    query = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, k FROM r JOIN _sw_rel3 ON n = v"
    plan = plan_of(db, query, COLUMNS, {})
    assert isinstance(plan.root, WholeBlock)
    assert "UnionLoop" in plan.root.reason


def test_analysis_is_linear_in_columns_and_depth(db: stepwell.Database) -> None:
    """Twenty columns through eight common table expressions: columns to the power of depth would never end."""
    columns = [f"a + {index} AS x{index}" for index in range(20)]
    parts = [f"q0 AS (SELECT {', '.join(columns)} FROM _sw_rel1)"]
    for level in range(1, 9):
        items = ", ".join(f"x{i} + x{(i + 1) % 20} AS x{i}" for i in range(20))
        parts.append(f"q{level} AS (SELECT {items} FROM q{level - 1})")
    plan = plan_of(db, f"WITH {', '.join(parts)} SELECT x0, x1 FROM q8", COLUMNS, {})
    assert not isinstance(plan.root, WholeBlock)

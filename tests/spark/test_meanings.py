"""Settings that change what a query means: a view keeps those that it was created under, in whatever process."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepwell
from stepwell.engine.meanings import MEANINGS, TIME_ZONE
from stepwell.model.errors import UnsupportedError
from views import answer, contents, creates, wrong_views

TABLE = "CREATE TABLE t (id INT, at TIMESTAMP, local TIMESTAMP_NTZ, s STRING, d DECIMAL(38,10), n INT)"

ROWS = (
    "(1, TIMESTAMP '2024-03-10 06:30:00Z', TIMESTAMP_NTZ '2024-03-10 02:30:00', '7', 1.5, 2147483647)",
    "(2, TIMESTAMP '2024-03-10 23:30:00Z', TIMESTAMP_NTZ '2024-03-10 12:00:00', 'x', 2.25, 5)",
    "(3, TIMESTAMP '2024-07-01 03:59:59Z', TIMESTAMP_NTZ '2024-07-01 00:00:00', NULL, 1234567.125, 7)",
)

QUERIES = {
    "days": "SELECT date_trunc('day', at) AS day, count(*) AS n, max(at) AS last, min(local) AS first FROM t GROUP BY 1",
    "hours": "SELECT id, hour(at) AS h, CAST(at AS STRING) AS text, CAST(local AS TIMESTAMP) AS moment, at, local FROM t",
    "numbers": "SELECT id, CAST(s AS INT) AS number, n + 1 AS more FROM t",
    "totals": "SELECT sum(n + 1) AS total, max(CAST(s AS INT)) AS hi FROM t",
    "products": "SELECT id, d * d AS square FROM t",
    "maps": "SELECT id, size(CAST(NULL AS ARRAY<INT>)) AS z FROM t",
    "days_apart": "SELECT DISTINCT CAST(at AS DATE) AS day FROM t",
}

OTHERS = {
    TIME_ZONE: "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.caseSensitive": "true",
}


def test_every_setting_is_one_of_sparks_and_begins_as_usual(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "warehouse") as db:
        assert {name: (db.spark.conf.get(name) or "").lower() for name in MEANINGS} == {
            name: value.lower() for name, (value, _) in MEANINGS.items()
        }


def test_a_view_keeps_the_settings_that_it_was_created_under(tmp_path: Path) -> None:
    """Created under some, maintained in a process with others, and compared with plain Spark under the first."""
    with stepwell.connect(tmp_path / "warehouse") as db:
        db.sql(f"{TABLE}; INSERT INTO t VALUES {ROWS[0]}")
        for name, value in OTHERS.items():
            db.spark.conf.set(name, value)
        db.sql(creates(QUERIES))
        for name in OTHERS:
            db.spark.conf.set(name, MEANINGS[name][0])
        db.sql("CREATE MATERIALIZED VIEW usual_days AS SELECT date_trunc('day', at) AS day FROM t")
        db.sql(f"INSERT INTO t VALUES {ROWS[1]}")
    with stepwell.connect(tmp_path / "warehouse") as db:
        db.sql(f"INSERT INTO t VALUES {ROWS[2]}; UPDATE t SET at = at + INTERVAL 1 HOUR WHERE id = 1")
        assert [name for name in (*QUERIES, "usual_days") if not answer(db, f"VERIFY {name}")[0][2]] == []
        assert wrong_views(db, {"usual_days": "SELECT date_trunc('day', at) AS day FROM t"}) == []
        stored = {name: contents(db, f"SELECT * FROM {name}") for name in QUERIES}
        for name, value in OTHERS.items():
            db.spark.conf.set(name, value)
        for name, query in QUERIES.items():
            assert stored[name] == contents(db, query), name
        db.sql("DELETE FROM t WHERE id = 2")
        assert wrong_views(db, QUERIES) == []
        assert [name for name in (*QUERIES, "usual_days") if not answer(db, f"VERIFY {name}")[0][2]] == []
        children = {"hours_on": "SELECT h, count(*) AS n FROM hours GROUP BY h", "last_on": "SELECT last FROM days"}
        db.sql(creates(children))
        db.sql(f"INSERT INTO t VALUES {ROWS[1]}")
        assert wrong_views(db, {**QUERIES, **children}) == []


def test_event_time_in_the_zone_of_a_session_is_refused(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "warehouse") as db:
        db.sql("CREATE TABLE t (at TIMESTAMP, n INT, WATERMARK FOR at AS at - INTERVAL '5 seconds')")
        db.spark.conf.set(TIME_ZONE, "America/New_York")
        db.sql("CREATE MATERIALIZED VIEW minutes AS SELECT TUMBLE_START(at, INTERVAL '1 minute') AS m, sum(n) AS n"
               " FROM t GROUP BY TUMBLE(at, INTERVAL '1 minute') EMIT AFTER WATERMARK")  # fmt: skip
        with pytest.raises(UnsupportedError, match="the zone of the session, America/New_York"):
            db.sql("CREATE MATERIALIZED VIEW days AS SELECT date_trunc('day', at) AS d, sum(n) AS n FROM t GROUP BY 1")
        db.sql("INSERT INTO t VALUES (TIMESTAMP '2024-03-10 01:59:30', 1), (TIMESTAMP '2024-03-10 03:01:30', 2)")
        assert len(answer(db, "SELECT * FROM minutes")) == 1
        assert answer(db, "VERIFY minutes")[0][2] is True

"""Views that another version of stepwell has planned: planned anew from their texts and rebuilt, not an error."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import stepwell
from stepwell.catalog import relations
from stepwell.engine.definitions import load
from stepwell.engine.meanings import TIME_ZONE
from stepwell.model.views import OUTDATED
from views import answer, creates, wrong_views

QUERIES = {
    "rows": "SELECT id, a FROM (SELECT * FROM t) AS all_of_it WHERE a > 0",
    "sums": "SELECT a, count(*) AS n, avg(id) AS mean FROM t GROUP BY a",
    "parts": "SELECT n, count(*) AS groups FROM (SELECT a, count(*) AS n FROM t GROUP BY a) AS q GROUP BY n",
    "child": "SELECT s.a, s.n, t.id FROM sums AS s JOIN t ON s.a = t.a",
    "late": "SELECT TUMBLE_START(at, INTERVAL '1 minute') AS m, count(*) AS n FROM t GROUP BY TUMBLE(at, INTERVAL '1 minute')",
}  # fmt: skip


def make_outdated(db: stepwell.Database) -> None:
    """Let the catalog hold all plans as they might have been before they had a version."""
    known = load(db._runtime)
    with db._runtime.catalog.write() as tx:
        for each in known.by_id.values():
            if each.is_maintained:
                view = dataclasses.replace(each.view, plan={"is": "OldBlock", "text": each.view.bound})
                relations.redefine(tx, each.id, dataclasses.replace(each.definition, view=view))


def test_views_of_another_version_are_planned_anew(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "warehouse") as db:
        db.sql("CREATE TABLE t (id INT, a INT, at TIMESTAMP, WATERMARK FOR at AS at)")
        db.sql("INSERT INTO t VALUES (1, 1, TIMESTAMP '2024-01-01 00:00:10'), (2, 1, TIMESTAMP '2024-01-01 00:01:10')")
        lateness = {"late": " ALLOW LATENESS INTERVAL 1 DAY"}
        db.sql(creates({name: query + lateness.get(name, "") for name, query in QUERIES.items()}))
        db.sql("CREATE MATERIALIZED VIEW everything AS SELECT * FROM t")
        db.spark.conf.set(TIME_ZONE, "Asia/Tokyo")
        db.sql("CREATE MATERIALIZED VIEW hours AS SELECT id, hour(at) AS h FROM t")
        db.spark.conf.set(TIME_ZONE, "UTC")
        db.sql("ALTER TABLE t ADD COLUMN extra INT; ALTER TABLE t RENAME TO renamed")
        make_outdated(db)
    queries = {name: query.replace("FROM t", "FROM renamed").replace("JOIN t", "JOIN renamed AS t")
               for name, query in QUERIES.items()}  # fmt: skip
    queries["everything"] = "SELECT id, a, at FROM renamed"
    queries["hours"] = "SELECT id, hour(at + INTERVAL 9 HOURS) AS h FROM renamed"
    with stepwell.connect(tmp_path / "warehouse") as db:
        assert wrong_views(db, queries) == []
        assert [name for name in queries if not answer(db, f"VERIFY {name}")[0][2]] == []
        assert ("parts", False, "recompute and diff", OUTDATED) in [
            row[:4] for row in answer(db, "EXPLAIN REFRESH parts")
        ]
        db.sql("INSERT INTO renamed VALUES (3, 2, TIMESTAMP '2024-01-01 00:02:10', 7)")
        assert wrong_views(db, queries) == []
        rules = {name: (rule, why) for name, rule, why in answer(
            db, f"SELECT name, rule, step FROM stepwell.refreshes WHERE epoch = {db.epoch}"
        )}  # fmt: skip
        assert rules["sums"] == ("recompute and diff", f"recompute and diff ({OUTDATED})")
        db.sql(
            "INSERT INTO renamed VALUES (4, 2, TIMESTAMP '2024-01-01 00:02:20', 8); DELETE FROM renamed WHERE id = 1"
        )
        assert wrong_views(db, queries) == []
        assert [name for name in queries if not answer(db, f"VERIFY {name}")[0][2]] == []
        assert load(db._runtime).outdated == frozenset()
        assert "recompute and diff" not in [row[2] for row in answer(db, "EXPLAIN REFRESH parts")]
        make_outdated(db)
        db.sql("ALTER MATERIALIZED VIEW rows PAUSE")
        assert dict(answer(db, "SELECT name, state FROM stepwell.views"))["rows"] == "paused"
        db.sql("INSERT INTO renamed VALUES (5, 5, NULL, NULL); ALTER MATERIALIZED VIEW rows RESUME")
        assert wrong_views(db, queries) == []

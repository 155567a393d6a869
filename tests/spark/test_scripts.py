"""Runs of CREATEs with views: a script of them is one barrier, however its views read each other."""

from __future__ import annotations

import pytest

import stepwell
from views import answer, wrong_views

QUERIES = {
    "sums": "SELECT g, sum(v) AS s FROM t GROUP BY g",
    "large": "SELECT * FROM named WHERE s > 1",
    "pairs": "SELECT a.g, b.s FROM sums AS a JOIN large AS b ON a.g = b.g",
}

SCRIPT = f"""
CREATE TABLE t (g INT, v INT);
CREATE MATERIALIZED VIEW sums AS {QUERIES["sums"]};
CREATE VIEW named AS SELECT g, s, concat('group ', g) AS name FROM sums;
CREATE MATERIALIZED VIEW large AS {QUERIES["large"]};
CREATE MATERIALIZED VIEW IF NOT EXISTS large AS SELECT 1 AS x;
CREATE MATERIALIZED VIEW pairs AS {QUERIES["pairs"]}
"""


def test_a_script_of_tables_and_views_on_views_is_one_epoch(db: stepwell.Database) -> None:
    before = db.epoch
    db.sql(SCRIPT)
    assert db.epoch == before + 1
    built = answer(db, "SELECT DISTINCT name, epoch FROM stepwell.refreshes WHERE rule = 'build'")
    assert sorted(built) == [(name, before + 1) for name in sorted(QUERIES)]
    db.sql("INSERT INTO t VALUES (1, 2), (2, 1)")
    assert wrong_views(db, QUERIES) == []
    assert answer(db, "SELECT name FROM large") == [("group 1",)]
    assert answer(db, "SHOW DEPENDENCIES FOR pairs") == [
        ("pairs -> sums -> t",), ("pairs -> large -> named -> sums -> t",),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    [
        "CREATE MATERIALIZED VIEW bad AS SELECT nothing FROM sums",
        "CREATE MATERIALIZED VIEW bad AS SELECT * FROM nowhere",
        "CREATE MATERIALIZED VIEW bad WITH (refresh_policy = 'incremental strict') AS SELECT g FROM sums LIMIT 1",
        "CREATE MATERIALIZED VIEW bad AS SELECT rand() AS r FROM sums",
    ],
)
def test_an_error_in_one_of_them_registers_none(db: stepwell.Database, bad: str) -> None:
    before = db.epoch
    with pytest.raises(stepwell.StepwellError):
        db.sql(f"{SCRIPT}; {bad}; CREATE TABLE u (v INT)")
    assert db.relations() == []
    assert db.epoch == before
    db.sql(SCRIPT)
    assert len(db.relations()) == 5


def test_a_view_that_cannot_be_built_goes_with_what_reads_it_and_the_others_stay(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (g INT, v INT); INSERT INTO t VALUES (1, 0)")
    with pytest.raises(stepwell.StepwellError, match='materialized view "bad" could not be built') as caught:
        db.sql(
            "CREATE MATERIALIZED VIEW good AS SELECT g FROM t; CREATE MATERIALIZED VIEW bad AS SELECT g / v AS x FROM t;"
            "CREATE MATERIALIZED VIEW child AS SELECT x FROM bad; CREATE VIEW plain AS SELECT x FROM child;"
            "CREATE TABLE u (v INT)"
        )
    assert "Division by zero" in str(caught.value.detail)
    assert 'no "child" and "plain" either' in str(caught.value.detail)
    assert {each.name for each in db.relations()} == {"t", "good", "u"}
    assert answer(db, "SELECT * FROM good") == [(1,)]
    db.sql("UPDATE t SET v = 1; CREATE MATERIALIZED VIEW bad AS SELECT g / v AS x FROM t")
    assert answer(db, "SELECT * FROM bad") == [(1.0,)]


def test_a_replacement_is_a_run_of_its_own(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (g INT, v INT); INSERT INTO t VALUES (1, 5)")
    before = db.epoch
    db.sql(
        "CREATE MATERIALIZED VIEW a AS SELECT g FROM t; CREATE OR REPLACE MATERIALIZED VIEW b AS SELECT g FROM a;"
        "CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT g, v FROM t; CREATE MATERIALIZED VIEW c AS SELECT v FROM a"
    )
    assert db.epoch == before + 3
    assert answer(db, "SELECT b.g, c.v FROM b, c") == [(1, 5)]


def test_views_of_event_time_know_those_before_them_in_the_run(db: stepwell.Database) -> None:
    with pytest.warns(stepwell.StepwellWarning, match='"bars" allows less lateness than "ticks"'):
        db.sql(
            "CREATE TABLE t (v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 second');"
            "CREATE MATERIALIZED VIEW ticks AS SELECT v, ts FROM t ALLOW LATENESS INTERVAL '9 seconds';"
            "CREATE MATERIALIZED VIEW bars AS SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS bar, count(*) AS n"
            " FROM ticks GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT AFTER WATERMARK"
        )
    db.sql("INSERT INTO t VALUES (1, TIMESTAMP '2024-01-01 00:00:05'), (2, TIMESTAMP '2024-01-01 00:02:00')")
    assert answer(db, "SELECT n FROM bars") == [(1,)]

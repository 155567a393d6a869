"""Views that are built beside the barriers: while writers write, on views that are not there yet, cancelled and dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stepwell
from stepwell.engine.maintain import building
from stepwell.model.epochs import Epoch
from stepwell.model.errors import DependentsError
from stepwell.model.lifecycle import joined
from stepwell.model.limits import Limits
from views import answer, creates, wrong_views

LIMITS = Limits(online_build_bytes=0, joined_rows=0, build_passes=2, job_poll_seconds=0.02)

QUERIES = {
    "filtered": "SELECT id, k, v FROM t WHERE v % 3 > 0",
    "folded": "SELECT k, count(*) AS n, sum(v) AS s, max(v) AS m FROM filtered GROUP BY k",
    "joined": "SELECT u.name, sum(t.v) AS s FROM t LEFT JOIN u ON t.k = u.k GROUP BY u.name",
    "ranked": "SELECT id, rank() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM t",
    "few": "SELECT DISTINCT k FROM t",
    "whole": "SELECT sum(v) OVER () AS s, id FROM t WHERE id < 9",
}
CLOSED = (
    "SELECT TUMBLE_START(ts, INTERVAL 1 DAY) AS day, count(*) AS n FROM t GROUP BY TUMBLE(ts, INTERVAL 1 DAY)"
    " EMIT AFTER WATERMARK ALLOW LATENESS INTERVAL 90 DAYS"
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path / "w", _limits=LIMITS) as database:
        database.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);"
            "CREATE TABLE u (k INT, name STRING)"
        )
        database.sql("INSERT INTO u VALUES (0, 'a'), (1, 'b')")
        insert(database, *range(30))
        yield database


def insert(db: stepwell.Database, *ids: int) -> None:
    at = "TIMESTAMP '2026-01-01 00:00:00' + INTERVAL {} HOURS"
    db.sql(f"INSERT INTO t VALUES {', '.join(f'({id_}, {id_ % 4}, {id_}, {at.format(id_)})' for id_ in ids)}")


@pytest.fixture
def at_step(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    """What happens when a build reaches a step, once."""
    steps: dict[str, Callable[[], None]] = {}

    def reached(name: str) -> None:
        if name in steps:
            steps.pop(name)()

    monkeypatch.setattr(building, "failpoint", reached)
    return steps


def test_every_kind_of_change_between_the_steps_of_a_build_counts_once(
    db: stepwell.Database, at_step: dict[str, Callable[[], None]]
) -> None:
    at_step["build.pinned"] = lambda: insert(db, 7, 100, 101)
    at_step["build.slice"] = lambda: changes("DELETE FROM t WHERE id % 5 = 0", "UPDATE t SET v = v + 1 WHERE k = 2")
    at_step["build.written"] = lambda: changes("INSERT INTO u VALUES (2, 'c')", "DELETE FROM u WHERE k = 0")
    at_step["build.pass"] = lambda: changes(
        "BEGIN", "UPDATE t SET k = 0 WHERE id = 100", "DELETE FROM t WHERE id = 7", "COMMIT"
    )
    at_step["build.join.inside"] = lambda: None
    at_step["build.joining"] = lambda: insert(db, 200)

    def changes(*texts: str) -> None:
        for text in texts:
            db.sql(text)

    db.sql(f"{creates(QUERIES)}; CREATE MATERIALIZED VIEW closed AS {CLOSED}")
    assert at_step == {}, "the build went through every step"
    jobs = answer(db, "SELECT kind, name, state, done, total FROM stepwell.jobs")
    assert jobs == [("build", "closed", "done", 8, 8)]
    assert wrong_views(db, QUERIES) == []
    insert(db, 300, 1)
    db.sql("DELETE FROM t WHERE k = 1")
    assert wrong_views(db, QUERIES) == []
    for name in (*QUERIES, "closed"):
        assert answer(db, f"VERIFY {name}")[0][2] is True, name
    assert answer(db, "SELECT * FROM closed$late") == [], "nothing that comes before it joins is late"
    first = min(row[0] for row in answer(db, "SELECT epoch FROM stepwell.refreshes") if row[0])
    with pytest.raises(stepwell.StepwellError, match=r"not there yet at epoch|did not exist") as early:
        db.sql(f"SELECT * FROM few VERSION AS OF {first - 1}")
    assert early.value.sqlstate in ("55000", "22023"), early.value.sqlstate


def test_a_change_that_a_pass_forgets_is_seen(
    db: stepwell.Database, at_step: dict[str, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test of the tests: a build that stands later than its rows are has wrong rows, and VERIFY says so."""
    at_step["build.written"] = lambda: insert(db, 400)
    monkeypatch.setattr(building, "joined", lambda position: joined(Epoch(position + 1)))
    db.sql("CREATE MATERIALIZED VIEW few AS SELECT id FROM t")
    assert wrong_views(db, {"few": "SELECT id FROM t"}) == ["few: missing {(400,): 1}, unexpected {}"]
    assert answer(db, "VERIFY few")[0][2] is False


def test_views_on_views_that_are_not_there_yet_are_waited_for_cancelled_and_dropped(
    db: stepwell.Database, at_step: dict[str, Callable[[], None]]
) -> None:
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        assert go.wait(120)

    at_step["build.pinned"] = hold
    db.sql("SET background_ddl = true")
    assert answer(db, "CREATE MATERIALIZED VIEW a AS SELECT k, sum(v) AS s FROM t GROUP BY k") == [(1,)]
    assert held.wait(120)
    assert answer(
        db, "CREATE MATERIALIZED VIEW b AS SELECT sum(s) AS s FROM a; CREATE MATERIALIZED VIEW c AS SELECT s FROM b"
    ) == [(2,)]
    with pytest.raises(stepwell.StepwellError, match='"c" is not there yet') as unread:
        db.sql("SELECT * FROM c")
    assert unread.value.sqlstate == "55000"
    insert(db, 500)  # writers do not wait for a build
    assert {row[0]: row[1] for row in answer(db, "SHOW MATERIALIZED VIEWS")} == dict.fromkeys("abc", "creating")
    with pytest.raises(DependentsError, match="waits for what it builds"):
        db.sql("CANCEL JOB 1")
    with pytest.raises(stepwell.StepwellError, match="is being built by job 1"):
        db.sql("ALTER MATERIALIZED VIEW a PAUSE")
    with pytest.raises(DependentsError, match="cannot be dropped"):
        db.sql("DROP MATERIALIZED VIEW a")
    db.sql("CREATE MATERIALIZED VIEW d AS SELECT count(*) AS n FROM a; CANCEL JOB 3")
    go.set()
    db.sql("WAIT")
    assert answer(db, "SELECT * FROM c") == answer(db, "SELECT sum(v) FROM t")
    assert [row[0] for row in answer(db, "SHOW MATERIALIZED VIEWS")] == ["a", "b", "c"]
    with pytest.raises(stepwell.StepwellError, match="cancelled already"):
        db.sql("CANCEL JOB 3")

    held.clear()
    go.clear()
    at_step["build.pinned"] = hold
    db.sql("CREATE MATERIALIZED VIEW e AS SELECT id FROM t; CREATE MATERIALIZED VIEW f AS SELECT count(*) AS n FROM t")
    assert held.wait(120)
    db.sql("DROP MATERIALIZED VIEW e")
    go.set()
    db.sql("WAIT MATERIALIZED VIEW f")
    assert answer(db, "SELECT * FROM f") == answer(db, "SELECT count(*) FROM t")

    assert len(answer(db, "CREATE MATERIALIZED VIEW bad AS SELECT 1 / (v - v) AS x FROM t")) == 1
    with pytest.raises(stepwell.StepwellError, match="zero"):
        db.sql("WAIT MATERIALIZED VIEW bad")
    assert [row[1] for row in answer(db, "SHOW MATERIALIZED VIEWS") if row[0] == "bad"] == ["error"]
    db.sql("DROP MATERIALIZED VIEW bad; SET background_ddl = false")
    with pytest.raises(stepwell.StepwellError, match='"bad" could not be built'):
        db.sql("CREATE MATERIALIZED VIEW bad AS SELECT 1 / (v - v) AS x FROM t")
    assert "bad" not in [row[0] for row in answer(db, "SHOW TABLES")]

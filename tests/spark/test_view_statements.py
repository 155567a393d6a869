"""Statements about views: what they answer, what they refuse, and that a refusal leaves everything as it was."""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

import stepwell
import writing
from limited import limit
from stepwell.catalog import schema
from stepwell.cli import main
from stepwell.engine.lead import compaction
from stepwell.model.errors import StepwellError, StepwellWarning
from views import answer, creates, wrong_views


@pytest.fixture
def graph(db: stepwell.Database) -> stepwell.Database:
    """t1 -> mv1 -> mv2, mv3: the example of the design."""
    db.sql("CREATE TABLE t1 (v1 INT, deleted BOOLEAN)")
    db.sql("INSERT INTO t1 VALUES (1, false), (2, false), (3, true)")
    db.sql(
        "CREATE MATERIALIZED VIEW mv1 AS SELECT * FROM t1 WHERE deleted = false;"
        "CREATE MATERIALIZED VIEW mv2 AS SELECT sum(v1) AS sum_v1 FROM mv1;"
        "CREATE MATERIALIZED VIEW mv3 AS SELECT count(v1) AS count_v1 FROM mv1"
    )
    return db


QUERIES = {
    "mv1": "SELECT * FROM t1 WHERE deleted = false",
    "mv2": "SELECT sum(v1) FROM mv1",
    "mv3": "SELECT count(v1) FROM mv1",
}


def refreshed(db: stepwell.Database, epoch: int) -> dict[str, int]:
    """The views that an epoch has touched, with the Spark jobs of each."""
    rows = answer(db, "SELECT epoch, name, jobs FROM stepwell.refreshes")
    return {name: jobs for at, name, jobs in rows if at == epoch}


def test_a_change_is_computed_once_however_many_children_read_it(graph: stepwell.Database) -> None:
    graph.sql("INSERT INTO t1 VALUES (10, false)")
    two = refreshed(graph, graph.epoch)
    graph.sql("DROP MATERIALIZED VIEW mv3")
    graph.sql("INSERT INTO t1 VALUES (11, false)")
    one = refreshed(graph, graph.epoch)
    assert set(two) == {"mv1", "mv2", "mv3"}
    assert set(one) == {"mv1", "mv2"}
    assert one["mv1"] == two["mv1"] == 1


def test_a_child_of_an_unchanged_parent_costs_nothing(graph: stepwell.Database) -> None:
    graph.sql("CREATE MATERIALIZED VIEW kept AS SELECT v1 FROM mv1 WHERE v1 < 100")
    graph.sql("INSERT INTO t1 VALUES (50, true)")
    assert set(refreshed(graph, graph.epoch)) == {"mv1"}
    assert refreshed(graph, graph.epoch)["mv1"] == 1
    graph.sql("CREATE TABLE wide (k INT PRIMARY KEY, seen INT, unseen INT)")
    graph.sql("INSERT INTO wide VALUES (1, 1, 1)")
    graph.sql("CREATE MATERIALIZED VIEW narrow AS SELECT k, seen FROM wide")
    graph.sql("CREATE MATERIALIZED VIEW below AS SELECT count(*) AS n, sum(seen) AS s FROM narrow")
    graph.sql("UPDATE wide SET unseen = 2")
    assert set(refreshed(graph, graph.epoch)) == {"narrow"}
    graph.sql("UPDATE wide SET seen = 5")  # the row that narrow holds is older than the one that is taken back
    assert answer(graph, "SELECT * FROM below") == [(1, 5)]
    assert wrong_views(graph, {"narrow": "SELECT k, seen FROM wide"}) == []


def test_what_others_read_is_not_dropped(graph: stepwell.Database) -> None:
    for statement in ("DROP TABLE t1", "DROP MATERIALIZED VIEW mv1 RESTRICT"):
        with pytest.raises(StepwellError) as caught:
            graph.sql(statement)
        assert caught.value.sqlstate == "2BP01"
        assert '"mv2"' in str(caught.value)
        assert '"mv3"' in str(caught.value)
    with pytest.raises(StepwellError, match="is a materialized view"):
        graph.sql("DROP TABLE mv1")
    graph.sql("DROP MATERIALIZED VIEW IF EXISTS nothing, mv2")
    graph.sql("DROP TABLE t1 CASCADE")
    assert answer(graph, "SHOW TABLES") == []
    graph.sql("CREATE TABLE t1 (v1 INT); CREATE MATERIALIZED VIEW mv1 AS SELECT v1 FROM t1")
    assert answer(graph, "SELECT count(*) AS n FROM mv1") == [(0,)]


def test_a_view_is_replaced_and_its_children_follow(graph: stepwell.Database) -> None:
    graph.sql("CREATE OR REPLACE MATERIALIZED VIEW mv1 AS SELECT v1 * 10 AS v1, deleted FROM t1")
    assert answer(graph, "SELECT * FROM mv2") == [(60,)]
    assert answer(graph, "SELECT * FROM mv3") == [(3,)]
    graph.sql("INSERT INTO t1 VALUES (4, true)")
    assert answer(graph, "SELECT * FROM mv2") == [(100,)]
    graph.sql("CREATE OR REPLACE MATERIALIZED VIEW mv2 AS SELECT max(v1) AS sum_v1, min(v1) AS low FROM mv1")
    assert answer(graph, "SELECT * FROM mv2") == [(40, 10)]
    graph.sql("DELETE FROM t1 WHERE v1 = 4")
    assert answer(graph, "SELECT * FROM mv2") == [(30, 10)]
    with pytest.raises(StepwellError) as caught:
        graph.sql("CREATE OR REPLACE MATERIALIZED VIEW mv1 AS SELECT sum_v1 AS v1 FROM mv2")
    assert "The cycle is mv1 -> mv2 -> mv1" in str(caught.value)
    with pytest.raises(StepwellError) as caught:
        graph.sql("CREATE OR REPLACE MATERIALIZED VIEW mv1 AS SELECT deleted FROM t1")
    assert "depends on it as it is" in str(caught.value)
    assert 'column "v1" does not exist' in str(caught.value)
    with pytest.raises(StepwellError, match="depends on it"):
        graph.sql("CREATE OR REPLACE MATERIALIZED VIEW mv1 AS SELECT cast(v1 AS STRING) AS v1, deleted FROM t1")
    graph.sql("CREATE OR REPLACE MATERIALIZED VIEW mv1 AS SELECT v1, 'new' AS more FROM t1")  # nobody reads "deleted"
    assert answer(graph, "SELECT * FROM mv3") == [(3,)]
    assert answer(graph, "SELECT DISTINCT more FROM mv1") == [("new",)]
    for name in ("mv1", "mv2", "mv3"):
        assert answer(graph, f"VERIFY {name}")[0][2] is True


def test_a_parent_with_more_columns_leaves_its_children_alone(graph: stepwell.Database) -> None:
    graph.sql("ALTER TABLE t1 ADD COLUMN more STRING")
    graph.sql("INSERT INTO t1 VALUES (7, false, 'x')")
    assert [name for name, *_ in answer(graph, "DESCRIBE mv1")] == ["v1", "deleted"]
    assert answer(graph, "SELECT * FROM mv2") == [(10,)]


def test_renamed_relations_stay_connected(graph: stepwell.Database) -> None:
    graph.sql("ALTER TABLE t1 RENAME TO source")
    graph.sql("ALTER MATERIALIZED VIEW mv1 RENAME TO middle")
    graph.sql("INSERT INTO source VALUES (7, false)")
    assert answer(graph, "SELECT * FROM mv2") == [(10,)]
    assert answer(graph, "SHOW DEPENDENCIES FOR mv2") == [("mv2 -> middle -> source",)]
    statement = answer(graph, "SHOW CREATE mv2")[0][1]
    assert "`middle`" in statement
    graph.sql("DROP MATERIALIZED VIEW mv2")
    graph.sql(statement)
    assert answer(graph, "SELECT * FROM mv2") == [(10,)]


def test_a_plain_view_is_an_intermediate_and_a_dependency(graph: stepwell.Database) -> None:
    graph.sql("CREATE VIEW doubled (w, flag) AS SELECT v1 * 2, deleted FROM t1")
    graph.sql("CREATE VIEW again AS SELECT w FROM doubled WHERE NOT flag")
    graph.sql("CREATE MATERIALIZED VIEW top AS SELECT sum(w) AS s FROM again")
    before = graph.epoch
    assert answer(graph, "SELECT * FROM doubled ORDER BY w") == [(2, False), (4, False), (6, True)]
    graph.sql("INSERT INTO t1 VALUES (100, false)")
    assert answer(graph, "SELECT * FROM top") == [(206,)]
    assert answer(graph, f"SELECT max(w) AS m FROM doubled VERSION AS OF {before}") == [(6,)]
    assert answer(graph, "SHOW DEPENDENCIES FOR top") == [("top -> again -> doubled -> t1",)]
    for name in ("doubled", "again"):
        with pytest.raises(StepwellError, match="cannot be dropped"):
            graph.sql(f"DROP VIEW {name}")
    with pytest.raises(StepwellError, match="cannot be written"):
        graph.sql("INSERT INTO doubled VALUES (1, true)")
    graph.sql("DROP VIEW doubled CASCADE")
    assert [name for name, *_ in answer(graph, "SHOW TABLES")] == ["t1", "mv1", "mv2", "mv3"]


def test_verify_finds_one_altered_value_and_repairs_it(graph: stepwell.Database, tmp_path: Path) -> None:
    graph.sql("CREATE MATERIALIZED VIEW child AS SELECT v1 + 0 AS v FROM mv1")
    number = next(id_ for name, id_ in answer(graph, "SELECT name, id FROM stepwell.views") if name == "mv1")
    folder = tmp_path / "warehouse" / "data" / str(number) / "rows"
    file = next(path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)
    table = pq.read_table(file)
    values = pa.array([value + 98 if value == 2 else value for value in table.column("v1").to_pylist()], pa.int32())
    index = table.schema.get_field_index("v1")
    changed = table.set_column(index, table.schema.field(index), values)
    pq.write_table(changed, file)
    with graph._runtime.catalog.write() as tx:  # as if it had been written so: of a damaged file nothing is compared
        written = {"bytes": file.stat().st_size, "checksum": None}
        own = schema.files.c.path == str(file.relative_to(folder))
        tx.execute(sa.update(schema.files).where(own).values(**written))
    result = graph.sql("VERIFY MATERIALIZED VIEW mv1")
    assert isinstance(result, stepwell.Rows)
    assert result.tuples()[0][2:] == (False, 2, 1, 1, 0)
    assert sorted(result.notes) == ["missing: v1 = 2, deleted = False", "unexpected: v1 = 100, deleted = False"]
    outcome = CliRunner().invoke(main, ["verify", "-w", str(tmp_path / "warehouse"), "--format", "json"])
    assert outcome.exit_code == 1
    graph.sql("VERIFY MATERIALIZED VIEW mv1 REPAIR")
    assert answer(graph, "VERIFY MATERIALIZED VIEW mv1")[0][2] is True
    graph.sql("INSERT INTO t1 VALUES (5, false)")
    assert wrong_views(graph, {**QUERIES, "child": "SELECT v1 + 0 FROM mv1"}) == []


def test_a_view_fails_alone_and_resumes(graph: stepwell.Database) -> None:
    graph.sql("CREATE MATERIALIZED VIEW inverse AS SELECT v1, 100 DIV v1 AS i FROM t1")
    graph.sql("CREATE MATERIALIZED VIEW below AS SELECT sum(i) AS s FROM inverse")
    with pytest.warns(StepwellWarning, match='"inverse" has failed and stays as of epoch .* in "100 DIV v1"'):
        graph.sql("INSERT INTO t1 VALUES (0, false)")  # succeeds all the same
    states = {name: (state, reason) for name, state, _, reason in answer(graph, "SHOW MATERIALIZED VIEWS")}
    assert states["inverse"][0] == "error"
    assert "zero" in (states["inverse"][1] or "")
    assert states["below"][0] == "paused"
    assert wrong_views(graph, QUERIES) == []
    with pytest.warns(StepwellWarning, match='"inverse" has failed and shows epoch .*zero'):
        assert answer(graph, "SELECT count(*) AS n FROM inverse") == [(3,)]
    with pytest.warns(StepwellWarning, match='"below" is paused and shows epoch .*"inverse" does not run'):
        answer(graph, "SELECT * FROM below")
    graph.sql("INSERT INTO t1 VALUES (4, false)")
    graph.sql("DELETE FROM t1 WHERE v1 = 0")
    graph.sql("ALTER MATERIALIZED VIEW inverse RESUME")
    assert wrong_views(graph, {"inverse": "SELECT v1, 100 DIV v1 FROM t1", "below": "SELECT sum(i) FROM inverse"}) == []
    graph.sql("ALTER MATERIALIZED VIEW inverse PAUSE")
    graph.sql("INSERT INTO t1 VALUES (5, false)")
    with pytest.warns(StepwellWarning, match="paused by a user"):
        assert answer(graph, "SELECT count(*) AS n FROM inverse") == [(4,)]
    graph.sql("ALTER MATERIALIZED VIEW inverse RESUME")
    assert wrong_views(graph, {"inverse": "SELECT v1, 100 DIV v1 FROM t1", "below": "SELECT sum(i) FROM inverse"}) == []


def test_what_fails_again_or_cannot_start_says_so(graph: stepwell.Database) -> None:
    graph.sql("CREATE MATERIALIZED VIEW inverse AS SELECT v1, 100 DIV v1 AS i FROM t1 WHERE v1 > 0")
    graph.sql("INSERT INTO t1 VALUES (0, false)")
    with pytest.raises(StepwellError, match="zero"):
        graph.sql("CREATE OR REPLACE MATERIALIZED VIEW inverse AS SELECT v1, 100 DIV v1 AS i FROM t1")
    assert wrong_views(graph, {"inverse": "SELECT v1, 100 DIV v1 FROM t1 WHERE v1 > 0"}) == []  # as it was
    graph.sql("CREATE MATERIALIZED VIEW other AS SELECT 100 DIV (v1 - 50) AS i FROM t1")
    with pytest.warns(StepwellWarning, match='"other" has failed'):
        graph.sql("INSERT INTO t1 VALUES (50, false)")
    with pytest.raises(StepwellError, match="failed again"):
        graph.sql("ALTER MATERIALIZED VIEW other RESUME")
    held = {name: (state, reflects) for name, state, reflects, _ in answer(graph, "SHOW MATERIALIZED VIEWS")}
    assert held["other"] == ("error", graph.epoch - 2)
    with pytest.raises(StepwellError, match="does not run") as caught:
        graph.sql("CREATE MATERIALIZED VIEW below AS SELECT i FROM other")
    assert caught.value.sqlstate == "55000"


def test_a_view_that_cannot_be_built_is_not_there(graph: stepwell.Database) -> None:
    graph.sql("INSERT INTO t1 VALUES (0, false)")
    with pytest.raises(StepwellError, match="could not be built") as caught:
        graph.sql("CREATE MATERIALIZED VIEW inverse AS SELECT 1 DIV v1 AS i FROM t1")
    assert "zero" in str(caught.value)
    with pytest.raises(StepwellError, match="could not be built"):  # nor one of which a part cannot be
        graph.sql(
            "CREATE MATERIALIZED VIEW parts AS SELECT p.k, p.s, t1.v1 FROM t1"
            " JOIN (SELECT v1 AS k, sum(1 DIV v1) AS s FROM t1 GROUP BY v1) AS p ON p.k = t1.v1"
        )
    assert [name for name, *_ in answer(graph, "SHOW MATERIALIZED VIEWS")] == ["mv1", "mv2", "mv3"]
    graph.sql("INSERT INTO t1 VALUES (9, false)")
    assert wrong_views(graph, QUERIES) == []


BAD = [
    ("CREATE MATERIALIZED VIEW v AS SELECT * FROM v", "would read from itself"),
    ("CREATE MATERIALIZED VIEW v AS SELECT * FROM t2", '"t2" does not exist'),
    ("CREATE MATERIALIZED VIEW v AS SELECT vv FROM t1", '"vv" does not exist'),
    ("CREATE MATERIALIZED VIEW v AS SELECT v1 + 1 FROM t1", "has no name of its own"),
    ("CREATE MATERIALIZED VIEW v AS SELECT 7 FROM t1", "has no name of its own"),
    ("CREATE MATERIALIZED VIEW v AS SELECT v1, v1 FROM t1", "is there twice"),
    ("CREATE MATERIALIZED VIEW v (a) AS SELECT v1, deleted FROM t1", "names 1 columns, and its query has 2"),
    ("CREATE MATERIALIZED VIEW v AS SELECT v1, rand() AS r FROM t1", "another value each time"),
    ("CREATE MATERIALIZED VIEW v AS SELECT v1, current_timestamp AS r FROM t1", "another value each time"),
    ("CREATE MATERIALIZED VIEW v AS SELECT v1 AS _sw_x FROM t1", "is reserved"),
    ("CREATE MATERIALIZED VIEW v AS SELECT NULL AS n FROM t1", "NULL without a type"),
    ("CREATE MATERIALIZED VIEW v AS SELECT v1 FROM t1 VERSION AS OF 2", "as they are, not as they were"),
    ("CREATE MATERIALIZED VIEW v AS SELECT name FROM stepwell.tables", "cannot read system table"),
    ("CREATE MATERIALIZED VIEW mv1 AS SELECT 1 AS a FROM t1", "exists already"),
    ("CREATE MATERIALIZED VIEW v WITH (refresh_polic = 'full') AS SELECT v1 FROM t1", 'no option "refresh_polic"'),
    ("CREATE MATERIALIZED VIEW v WITH (refresh_policy = 'often') AS SELECT v1 FROM t1", "not a refresh policy"),
    (
        "CREATE MATERIALIZED VIEW v WITH (refresh_policy = 'incremental strict') AS SELECT v1 FROM t1 ORDER BY v1 LIMIT 1",
        "cannot be maintained incrementally",
    ),
    ("INSERT INTO mv1 VALUES (1, false)", "cannot be written"),
    ("DELETE FROM mv1", "cannot be written"),
    ("ALTER TABLE mv1 ADD COLUMN x INT", "has the columns of its query"),
    ("CREATE MATERIALIZED VIEW _sw_v AS SELECT v1 FROM t1", "are reserved"),
    ("VERIFY MATERIALIZED VIEW t1", "is a table"),
    ("ALTER MATERIALIZED VIEW t1 PAUSE", "is a table"),
    ("ALTER MATERIALIZED VIEW mv1 RESUME", "is running already"),
    ("ALTER MATERIALIZED VIEW mv1 SET (priority = 'soon')", "priority"),
    ("CREATE MATERIALIZED VIEW v WITH (priority = 'high') AS SELECT v1 FROM t1", "priority"),
    ("CREATE MATERIALIZED VIEW v AS SELECT nowhere(v1) AS x FROM t1", 'function "nowhere" does not exist'),
    (
        "CREATE MATERIALIZED VIEW v AS SELECT (SELECT x.v1 FROM t1 AS x WHERE x.v1 > t1.v1) AS m FROM t1",
        "More than one row",
    ),
    ("CREATE OR REPLACE MATERIALIZED VIEW t1 AS SELECT 1 AS a FROM mv1", "is a table"),
]


def test_bad_input_is_refused_and_changes_nothing(graph: stepwell.Database) -> None:
    before = answer(graph, "SHOW TABLES")
    for statement, message in BAD:
        with pytest.raises(StepwellError) as caught:
            graph.sql(statement)
        assert message in str(caught.value), statement
    assert answer(graph, "SHOW TABLES") == before
    assert wrong_views(graph, QUERIES) == []


def test_of_two_who_create_the_same_name_one_does(graph: stepwell.Database, tmp_path: Path) -> None:
    outcomes: list[str] = []

    def create(query: str) -> None:
        with stepwell.connect(tmp_path / "warehouse") as other:
            try:
                other.sql(f"CREATE MATERIALIZED VIEW same AS {query}")
                outcomes.append("made")
            except StepwellError as error:
                outcomes.append(error.sqlstate)

    threads = [threading.Thread(target=create, args=(f"SELECT v1 + {n} AS v FROM t1",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["42P07", "42P07", "made"]
    assert answer(graph, "VERIFY same")[0][2] is True


def test_when_most_rows_change_the_view_is_recomputed(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE big (a INT, b INT)")
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT a % 7 AS k, sum(b) AS s FROM big GROUP BY 1")
    db.sql("CREATE MATERIALIZED VIEW always WITH (refresh_policy = 'full') AS SELECT a FROM big WHERE b > 5")
    db.insert("big", db.spark.range(15_000).selectExpr("CAST(id AS INT) AS a", "1 AS b"))
    db.sql("INSERT INTO big VALUES (1, 10)")
    rules = [(name, rule) for _, name, rule in answer(db, "SELECT epoch, name, rule FROM stepwell.refreshes")]
    assert ("sums", "recompute and diff") in rules
    assert rules[-2:] == [("sums", "fold into the touched groups"), ("always", "recompute and diff")]
    assert (
        wrong_views(db, {"sums": "SELECT a % 7, sum(b) FROM big GROUP BY 1", "always": "SELECT a FROM big WHERE b > 5"})
        == []
    )


FILES = (1, 33, 500) if os.environ.get("STEPWELL_TORTURE") else (1, 40)
"""From 33 files on, Spark by itself would list them by a job."""


def test_the_jobs_of_an_epoch_do_not_grow_with_the_files(
    db: stepwell.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "choose_merge", lambda *args: None)
    table = writing.table(db)
    db.sql("CREATE TABLE u (v BIGINT)")
    queries = {
        "both": "SELECT t.v, u.v AS w FROM t JOIN u ON t.v = u.v",
        "n": "SELECT count(*) AS n, sum(v) AS s FROM both",
    }
    writing.write(db, table, [0])
    db.sql(creates(queries))
    db.sql("ALTER MATERIALIZED VIEW both PAUSE")  # so that what comes next is quick
    seen, written = {}, 1
    for files in FILES:
        for value in range(written, files):
            writing.write(db, table, [value])
        written = max(written, files)
        db.sql("ALTER MATERIALIZED VIEW both RESUME")
        db.sql(f"INSERT INTO u VALUES ({files - 1})")
        held = dict(answer(db, "SELECT name, files FROM stepwell.tables"))
        assert held["t"] == files
        seen[files] = refreshed(db, db.epoch)
        assert wrong_views(db, queries) == []
        db.sql("ALTER MATERIALIZED VIEW both PAUSE")
    assert all(each == seen[1] for each in seen.values())
    assert set(seen[1]) == {"both", "n"}


def test_a_large_state_is_read_by_the_range_of_its_keys(db: stepwell.Database) -> None:
    limit(db, whole_state_bytes=-1)
    db.sql("CREATE TABLE t (k INT, s STRING, at TIMESTAMP, d DATE, v DOUBLE)")
    queries = {
        "by_k": "SELECT k, s, sum(v) AS v, max(s) AS m FROM t GROUP BY k, s",
        "by_s": "SELECT s, count(*) AS n FROM t GROUP BY s",
        "by_at": "SELECT at, avg(v) AS v FROM t GROUP BY at",
        "by_d": "SELECT d, sum(k) AS k FROM t GROUP BY d",
        "all_rows": "SELECT count(*) AS n FROM t",
    }
    db.sql(creates(queries))
    for number in range(1, 5):
        day, at = f"DATE '2026-01-0{number}'", f"TIMESTAMP '2026-01-0{number} 01:02:03.000004'"
        odd = r"'it\'s \\'"  # a quote and a backslash, which a literal must survive
        rows = [f"({number}, {odd}, {at}, {day}, 0.1)", f"(1, 'x{number}', {at}, {day}, 0.1)"]
        db.sql(f"INSERT INTO t VALUES {', '.join(rows)}")
        assert wrong_views(db, queries) == []
    db.sql("INSERT INTO t VALUES (NULL, NULL, NULL, NULL, 1.0)")
    db.sql("DELETE FROM t WHERE k = 2")
    assert wrong_views(db, queries) == []


def test_dag_and_status_show_the_graph(graph: stepwell.Database, tmp_path: Path) -> None:
    folder = str(tmp_path / "warehouse")
    drawn = CliRunner().invoke(main, ["dag", "-w", folder])
    assert drawn.output.splitlines() == [
        "t1  table",
        "└─ mv1  materialized view, running",
        "   ├─ mv2  materialized view, running",
        "   └─ mv3  materialized view, running",
    ]
    picture = CliRunner().invoke(main, ["dag", "-w", folder, "--svg", "-"])
    assert picture.output.startswith("<svg")
    assert picture.output.count("<rect") == 4
    assert picture.output.count("marker-end") == 3
    assert CliRunner().invoke(main, ["dag", "-w", folder + "-not-there"]).exit_code == 1


def test_lineage_goes_down_to_the_tables(graph: stepwell.Database) -> None:
    graph.sql("CREATE VIEW plain AS SELECT v1 * 2 AS twice FROM mv1")
    graph.sql(
        "CREATE MATERIALIZED VIEW sums AS SELECT p.twice, g.s AS total FROM plain AS p"
        " JOIN (SELECT v1, sum(v1) AS s FROM t1 GROUP BY v1) AS g ON g.v1 = p.twice"
    )
    rows = answer(graph, "SHOW LINEAGE FOR sums")
    assert rows == [
        ("twice", "t1", "v1", "sums.twice <- mv1.v1 <- t1.v1"),
        ("total", "t1", "v1", "sums.total <- t1.v1"),
    ]
    assert answer(graph, "SHOW LINEAGE FOR sums COLUMN total") == rows[1:]
    assert answer(graph, "SHOW LINEAGE FOR plain") == [("twice", "t1", "v1", "plain.twice <- mv1.v1 <- t1.v1")]
    assert answer(graph, "SHOW LINEAGE FOR t1 COLUMN v1") == [("v1", "t1", "v1", "t1.v1")]
    direct = answer(graph, "SELECT * FROM stepwell.lineage")
    assert ("sums", "twice", "mv1", "v1") in direct
    assert ("mv1", "v1", "t1", "v1") in direct
    with pytest.raises(StepwellError, match='column "nope" does not exist'):
        graph.sql("SHOW LINEAGE FOR sums COLUMN nope")
    with pytest.raises(StepwellError, match='relation "nope" does not exist'):
        graph.sql("SHOW LINEAGE FOR nope")


def test_views_that_do_not_read_each_other_are_maintained_at_the_same_time(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a INT)")
    sums = "SELECT a % 7 AS k, sum(a) AS s FROM t GROUP BY 1"
    db.sql(creates({f"v{number}": sums for number in range(5)}, "WITH (priority = 0)"))
    db.sql(creates({"v5": sums}, "WITH (priority = 9)"))
    db.sql("CREATE MATERIALIZED VIEW top AS SELECT l.k, l.s + r.s AS s FROM v0 AS l JOIN v5 AS r ON l.k = r.k")
    db.sql("INSERT INTO t SELECT id FROM range(1000)")
    rows = answer(db, "SELECT epoch, name, started_at, microseconds FROM stepwell.refreshes")
    last = {name: (at, at + timedelta(microseconds=took)) for epoch, name, at, took in rows if epoch == rows[-1][0]}
    assert len(last) == 7
    overlapping = [(a, b) for a in last for b in last if a < b and last[a][0] < last[b][1] and last[b][0] < last[a][1]]
    assert overlapping
    assert not any("top" in pair for pair in overlapping if set(pair) & {"v0", "v5"})
    assert min(last, key=lambda name: last[name][0]) == "v5"
    assert "priority = 9" in answer(db, "SHOW CREATE v5")[0][1]
    db.sql("ALTER MATERIALIZED VIEW v5 SET (priority = -1)")
    assert "priority = -1" in answer(db, "SHOW CREATE v5")[0][1]
    with pytest.raises(StepwellError, match="is not a priority"):
        db.sql("ALTER MATERIALIZED VIEW v5 SET (priority = 'high')")
    queries = {f"v{number}": "SELECT a % 7, sum(a) FROM t GROUP BY 1" for number in range(6)}
    assert wrong_views(db, {**queries, "top": "SELECT a % 7, 2 * sum(a) FROM t GROUP BY 1"}) == []

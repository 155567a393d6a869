"""Statements, one by one: what each does to the rows, and the failures that each has been through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import stepwell
from limited import limit
from stepwell.catalog import relations, writes
from stepwell.engine import Snapshot, clean_orphans
from stepwell.engine.write import staging, upsert
from stepwell.model.clock import ManualClock
from stepwell.model.epochs import Epoch
from stepwell.model.errors import ConflictError, NotNullError, StepwellError, WarehouseError
from stepwell.model.relations import Relation
from stepwell.plan import Content


@pytest.fixture
def large_path(db: stepwell.Database) -> None:
    """Let Spark write everything, as it does for what is large."""
    limit(db, small_result_bytes=-1)


def values(db: stepwell.Database, text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in db.sql(text).collect()]


@pytest.mark.usefixtures("large_path")
def test_changes_count_every_row_once_however_its_files_are_named(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (ts TIMESTAMP, v INT) CHUNK BY ts EVERY INTERVAL '1 day'")
    for _ in range(2):
        db.sql("INSERT INTO t SELECT timestamp_seconds((id % 2) * 86400 * 40), id FROM range(0, 40, 1, 1)")
    db.sql("UPDATE t SET v = v + 1 WHERE v < 3")
    assert values(db, "SELECT count(*) FROM changes(t, 0) WHERE _diff > 0") == [(86,)]
    assert values(db, "SELECT count(*) FROM t") == [(80,)]


def test_a_warehouse_may_have_any_name(tmp_path: Path) -> None:
    for name in ("with space", "ümlaut", "question?mark", "100%", "a#b"):
        with stepwell.connect(tmp_path / name) as db:
            db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1); UPDATE t SET a = 2; OPTIMIZE t")
            assert values(db, "SELECT * FROM t") == [(2,)], name


def test_files_of_a_write_whose_fate_is_unknown_stay(db: stepwell.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error after the commit must not delete what was committed."""
    db.sql("CREATE TABLE t (a INT)")
    acknowledge = writes.acknowledge

    def interrupted(tx: object, *arguments: object, **named: object) -> object:
        acknowledge(tx, *arguments, **named)  # type: ignore[arg-type]  # handed on as it comes
        tx.commit()  # type: ignore[attr-defined]  # the transaction's own
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(writes, "acknowledge", interrupted)
        with pytest.raises(KeyboardInterrupt):
            db.sql("INSERT INTO t VALUES (1)")
    db.flush()
    assert values(db, "SELECT * FROM t") == [(1,)]


def test_a_transaction_outlives_a_vacuum_for_a_day(tmp_path: Path) -> None:
    clock = ManualClock()
    with stepwell.connect(tmp_path / "w", clock=clock) as db:
        db.sql("CREATE TABLE t (a INT); BEGIN; INSERT INTO t VALUES (1)")
        clock.at = 4_000_000_000_000_000  # far ahead of when the file was written
        clean_orphans(db._runtime, older_than=2**62)
        db.sql("COMMIT")
        db.sql("BEGIN; INSERT INTO t VALUES (2)")
        clean_orphans(db._runtime, older_than=0)
        with pytest.raises(ConflictError, match="cleaned away"):
            db.sql("COMMIT")
        assert values(db, "SELECT * FROM t") == [(1,)]


def test_what_can_be_read_only_once_is_inserted_even_if_the_insert_runs_again(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as one, stepwell.connect(tmp_path / "w") as other:
        one.sql("CREATE TABLE k (id INT PRIMARY KEY, v STRING)")
        staged = staging.stage
        calls: list[int] = []

        def disturbed(*arguments: object, **named: object) -> object:
            if not calls:
                calls.append(1)
                other.sql("INSERT INTO k VALUES (1, 'other')")
            return staged(*arguments, **named)  # type: ignore[arg-type]  # handed on as it comes

        def rows() -> Iterator[tuple[int, str]]:
            yield (1, "mine")
            yield (2, "mine")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(upsert, "stage", disturbed)
            one.insert("k", rows())
        assert values(one, "SELECT * FROM k ORDER BY id") == [(1, "mine"), (2, "mine")]
        reader = pa.table({"id": pa.array([3], pa.int32()), "v": ["reader"]}).to_reader()
        one.insert("k", reader)
        assert values(one, "SELECT v FROM k WHERE id = 3") == [("reader",)]


def test_a_statement_never_sees_half_of_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stepwell.connect(tmp_path / "w") as one, stepwell.connect(tmp_path / "w") as other:
        one.sql("CREATE TABLE a (x INT); CREATE TABLE b (x INT); CREATE TABLE both (x INT, y INT)")
        content = Snapshot.content
        calls: list[int] = []

        def disturbed(self: Snapshot, relation: Relation, epoch: Epoch | None = None) -> Content:
            found = content(self, relation, epoch)
            if relation.name == "a" and not calls:
                calls.append(1)
                other.sql("BEGIN; INSERT INTO a VALUES (1); INSERT INTO b VALUES (1); COMMIT")
            return found

        monkeypatch.setattr(Snapshot, "content", disturbed)
        one.sql("INSERT INTO both SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)")
        assert calls
        assert values(one, "SELECT * FROM both") == [(1, 1)]


def test_more_partitions_than_numbers_were_reserved_for(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT); BEGIN")
    db.sql("INSERT INTO t SELECT id FROM range(0, 300, 1, 300)")
    db.sql("INSERT INTO t SELECT 1000 + id FROM range(0, 300, 1, 300)")
    db.sql("DELETE FROM t WHERE a < 2; COMMIT")
    assert values(db, "SELECT count(*), count(DISTINCT a) FROM t") == [(598, 598)]


def test_numbers_that_a_statement_did_not_need_come_back(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)")

    def next_number() -> int:
        with db._runtime.catalog.write() as tx:
            return relations.reserve_rows(tx, relations.get(tx, "t").id, 0)

    before = next_number()
    db.sql("DELETE FROM t WHERE a = 5; UPDATE t SET a = a; INSERT INTO t SELECT 1 WHERE false")
    assert next_number() == before


@pytest.mark.parametrize("path", ["small", "large"])
def test_row_numbers_are_used_by_rows_alone(db: stepwell.Database, request: pytest.FixtureRequest, path: str) -> None:
    if path == "large":
        request.getfixturevalue("large_path")
    limit(db, partition_numbers=4)  # so that the large path reserves more after its first attempt
    db.sql("CREATE TABLE t (a BIGINT, b INT); INSERT INTO t VALUES (1, 1)")

    def next_number() -> int:
        with db._runtime.catalog.write() as tx:
            return relations.reserve_rows(tx, relations.get(tx, "t").id, 0)

    before = next_number()
    for _ in range(3):
        db.sql("BEGIN; INSERT INTO t VALUES (2, 2); INSERT INTO t VALUES (3, 3); UPDATE t SET b = 7; ROLLBACK")
        with pytest.raises(StepwellError):
            db.sql("INSERT INTO t SELECT a, 1 / (a - 1) FROM t")
    assert next_number() == before
    db.sql("BEGIN; INSERT INTO t VALUES (2, 2), (3, 3); INSERT INTO t VALUES (4, 4); COMMIT")
    db.sql(
        "MERGE INTO t USING (SELECT id AS a FROM range(3, 7)) AS s ON t.a = s.a"
        " WHEN MATCHED THEN UPDATE SET b = 0 WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a, 9)"
    )
    db.sql("INSERT INTO t SELECT 100 + id, 0 FROM range(0, 10, 1, 1)")  # more than one stride
    assert values(db, "SELECT count(*), count(DISTINCT a), sum(b) FROM t") == [(16, 16, 21)]
    snapshot = Snapshot(db._runtime)
    relation = snapshot.relation("t")
    rows = snapshot.rows(relation, snapshot.content(relation)).select("_sw_id", "_sw_ver").collect()
    assert len({id_ for id_, _ in rows}) == len({version for _, version in rows}) == 16
    assert all(id_ >= 0 and version >= id_ for id_, version in rows)
    if path == "small":
        assert next_number() == before + 17  # 3 rows, 2 rows and 2 versions of the MERGE, and 10 rows


@pytest.mark.parametrize("text", ["DELETE FROM t WHERE a > 0 LIMIT 1", "UPDATE t SET a = 9 WHERE a > 0 ORDER BY a"])
def test_a_condition_is_a_condition_and_nothing_more(db: stepwell.Database, text: str) -> None:
    db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)")
    with pytest.raises(StepwellError):
        db.sql(text)
    assert values(db, "SELECT * FROM t ORDER BY a") == [(1,), (2,)]


@pytest.mark.parametrize("type_", ["ARRAY<INT>", "MAP<STRING, INT>", "STRUCT<x: INT>", "STRING"])
@pytest.mark.parametrize("path", ["small", "large"])
def test_not_null_holds_for_every_type(
    db: stepwell.Database, request: pytest.FixtureRequest, type_: str, path: str
) -> None:
    if path == "large":
        request.getfixturevalue("large_path")
    db.sql(f"CREATE TABLE t (a INT, c {type_} NOT NULL)")
    with pytest.raises(NotNullError, match='column "c" of table "t" must not be NULL'):
        db.sql("INSERT INTO t VALUES (1, NULL)")
    good = {"ARRAY<INT>": "array()", "MAP<STRING, INT>": "map()", "STRUCT<x: INT>": "named_struct('x', NULL)"}
    db.sql(f"INSERT INTO t VALUES (1, {good.get(type_, 'repeat(' + repr('x') + ', 10000)')})")
    assert values(db, "SELECT count(*) FROM t") == [(1,)]


def test_compaction_of_a_chunked_table_comes_to_an_end(db: stepwell.Database) -> None:
    limit(db, concatenated_rows=1000)
    db.sql("CREATE TABLE t (ts TIMESTAMP, v BIGINT) CHUNK BY ts EVERY INTERVAL '1 day'")
    for _ in range(8):
        db.sql("INSERT INTO t SELECT timestamp_seconds((id % 10) * 86400 + id), id FROM range(0, 500)")
    db.sql("OPTIMIZE t")
    assert values(db, "SELECT count(*), sum(v) FROM t") == [(4000, 8 * 124750)]
    assert values(db, "SELECT count(*) FROM t VERSION AS OF 4") == [(1500,)]
    assert values(db, "SELECT count(*) FROM changes(t, 4)") == [(2500,)]
    assert values(db, "SELECT files FROM stepwell.tables") == [(10,)]


def test_a_key_of_any_type_survives_upserts_and_merges(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE k (ts TIMESTAMP_NTZ, d DATE, n DECIMAL(5, 1), v INT, PRIMARY KEY (ts, d, n))")
    for number in range(10):
        db.sql(
            f"INSERT INTO k VALUES (TIMESTAMP_NTZ '2026-01-01 00:00:00', DATE '2026-01-0{number % 3 + 1}', 1.5, {number})"
        )
    db.sql("OPTIMIZE k")
    assert [row[-1] for row in values(db, "SELECT * FROM k ORDER BY d")] == [9, 7, 8]
    assert db.notes == []


@pytest.mark.parametrize("count", [100, 1000, 4000, 6000])
def test_any_number_of_keys_can_be_upserted_at_once(db: stepwell.Database, count: int) -> None:
    db.sql("CREATE TABLE k (id STRING PRIMARY KEY, v INT)")
    for turn in range(2):
        db.insert("k", [(f"it's \\ {number}", turn) for number in range(count)])
    assert values(db, "SELECT count(*), sum(v) FROM k") == [(count, count)]
    db.sql("DELETE FROM k WHERE v = 1")
    assert values(db, "SELECT count(*) FROM k") == [(0,)]


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_a_merge_of_any_size_gives_every_row_a_number_of_its_own(db: stepwell.Database, key: str) -> None:
    db.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")  # join as large tables are joined
    db.sql(f"CREATE TABLE t (id BIGINT{key}, v BIGINT)")
    db.sql("INSERT INTO t SELECT id, 0 FROM range(0, 500)")
    db.sql(
        "MERGE INTO t USING (SELECT id, id AS v FROM range(250, 1000)) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v + 1 WHEN NOT MATCHED THEN INSERT *"
    )
    assert values(db, "SELECT count(*), count(DISTINCT id), sum(v) FROM t") == [
        (1000, 1000, sum(range(250, 1000)) + 250)
    ]
    db.sql("DELETE FROM t WHERE id % 2 = 0")
    assert values(db, "SELECT count(*), sum(id % 2) FROM t") == [(500, 500)]


def test_a_merge_is_announced_to_delta_as_no_change(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (a INT)")
    for number in range(9):
        db.sql(f"INSERT INTO t VALUES ({number})")
    changes = []
    for path in sorted((tmp_path / "warehouse/data/1/rows/_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        changes += [action["remove"]["dataChange"] for action in actions if "remove" in action]
    assert len(changes) >= 8
    assert not any(changes)


def test_names_may_hold_backticks_points_and_parentheses(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE `p.q)` (`a``b` INT, `c d` INT)")
    db.sql("INSERT INTO `p.q)` (`a``b`) VALUES (1); UPDATE `p.q)` SET `c d` = 2, `a``b` = `a``b` + 1")
    db.sql("MERGE INTO `p.q)` USING (VALUES (2, 5)) AS s(x, y) ON `a``b` = x WHEN MATCHED THEN UPDATE SET `c d` = y")
    db.sql("MERGE INTO `p.q)` AS t USING `p.q)` ON t.`a``b` = `p.q)`.`a``b` WHEN MATCHED THEN UPDATE SET `c d` = 6")
    assert values(db, "SELECT `p.q)`.`a``b`, `c d` FROM `p.q)`") == [(2, 6)]
    assert len(values(db, "SELECT * FROM changes(`p.q)`, 0)")) == 7


def test_a_sample_keeps_the_name_of_its_relation(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    assert values(db, "SELECT t.a FROM t TABLESAMPLE (100 PERCENT)") == [(1,)]
    assert values(db, "SELECT x.a FROM t TABLESAMPLE (100 PERCENT) AS x") == [(1,)]


def test_data_of_another_catalog_is_not_taken_over(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE t (a INT)")
    with pytest.raises(WarehouseError, match="knows nothing of"):
        stepwell.connect(tmp_path / "w", catalog="memory:")


def test_a_catalog_in_memory_serves_a_whole_session(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w", catalog="memory:") as db:
        db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); DELETE FROM t WHERE a = 1; OPTIMIZE t")
        assert values(db, "SELECT * FROM t") == [(2,)]


def test_added_columns_are_null_before_and_gone_when_looking_back(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN b STRING")
    db.sql("INSERT INTO t VALUES (2, 'x'); UPDATE t SET b = 'y' WHERE a = 1")
    assert values(db, "SELECT * FROM t ORDER BY a") == [(1, "y"), (2, "x")]
    assert db.sql("SELECT * FROM t VERSION AS OF 2").columns == ["a"]
    db.sql("OPTIMIZE t; ALTER TABLE t RENAME TO u")
    assert values(db, "SELECT * FROM u ORDER BY a") == [(1, "y"), (2, "x")]
    assert len(values(db, "SELECT * FROM changes(u, 0)")) == 4

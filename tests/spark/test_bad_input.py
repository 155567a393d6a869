"""Bad input: a clear error, and nothing lost."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import stepwell
from stepwell import StepwellError
from stepwell.model.errors import ConflictError, DatabaseClosedError, TransactionStateError


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One database for all: a statement that fails leaves it as it was, and that is checked after each."""
    with stepwell.connect(tmp_path_factory.mktemp("bad") / "warehouse") as db:
        db.sql(
            "CREATE TABLE trades (symbol STRING NOT NULL, price DECIMAL(6, 2), n TINYINT, at TIMESTAMP);"
            "INSERT INTO trades VALUES ('A', 1.5, 1, TIMESTAMP '2026-01-01'), ('A', 1.5, 1, TIMESTAMP '2026-01-01');"
            "CREATE TABLE k (id INT PRIMARY KEY, v INT); INSERT INTO k VALUES (1, 10), (2, 20)"
        )
        yield db


CASES = [
    ("SELECT smbol FROM trades", "42703", 'column "smbol" does not exist', "smbol", 'Did you mean "symbol"?'),
    ("SELECT * FROM trade", "42P01", 'relation "trade" does not exist', "trade", 'Did you mean "trades"?'),
    ("SELECT * FROM other.trades", "42P01", 'relation "other.trades" does not exist', "other.trades", "one namespace"),
    ("SELECT sum( FROM trades", "42601", "", "", ""),
    ("SELECT upper(symbol, 1) FROM trades", None, "", "upper(symbol, 1)", ""),
    ("SELECT nofunction(symbol) FROM trades", None, "nofunction", "nofunction(symbol)", ""),
    ("INSERT INTO trades VALUES ('A')", "42601", "4 columns", "VALUES ('A')", ""),
    ("INSERT INTO trades (symbol, nope) VALUES ('A', 1)", "42703", 'column "nope"', "nope", ""),
    ("INSERT INTO trades (symbol, symbol) VALUES ('A', 'B')", "42701", "assigned twice", "symbol", ""),
    ("INSERT INTO trades VALUES ('A', 'x', 1, NULL)", "22018", "'x' is no DECIMAL(6,2), which column", "'x'", ""),
    ("INSERT INTO trades VALUES ('A', 1, 300, NULL)", "22003", "overflow", "", ""),
    ("INSERT INTO trades VALUES ('A', 123456.0, 1, NULL)", "22003", "", "", ""),
    ("INSERT INTO trades VALUES (NULL, 1, 1, NULL)", "23502", 'column "symbol" of table "trades" must not be NULL', "", ""),
    ("INSERT INTO trades (price) VALUES (1)", "23502", 'column "symbol"', "", ""),
    ("INSERT INTO k VALUES (NULL, 1)", "23502", 'column "id"', "", ""),
    ("INSERT INTO trades SELECT INTERVAL 1 DAY, 1, 1, NULL", "42804", "", "", ""),
    ("UPDATE trades SET nope = 1", "42703", 'column "nope"', "nope", ""),
    ("UPDATE trades SET n = 1000", "22003", "", "", ""),
    ("UPDATE trades SET n = 1 / 0", "22012", "zero", "1 / 0", ""),
    ("UPDATE trades SET symbol = NULL", "23502", 'column "symbol"', "", ""),
    ("UPDATE k SET id = 5", "0A000", "part of the primary key", "id", "DELETE the row"),
    ("DELETE FROM trades WHERE smbol = 1", "42703", 'column "smbol"', "smbol", 'Did you mean "symbol"?'),
    ("MERGE INTO k USING (SELECT 1 AS id UNION ALL SELECT 1) s ON k.id = s.id WHEN MATCHED THEN DELETE", "21000", "two rows of the source", "", "unique"),
    ("INSERT INTO stepwell.tables VALUES (1)", "42809", "cannot be written", "stepwell.tables", ""),
    ("DROP TABLE stepwell.epochs", "42809", "system table", "stepwell.epochs", ""),
    ("SELECT * FROM stepwell.epoch", "42P01", 'system table "stepwell.epoch"', "epoch", 'Did you mean "epochs"?'),
    ("CREATE TABLE Trades (a INT)", "42P07", 'relation "Trades" exists already', "Trades", ""),
    ("ALTER TABLE trades ADD COLUMN Price INT", "42701", 'column "Price" exists already', "", ""),
    ("ALTER TABLE trades RENAME TO k", "42P07", 'relation "k" exists already', "", ""),
    ("DROP TABLE nope", "42P01", 'table "nope"', "nope", ""),
    ("SELECT * FROM trades VERSION AS OF 9999", "22023", "epoch 9999 cannot be read", "trades", "stepwell.epochs"),
    ("SELECT * FROM k VERSION AS OF 1", "22023", "did not exist at epoch 1", "k", ""),
    ("SELECT * FROM changes(trades, 9999)", "22023", "no epochs after 9999", "trades", ""),
    ("SET barrier_intervall = 1", "22023", "no setting", "", 'Did you mean "barrier_interval"?'),
    ("SET retention = 'a while'", "22023", "not a duration", "", ""),
    ("COMMIT", "25P01", "no transaction", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sqlstate", "message", "marked", "hint"), CASES, ids=[case[0][:50] for case in CASES])
def test_a_bad_statement_says_what_where_and_why_and_changes_nothing(
    shared: stepwell.Database, text: str, sqlstate: str | None, message: str, marked: str, hint: str
) -> None:
    before = shared.epoch
    with pytest.raises(StepwellError) as caught:
        shared.sql(text).collect()
    error = caught.value
    assert sqlstate is None or error.sqlstate == sqlstate
    assert message in error.message
    assert hint in (error.hint or "")
    if marked:
        assert error.place is not None
        assert error.place.text[error.place.start : error.place.end] == marked
    assert shared.epoch == before
    assert "_sw_" not in error.message


def test_after_all_that_everything_is_still_there(shared: stepwell.Database) -> None:
    assert shared.sql("SELECT count(*) FROM trades").collect()[0][0] == 2
    assert [tuple(row) for row in shared.sql("SELECT * FROM k ORDER BY id").collect()] == [(1, 10), (2, 20)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([(1,)], "row 0 has 1 values"),
        ([("A", "B", 1, None)], "does not fit"),
        ([{"symbol": "A", "nope": 1}], 'column "nope"'),
        ([{"symbol": "A", "n": 1}, {"symbol": "A", "n": 300}], "row 1: 300 does not fit"),
        (["A"], "row 0 is str"),
        ({"symbol": ["A"]}, "dict cannot be inserted"),
        (5, "int cannot be inserted"),
        (pa.table({"symbol": ["A"], "n": ["x"]}), "is TINYINT, and the value is STRING"),
        (pd.DataFrame({"symbl": ["A"]}), 'column "symbl"'),
    ],
)
def test_bad_data_from_python_is_refused(shared: stepwell.Database, data: Any, message: str) -> None:
    with pytest.raises(StepwellError) as caught:
        shared.insert("trades", data)
    assert message in caught.value.message


def test_data_from_python_comes_in_many_shapes(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT, at TIMESTAMP, d DECIMAL(10, 2), m MAP<STRING, ARRAY<INT>>, s STRUCT<x: INT>)")
    at = datetime.datetime(2026, 1, 1, 12)
    row = {"a": 1, "at": at, "d": decimal.Decimal("1.50"), "m": {"k": [1, None]}, "s": {"x": 1}}
    db.insert("t", [row, tuple(row.values())])
    db.insert("t", [{"a": 2}])
    db.insert("t", pd.DataFrame({"at": [at], "a": [3]}))
    db.insert("t", pa.table({"a": pa.array([4], pa.int8()), "s": pa.array([{"x": 1}], pa.struct([("x", pa.int64())]))}))
    db.insert("t", db.sql("SELECT a + 10 AS a FROM t WHERE a = 1"))
    found = db.sql("SELECT a, at, d, m, s.x FROM t ORDER BY a").collect()
    assert [each.a for each in found] == [1, 1, 2, 3, 4, 11, 11]
    assert (found[0].d, found[0].m, found[0].x) == (decimal.Decimal("1.50"), {"k": [1, None]}, 1)
    assert db.sql("SELECT count(*) FROM t WHERE at = TIMESTAMP '2026-01-01 12:00:00'").collect()[0][0] == 3


def test_a_transaction_in_conflict_applies_nothing_of_itself(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as one, stepwell.connect(tmp_path / "w") as other:
        one.sql("CREATE TABLE k (id INT PRIMARY KEY, v INT); CREATE TABLE log (t STRING); INSERT INTO k VALUES (1, 1)")
        one.sql("BEGIN; INSERT INTO log VALUES ('mine'); UPDATE k SET v = 2 WHERE id = 1")
        other.sql("UPDATE k SET v = 3 WHERE id = 1")
        with pytest.raises(ConflictError) as caught:
            one.sql("COMMIT")
        assert caught.value.sqlstate == "40001"
        assert not one.in_transaction
        assert [tuple(row) for row in one.sql("SELECT id, v FROM k").collect()] == [(1, 3)]
        assert one.sql("SELECT * FROM log").collect() == []
        one.sql("BEGIN; UPDATE k SET v = v + 1; COMMIT")
        assert one.sql("SELECT v FROM k").collect()[0].v == 4


def test_keys_that_nobody_else_touched_do_not_conflict(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as one, stepwell.connect(tmp_path / "w") as other:
        one.sql("CREATE TABLE k (id INT PRIMARY KEY, v INT); INSERT INTO k VALUES (1, 1), (2, 2)")
        one.sql("BEGIN; UPDATE k SET v = 10 WHERE id = 1")
        other.sql("UPDATE k SET v = 20 WHERE id = 2")
        one.sql("COMMIT")
        assert [row.v for row in one.sql("SELECT v FROM k ORDER BY id").collect()] == [10, 20]


def test_transactions_refuse_what_they_cannot_do(db: stepwell.Database) -> None:
    db.sql("BEGIN")
    with pytest.raises(TransactionStateError):
        db.sql("BEGIN")
    with pytest.raises(TransactionStateError):
        db.sql("CREATE TABLE t (a INT)")
    db.sql("ROLLBACK")
    db.close()
    with pytest.raises(DatabaseClosedError):
        db.sql("SELECT 1")


def test_explain_describe_and_show(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE `a b` (x INT NOT NULL, ts DATE, PRIMARY KEY (x)) CHUNK BY ts EVERY INTERVAL '7 days'")
    plan = db.sql("EXPLAIN SELECT x FROM `a b`")
    assert isinstance(plan, stepwell.Rows)
    assert any("Physical Plan" in row[0] for row in plan.tuples())
    assert db.sql("SHOW TABLES").collect()[0]["name"] == "a b"
    assert [row["name"] for row in db.sql("DESCRIBE `a b`").collect()] == ["x", "ts"]
    text = db.sql("SHOW CREATE TABLE `a b`").collect()[0]["statement"]
    db.sql("DROP TABLE `a b`")
    db.sql(text)
    assert db.sql("SELECT name, chunks FROM stepwell.tables").collect()[0]["chunks"] == "ts every 7 days"
    assert db.sql("SELECT upper(name) FROM stepwell.tables WHERE rows = 0").collect()[0][0] == "A B"

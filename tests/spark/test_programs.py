"""Writing programs: parameters, labels, tables as DataFrames, rows and literals as everybody writes them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

import stepwell
from stepwell.model.errors import LabelError, ParameterError, SqlSyntaxError, TypeMismatchError, UndefinedTableError
from views import answer

NOON = datetime.datetime(2024, 5, 1, 12, 0)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path_factory.mktemp("programs") / "warehouse") as database:
        database.sql(
            "CREATE TABLE orders (id INT, day DATE, at TIMESTAMP, price DECIMAL(10,2), note STRING, done BOOLEAN);"
            "CREATE MATERIALIZED VIEW notes AS SELECT note, count(*) AS n FROM orders GROUP BY note"
        )
        yield database


def rows(db: stepwell.Database, text: str, args: Any = None) -> list[tuple[Any, ...]]:
    found = db.sql(text, args)
    return found.tuples() if isinstance(found, stepwell.Rows) else [tuple(row) for row in found.collect()]


def test_values_are_bound_by_name_and_in_order(db: stepwell.Database) -> None:
    nasty = "'; DROP TABLE orders; --"
    db.sql(
        "INSERT INTO orders (id, at, price, note) VALUES (?, ?, ?, ?), (2, NULL, ?, ':id')",
        [1, NOON, Decimal("1.50"), nasty, Decimal("2.25")],
    )
    assert rows(db, "SELECT note FROM orders WHERE id = :id AND at = :at AND :id=:id", {"id": 1, "at": NOON}) == [
        (nasty,)
    ]
    assert rows(db, "SELECT id FROM orders WHERE note = ? OR id IN (?, ?) ORDER BY id", (nasty, 2, 3)) == [(1,), (2,)]
    db.sql("UPDATE orders SET note = :note WHERE id = :id", {"id": 2, "note": "two"})
    db.sql("UPDATE orders SET note = ?, price = price + ? WHERE id = ?", ["zwei", 1, 2])
    assert rows(db, "SELECT note, price FROM orders WHERE id = 2") == [("zwei", Decimal("3.25"))]
    db.sql(
        "MERGE INTO orders AS t USING (SELECT ? AS id, ? AS note) AS s ON t.id = s.id"
        " WHEN MATCHED AND t.id > ? THEN UPDATE SET note = ? WHEN NOT MATCHED THEN INSERT (id, note) VALUES (s.id, ?)",
        [2, "unused", 0, "merged", "new"],
    )
    db.sql("DELETE FROM orders WHERE id = ?; SELECT ?", [1, 5])
    assert rows(db, "SELECT id, note FROM orders WHERE id >= :low", {"low": 0}) == [(2, "merged")]


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("SELECT :a", {}, 'parameter "a" has no value'),
        ("SELECT :day", {"dya": 1}, 'parameter "day" has no value'),
        ("SELECT :a", {"a": 1, "b": 2}, 'there is no parameter "b" in the text'),
        ("SELECT ?, ?", [1], "the text has 2 parameters, and there is 1 value"),
        ("SELECT 1", [1, 2], "the text has 0 parameters, and there are 2 values"),
        ("SELECT ?", {"a": 1}, "? takes its value from a list"),
        ("SELECT :a", [1], ":a takes its value from a dict"),
        ("CREATE TABLE x (a INT); SET retention = ?", ["1 day"], "a parameter stands for a value in a query"),
        ("CREATE VIEW x AS SELECT :a AS a", {"a": 1}, "a parameter stands for a value in a query"),
        ("SELECT 1", "abc", "args is a dict"),
    ],
)
def test_parameters_that_are_missing_or_too_many_are_named_and_nothing_runs(
    db: stepwell.Database, text: str, args: Any, said: str
) -> None:
    with pytest.raises(ParameterError) as error:
        db.sql(text, args)
    assert said in str(error.value)
    assert "x" not in [each.name for each in db.relations()]


def test_a_field_of_a_type_is_no_parameter(db: stepwell.Database) -> None:
    assert rows(db, "SELECT CAST(NULL AS STRUCT<a:INT>) IS NULL, ?", [7]) == [(True, 7)]


def test_a_table_is_a_dataframe_and_so_is_a_view_and_a_system_table(db: stepwell.Database) -> None:
    for name in ("orders", "main.notes", "stepwell.tables"):
        found = db.table(name)
        assert isinstance(found, DataFrame)
        assert found.count() >= 1
    with pytest.raises(UndefinedTableError, match="ordres"):
        db.table("ordres")


def test_system_tables_answer_alike_with_and_without_where(db: stepwell.Database) -> None:
    plain = db.sql("SELECT epoch, readable_at FROM stepwell.epochs")
    chosen = db.sql("SELECT epoch, readable_at FROM stepwell.epochs WHERE epoch >= ? ORDER BY epoch", [0])
    assert isinstance(plain, stepwell.Rows)
    assert isinstance(chosen, stepwell.Rows)
    assert plain.tuples() == chosen.tuples()
    mixed = db.sql("SELECT t.name FROM stepwell.tables AS t JOIN orders AS o ON t.id = o.id")
    assert isinstance(mixed, DataFrame)


def test_an_insert_with_a_label_happens_once(db: stepwell.Database) -> None:
    data = pa.table({"id": [100, 101], "note": ["l", "l"]})
    assert db.insert("orders", data, label="monday").tuples()[0][:2] == (2, 0)
    again = db.insert("orders", data, label="monday")
    assert again.tuples() == [(0, 0, None)]
    assert "is there already" in again.notes[0]
    with pytest.raises(LabelError, match="other rows"):
        db.insert("orders", [(100, None, None, None, "other", None)], label="monday")
    db.sql("CREATE TABLE others (id INT)")
    with pytest.raises(LabelError, match="another table"):
        db.insert("others", [(1,)], label="monday")
    assert ("monday", 2) in answer(db, "SELECT label, rows FROM stepwell.loads")
    assert rows(db, "SELECT count(*) FROM orders WHERE note = 'l'") == [(2,)]


def test_rows_may_mix_numbers_dates_and_texts_of_them(db: stepwell.Database) -> None:
    db.insert(
        "orders", [(200, "2024-01-02", NOON, "1.5", "r", None), ("201", None, "2024-05-01 12:00:00", 2, "r", None)]
    )
    assert rows(db, "SELECT id, day, price FROM orders WHERE at = :at AND note = 'r' ORDER BY id", {"at": NOON}) == [
        (200, datetime.date(2024, 1, 2), Decimal("1.50")), (201, None, Decimal("2.00")),
    ]  # fmt: skip
    with pytest.raises(TypeMismatchError, match="row 0: 'x'"):
        db.insert("orders", [("x", None, None, None, None, None)])


@pytest.mark.parametrize("dialect", ["spark", "postgres"])
def test_a_string_literal_takes_the_type_of_its_column(db: stepwell.Database, dialect: str) -> None:
    db._dialect, before = type(db._dialect)(dialect), db._dialect
    try:
        db.sql(
            "INSERT INTO orders VALUES (300, '2024-01-02', '2024-01-02 03:04:05', '1.5', '7', 'true'),"
            " ('301', NULL, NULL, 2, '8', false)"
        )
        db.sql("INSERT INTO orders (note, day, id) VALUES ('it''s, (odd)', '2024-02-03', 302)")
        db.sql("UPDATE orders SET day = '2024-03-04', note = '9' WHERE id = 301")
        assert rows(db, "SELECT id, day, price, note, done FROM orders WHERE id >= 300 ORDER BY id") == [
            (300, datetime.date(2024, 1, 2), Decimal("1.50"), "7", True),
            (301, datetime.date(2024, 3, 4), Decimal("2.00"), "9", False),
            (302, datetime.date(2024, 2, 3), None, "it's, (odd)", None),
        ]
        for text, literal in [
            ("INSERT INTO orders (id, day) VALUES (1, '2024-01-02'), (2, 'someday')", "'someday'"),
            ("UPDATE orders SET id = 'one' WHERE id = 300", "'one'"),
        ]:
            with pytest.raises(TypeMismatchError) as error:
                db.sql(text)
            place = error.value.place
            assert place is not None
            assert place.text[place.start : place.end] == literal
    finally:
        db.sql("DELETE FROM orders WHERE id >= 300")
        db._dialect = before


def test_an_interval_cannot_be_a_column_and_create_says_how_to_store_it(db: stepwell.Database) -> None:
    for text in (
        "CREATE TABLE durations (took INTERVAL DAY TO SECOND)",
        "CREATE MATERIALIZED VIEW durations AS SELECT at - TIMESTAMP '2024-01-01' AS took FROM orders",
    ):
        with pytest.raises(stepwell.StepwellError) as error:
            db.sql(text)
        assert error.value.hint is not None
        assert "BIGINT" in error.value.hint


def test_a_blank_behind_a_statement_is_nothing(db: stepwell.Database) -> None:
    assert isinstance(db.sql("SHOW TABLES "), stepwell.Rows)
    with pytest.raises(SqlSyntaxError):
        db.sql("SHOW TABLES x")

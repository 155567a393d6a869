"""Texts to statements, and the errors of texts that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.model.create_statement import create_statement
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError
from stepwell.model.loads import Format, LoadOptions, OnError
from stepwell.model.relations import Chunking, Column, Definition, Relation, WatermarkRule
from stepwell.model.types import BIGINT, INT, STRING, TIMESTAMP
from stepwell.model.views import RelationId
from stepwell.sql import parse
from stepwell.sql.statements import (
    AddColumns,
    Begin,
    Commit,
    Copy,
    CreateTable,
    Delete,
    Describe,
    DropRelations,
    ExplainQuery,
    Flush,
    Insert,
    Merge,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    Optimize,
    Query,
    RenameTable,
    Rollback,
    SetOption,
    ShowCreate,
    ShowTables,
    Truncate,
    Update,
    Vacuum,
)


def test_several_statements_stand_in_one_text_between_comments() -> None:
    text = "-- first;\nSELECT ';' AS a; /* ; */ BEGIN;; COMMIT ; -- last"
    assert [type(each.body) for each in parse(text)] == [Query, Begin, Commit]
    assert parse(text)[0].slice.text == "SELECT ';' AS a"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT 1", Query), ("WITH a AS (SELECT 1) SELECT * FROM a", Query), ("VALUES (1)", Query), ("(SELECT 1)", Query),
        ("FROM t SELECT *", Query), ("EXPLAIN SELECT 1", ExplainQuery), ("EXPLAIN SELECT 'a'", ExplainQuery), ("DROP TABLE a, b", DropRelations),
        ("ALTER TABLE a RENAME TO b", RenameTable), ("ALTER TABLE a ADD COLUMNS (b INT, c STRING)", AddColumns),
        ("INSERT INTO t SELECT 1", Insert), ("INSERT INTO TABLE t (SELECT 1)", Insert), ("UPDATE t SET a = 1", Update),
        ("DELETE FROM t", Delete), ("TRUNCATE TABLE t", Truncate), ("BEGIN TRANSACTION", Begin), ("START TRANSACTION", Begin),
        ("COMMIT WORK", Commit), ("ROLLBACK", Rollback), ("FLUSH", Flush), ("SHOW TABLES", ShowTables),
        ("SHOW CREATE TABLE t", ShowCreate), ("DESCRIBE t", Describe), ("OPTIMIZE t", Optimize), ("VACUUM", Vacuum),
    ],
)  # fmt: skip
def test_each_statement_is_known(text: str, kind: type) -> None:
    assert isinstance(parse(text)[0].body, kind)


def test_create_table_has_columns_key_watermark_and_chunks() -> None:
    [statement] = parse(
        "CREATE TABLE IF NOT EXISTS `my t` (a INT, b STRING NOT NULL, ts TIMESTAMP, PRIMARY KEY (a),"
        " WATERMARK FOR ts AS ts - INTERVAL '5 seconds') CHUNK BY ts EVERY INTERVAL 6 HOURS"
    )
    body = statement.body
    assert isinstance(body, CreateTable)
    assert body.name.parts == ("my t",)
    assert body.columns == (Column("a", INT, False), Column("b", STRING, False), Column("ts", TIMESTAMP))
    assert (body.key, body.if_not_exists) == (("a",), True)
    assert body.watermark == WatermarkRule("ts", 5_000_000)
    assert body.chunking == Chunking("ts", 6 * 3_600_000_000)


def test_a_table_with_event_time_is_stored_by_day_unless_it_says_otherwise() -> None:
    [timed] = parse("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts)")
    assert isinstance(timed.body, CreateTable)
    assert timed.body.chunking == Chunking("ts", 86_400_000_000)
    [number] = parse("CREATE TABLE t (n BIGINT, WATERMARK FOR n AS n - 10) CHUNK BY n EVERY 1000")
    assert isinstance(number.body, CreateTable)
    assert (number.body.chunking, number.body.watermark) == (Chunking("n", 1000), WatermarkRule("n", 10))


def test_merge_has_its_clauses_in_order() -> None:
    [statement] = parse(
        "MERGE INTO t AS x USING (SELECT * FROM s) AS s ON x.a = s.a AND CASE WHEN true THEN true END "
        "WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET b = s.b, x.c = f(s.c, 1) "
        "WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a, g(s.b, 2)) WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    body = statement.body
    assert isinstance(body, Merge)
    assert body.condition.text.endswith("END")
    assert [each.pairs for each in body.clauses] == ["matched", "matched", "not matched", "not matched by source"]
    first, second, third, _ = (each.action for each in body.clauses)
    assert isinstance(first, MergeDelete)
    assert isinstance(second, MergeUpdate)
    assert second.assignments is not None
    assert [(each.column.text, each.value.text) for each in second.assignments] == [("b", "s.b"), ("c", "f(s.c, 1)")]
    assert isinstance(third, MergeInsert)
    assert third.values is not None
    assert [each.text for each in third.values] == ["s.a", "g(s.b, 2)"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("SET barrier_interval = '1 second'", "1 second"), ("SET barrier_interval TO 0", "0"),
     ("set BARRIER_INTERVAL = INTERVAL '2 seconds'", "2 seconds"), ("SET barrier_interval = INTERVAL 3 SECONDS", "3 SECONDS")],
)  # fmt: skip
def test_settings_take_words_numbers_and_intervals(text: str, value: str) -> None:
    body = parse(text)[0].body
    assert isinstance(body, SetOption)
    assert (body.name, body.value) == ("barrier_interval", value)


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("SELEC 1", '"SELEC" does not begin a statement', "SELEC"),
        ("CREATE TABL t (a INT)", 'expected TABLE, MATERIALIZED VIEW or VIEW instead of "TABL"', "TABL"),
        ("CREATE TABLE t (a INT, A STRING)", 'column "A" appears twice', "A"),
        ("CREATE TABLE t (a INT, _diff INT)", 'column name "_diff" is reserved', "_diff"),
        ("CREATE TABLE t (_SW_x INT)", 'column name "_SW_x" is reserved', "_SW_x"),
        ("CREATE TABLE t (a INTERVAL DAY)", "type INTERVAL DAY cannot be stored", "INTERVAL DAY"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", 'column "b" does not exist', "b"),
        ("CREATE TABLE t (m MAP<INT, INT> PRIMARY KEY)", "cannot be part of a key", "m"),
        ("CREATE TABLE t (d DOUBLE PRIMARY KEY)", "cannot be part of a key", "d"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", "more than one primary key", "b"),
        ("CREATE TABLE t (s STRING, WATERMARK FOR s AS s - INTERVAL '1 second')", "needs a time column", "s"),
        ("CREATE TABLE t (a INT) CHUNK BY x", 'column "x" does not exist', "x"),
        ("CREATE TABLE t (a TIMESTAMP) CHUNK BY a EVERY INTERVAL '0 seconds'", "wider than nothing", "a"),
        ("CREATE TABLE t ()", "expected a column name", ")"),
        ("CREATE TABLE t (a INT) x", "expected the end of the statement", "x"),
        ("ALTER TABLE t ADD COLUMN a INT NOT NULL", "cannot be NOT NULL", "a"),
        ("INSERT INTO t VALS (1)", "expected VALUES or a query", "VALS"),
        ("UPDATE t SET", "expected a column at the end", "T"),
        ("UPDATE t SET a = WHERE b", "expected a value", "WHERE"),
        ("DELETE t", "expected FROM", "t"),
        ("DROP TABLE", "expected a table at the end", "E"),
        ("SELECT 'abc", "this string is never closed", "'"),
        ("SELECT `abc", "this quoted name is never closed", "`"),
        ("SELECT 1 /* abc", "this comment is never closed", "/*"),
        ("SET retention 5", "expected TO", "5"),
        ("UPDATE t SET s.a = 1", "is no column of the target", "s.a"),
        ("MERGE INTO t USING s ON true", "expected WHEN MATCHED", "e"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_and_pointed_at(text: str, message: str, marked: str) -> None:
    with pytest.raises(StepwellError) as caught:
        parse(text)
    assert message in caught.value.message
    place = caught.value.place
    assert place is not None
    assert place.text[place.start : place.end] == marked


def test_a_definition_is_written_as_a_statement_that_creates_it() -> None:
    text = (
        "CREATE TABLE `a b` (x BIGINT, y DECIMAL(10,2), ts TIMESTAMP, PRIMARY KEY (x),"
        " WATERMARK FOR ts AS ts - INTERVAL '90 seconds') CHUNK BY ts EVERY INTERVAL '1 hour'"
    )
    body = parse(text)[0].body
    assert isinstance(body, CreateTable)
    definition = Definition(key=body.key, chunking=body.chunking, watermark=body.watermark)
    relation = Relation(RelationId(1), "a b", definition, body.columns, Epoch(1))
    again = parse(create_statement(relation))[0].body
    assert isinstance(again, CreateTable)
    assert (again.columns, again.key, again.chunking, again.watermark) == (
        body.columns, body.key, body.chunking, body.watermark,
    )  # fmt: skip
    assert again.columns[0].type == BIGINT


def test_a_long_script_is_read_to_its_end() -> None:
    assert len(parse("SHOW TABLES;" * 1500)) == 1500
    [update] = parse("UPDATE t AS x SET x.a = b IS DISTINCT FROM c, t.b = 2 WHERE d")
    assert isinstance(update.body, Update)
    assert [each.value.text for each in update.body.assignments] == ["b IS DISTINCT FROM c", "2"]


words = st.sampled_from(
    [
        "SELECT",
        "CREATE",
        "TABLE",
        "INSERT",
        "INTO",
        "VALUES",
        "UPDATE",
        "SET",
        "WHERE",
        "MERGE",
        "USING",
        "ON",
        "WHEN",
        "MATCHED",
        "THEN",
        "DELETE",
        "FROM",
        "(",
        ")",
        ",",
        ";",
        ".",
        "=",
        "*",
        "a",
        "b",
        "`q",
        "r`",
        "'text'",
        "1",
        "2.5",
        "--",
        "/*",
        "*/",
        "INTERVAL",
        "PRIMARY",
        "KEY",
        "WATERMARK",
        "FOR",
        "AS",
        "-",
        "CHUNK",
        "BY",
        "EVERY",
        "SHOW",
        "TABLES",
        "DROP",
        "ALTER",
        "ADD",
        "<",
        ">",
    ]
)


@given(st.lists(words, max_size=15).map(" ".join) | st.text(max_size=40))
def test_any_text_gives_statements_or_an_error_of_ours(text: str) -> None:
    try:
        parse(text)
    except StepwellError as error:
        str(error)


def test_copy_has_paths_columns_and_options() -> None:
    [statement] = parse(
        "COPY t (a, `b c`) FROM 'x.csv', 'y.csv' WITH (FORMAT csv, header = false, DELIMITER ';', LABEL 'l-1', on_error skip)"
    )
    copy = statement.body
    assert isinstance(copy, Copy)
    assert copy.paths == ("x.csv", "y.csv")
    assert [column.unquoted for column in copy.columns or ()] == ["a", "b c"]
    assert copy.options == LoadOptions(Format.CSV, "l-1", OnError.SKIP, header=False, delimiter=";")
    [bare] = parse("COPY t FROM 'x' (multiline)")
    assert isinstance(bare.body, Copy)
    assert bare.body.options == LoadOptions(multiline=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("COPY t FROM x", "expected a path in quotes"),
        ("COPY t", "expected FROM"),
        ("COPY t FROM 'x' (FORMAT orc)", "format is parquet or csv or json"),
        ("COPY t FROM 'x' (frmat csv)", 'Did you mean "format"?'),
        ("COPY t FROM 'x' (delimiter ';;')", "one character"),
        ("COPY t FROM 'x' (label '')", "cannot be empty"),
        ("COPY t FROM 'x' (label 7)", "takes a string"),
        ("COPY t FROM 'x' (header maybe)", "true or false"),
        ("COPY t FROM 'x' (on_error ignore)", "on_error is abort or skip"),
        ("COPY t FROM 'x' (format csv) y", "expected the end"),
    ],
)
def test_a_wrong_copy_is_refused(text: str, message: str) -> None:
    with pytest.raises(StepwellError) as caught:
        parse(text)
    assert message in str(caught.value)

"""PostgreSQL's SQL, carried over into Spark's."""

from __future__ import annotations

import pytest

from stepwell.model.errors import SqlSyntaxError, StepwellError
from stepwell.sql import Dialect, parse
from stepwell.sql.dialects import to_spark
from stepwell.sql.statements import CreateTable, CreateView, ExplainQuery, Flush, Insert, Query, ShowCreate

CARRIED = {
    "select v1::varchar, v2::int8 from t": "SELECT CAST(v1 AS STRING), CAST(v2 AS BIGINT) FROM t",
    "select v::numeric from t": "SELECT CAST(v AS DECIMAL(38, 18)) FROM t",
    'select "Some Name" from "T"': "SELECT `Some Name` FROM `T`",
    "select 'it''s \\ so'": "SELECT 'it\\'s \\\\ so'",
    "update t set a = a::int + 1 where b ~ '^x'": "UPDATE t SET a = CAST(a AS INT) + 1 WHERE b RLIKE '^x'",
    "flush": "flush",
    'drop table "a b" cascade': "drop table `a b` cascade",
    'show create "m v"': "SHOW create `m v`",
    "explain select 1::int8 as x": "EXPLAIN SELECT CAST(1 AS BIGINT) AS x",
    "create materialized view m as select a::text as b from t": "create materialized view m as SELECT CAST(a AS STRING) AS b FROM t",
    'alter table t add column "A b" numeric': "alter table t add column `A b` DECIMAL(38, 18)",
    "alter table t add columns (a text, b int8)": "alter table t add columns ( a STRING , b BIGINT )",
    "alter table t rename to u": "alter table t rename to u",
    "copy t from 'a.csv' (format csv)": "copy t from 'a.csv' (format csv)",
}


@pytest.mark.parametrize("text", CARRIED)
def test_a_statement_is_carried_over(text: str) -> None:
    assert to_spark(text, Dialect.POSTGRES) == CARRIED[text]


def test_the_columns_of_a_table_get_sparks_types() -> None:
    [statement] = parse(
        'create table t ("K" int primary key, a varchar(10) not null, b numeric, c numeric(10, 2), d double precision,'
        " e timestamp without time zone, f timestamptz, g bytea, h bool, i int[], j character varying, l real)",
        Dialect.POSTGRES,
    )
    assert isinstance(statement.body, CreateTable)
    assert [(column.name, str(column.type)) for column in statement.body.columns] == [
        ("K", "INT"), ("a", "STRING"), ("b", "DECIMAL(38,18)"), ("c", "DECIMAL(10,2)"), ("d", "DOUBLE"), ("e", "TIMESTAMP"),
        ("f", "TIMESTAMP"), ("g", "BINARY"), ("h", "BOOLEAN"), ("i", "ARRAY<INT>"), ("j", "STRING"), ("l", "FLOAT"),
    ]  # fmt: skip
    assert statement.body.key == ("K",)


def test_several_statements_stay_several() -> None:
    text = "flush; insert into t values (1); -- a remark\n create materialized view m as select 1 as a from t; select 1;show create m; explain select 1"
    kinds = [type(statement.body) for statement in parse(text, Dialect.POSTGRES)]
    assert kinds == [Flush, Insert, CreateView, Query, ShowCreate, ExplainQuery]


def test_what_is_ours_in_a_create_table_stays() -> None:
    [statement] = parse(
        "create table t (a int, watermark for ts as ts - interval '5 seconds', ts timestamp)", Dialect.POSTGRES
    )
    assert isinstance(statement.body, CreateTable)
    assert statement.body.watermark is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select a frm t wher", "cannot be read as PostgreSQL"),
        ("select from where", "cannot be read as PostgreSQL"),
        ("create table t (a time)", "cannot be stored"),
        ("create table t (a serial)", "SERIAL is not offered"),
        ("select a::time from t", "TIME has no counterpart"),
        ("select 'open", "cannot be read"),
        ("insert into t values (1) returning (id)", "there is no RETURNING"),
        ("insert into t values (1) on conflict do nothing", "there is no ON CONFLICT"),
        ("select percentile_cont(0.5) within group (order by x) from t", "there is no percentile_cont"),
        ("select a from t order by a fetch first 3 rows with ties", "there is no WITH TIES"),
        ("nonsense 1", "does not begin a statement"),
    ],
)
def test_what_cannot_be_carried_over_is_a_clear_error(text: str, message: str) -> None:
    with pytest.raises(StepwellError) as caught:
        parse(text, Dialect.POSTGRES)
    assert message in str(caught.value)


def test_a_mistake_is_pointed_at() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse("select 1;\nselect a frm t wher", Dialect.POSTGRES)
    assert caught.value.place is not None
    assert "select a frm" in caught.value.place.draw()

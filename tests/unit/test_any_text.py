"""Any text at all: the parsers know it, or they say where it is wrong."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.model.errors import StepwellError
from stepwell.model.types import parse_type
from stepwell.sql import EXPRESSION, QUERY, RELATION, Dialect, find_references, parse, window_calls
from stepwell.sql.references import called_functions, forbidden_function
from stepwell.sql.statements import Slice

STATEMENTS = [
    "SHOW TABLES", "SHOW MATERIALIZED VIEWS", "SHOW LINEAGE FOR v COLUMN c", "SHOW CREATE TABLE t", "OPTIMIZE t",
    "DESCRIBE t", "EXPLAIN SELECT 1", "EXPLAIN REFRESH MATERIALIZED VIEW v", "VERIFY v REPAIR", "VACUUM", "FLUSH",
    "CREATE TABLE t (a INT PRIMARY KEY, `b c` ARRAY<STRUCT<x: DECIMAL(3, 1), y: MAP<STRING, INT>>> NOT NULL,"
    " ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') WITH (idle_timeout = INTERVAL 1 MINUTE)"
    " CHUNK BY (ts EVERY INTERVAL '1 day')",
    "ALTER TABLE t ADD COLUMNS (x INT, y STRING)", "ALTER TABLE t RENAME TO u", "DROP TABLE IF EXISTS a, b CASCADE",
    "CREATE OR REPLACE MATERIALIZED VIEW v (a, b) WITH (refresh_policy = 'full', priority = 1) AS SELECT k,"
    " TUMBLE_START(ts, INTERVAL '1 minute'), b'x', r'\\d', 1e3, 0x1F, X'00' FROM t -- c\nWHERE a = 'it''s' GROUP BY 1, 2"
    " EMIT PERIODICALLY INTERVAL '1 second' ALLOW LATENESS INTERVAL '5 seconds'",
    "ALTER MATERIALIZED VIEW v SET (priority = 3)", "ALTER MATERIALIZED VIEW v PAUSE", "SET retention = INTERVAL 3 DAYS",
    "INSERT INTO t (a, b) VALUES (1, 'x'), (-2.5, NULL)", "UPDATE t AS u SET u.a = CASE WHEN b THEN 1 ELSE 2 END WHERE x",
    "DELETE FROM t WHERE a IN (SELECT a FROM u VERSION AS OF 5)", "TRUNCATE TABLE t", "BEGIN; COMMIT; ROLLBACK WORK",
    "MERGE INTO t USING (SELECT 1 AS a) AS s (a) ON t.a = s.a WHEN MATCHED AND s.a > 1 THEN UPDATE SET *"
    " WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)",
    "COPY INTO t (a) FROM 'x.csv', 'y' WITH (format csv, header, delimiter = ';')",
    "WITH RECURSIVE c AS (SELECT * FROM changes(t, 1, 2)) SELECT c.*, v$late.x FROM c JOIN v$late TIMESTAMP AS OF '2024-01-01'"
    " LATERAL VIEW explode(a) AS e /* no */ ORDER BY 1 LIMIT 3",
    "SELECT * FROM SESSION(t, ts, INTERVAL '5 minutes', k), HOP(t, ts, INTERVAL '1 minute', INTERVAL '2 minutes')",
    "SELECT time_bucket(INTERVAL '3 months', ts, 'Asia/Tokyo'), time_bucket(5, a, 2), TUMBLE(a, 10) FROM t GROUP BY 1",
    "EXECUTE x", "FETCH 1", "RENAME a", "CALL f(1)", "ANALYZE t", "USE x", "GRANT a TO b", "COMMENT ON TABLE t IS 'x'",
]  # fmt: skip
SIGNS = [*"'\"`()[]{}<>,;.:=+-*/%$#@!?\\|&^~\n\t \u00a0\u2028\x00\x1c\r0", "--", "/*", "*/", "->", "::", "b'", "r'", "X'", "$$",
         "''", '""', "``", "é", "\U0001f600", "ﬁ", "²", "Ⅷ", "١", "1.", ".5", "1e", "0x", "INTERVAL", "NULL", "AS OF", "CASE",
         "CHANGES(", "changes", "STRING''", "FROM", "SELECT", "WINDOW", "99999999999999999999"]  # fmt: skip


def read_all_ways(text: str) -> None:
    """Every function that reads a text of the user's. What it raises is an error of ours, and is drawn where it is."""
    whole = Slice(text, 0, len(text))
    for read in (
        lambda: parse(text),
        lambda: parse(text, Dialect.POSTGRES),
        lambda: find_references(whole, QUERY),
        lambda: find_references(whole, EXPRESSION),
        lambda: find_references(whole, RELATION),
        lambda: window_calls(whole),
        lambda: forbidden_function(whole),
        lambda: called_functions(whole),
        lambda: parse_type(text),
    ):
        try:
            read()
        except StepwellError as error:
            str(error)


def broken(random_: random.Random) -> str:
    """A statement of ours with pieces cut out, put in, doubled or put together with those of another."""
    text = random_.choice(STATEMENTS)
    for _ in range(random_.randint(1, 6)):
        at, until = sorted((random_.randint(0, len(text)), random_.randint(0, len(text))))
        match random_.randrange(6):
            case 0:
                text = text[:at]
            case 1:
                text = text[:at] + text[until:]
            case 2:
                text = text[:at] + random_.choice(SIGNS) + text[at:]
            case 3:
                text = text[:until] + text[at:until] + text[until:]
            case 4:
                text = text[:at] + random_.choice(STATEMENTS)[at:]
            case 5:
                words = text.split(" ")
                random_.shuffle(words)
                text = " ".join(words)
    return text


@pytest.mark.parametrize("seed", range(20))
def test_a_broken_statement_is_an_error_of_ours(seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(60):
        text = broken(random_)
        try:
            read_all_ways(text)
        except Exception as error:
            raise AssertionError(repr(text)) from error


@given(st.text(max_size=60) | st.lists(st.sampled_from(SIGNS), max_size=20).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    read_all_ways(text)


def what_is_read(text: str) -> object:
    """The kinds of statements in a text, or why there are none."""
    try:
        return [type(each.body) for each in parse(text)]
    except StepwellError as error:
        return error.message


@pytest.mark.parametrize("ending", [" ", "\n", "\t\n  ", " ;", " ; ", " -- all\n", "/* x */ "])
def test_what_stands_behind_a_statement_is_nothing(ending: str) -> None:
    for text in STATEMENTS:
        assert what_is_read(text + ending) == what_is_read(text), text


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a " + "ARRAY<" * 500 + "INT" + ">" * 500 + ")",
        "SELECT " + "(" * 500 + "1" + ")" * 500,
        "SELECT " + "-" * 1001 + "1",
        "SELECT " + "NOT " * 3000 + "true",
        "SELECT " + "CASE WHEN a THEN " * 500 + "1" + " END" * 500,
        "SELECT * FROM " + "(SELECT * FROM " * 300 + "t" + ")" * 300,
        "SELECT a" + " + a" * 20_000 + " FROM t",
    ],
)
def test_deep_texts_are_read_or_refused(text: str) -> None:
    read_all_ways(text)

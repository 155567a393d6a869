"""Fingerprints: one for the same value, another for any other, however near the two are."""

from __future__ import annotations

import itertools

import pytest
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

import stepwell
from stepwell.algebra.fingerprints import fingerprint
from stepwell.engine.read.canonical import differs
from stepwell.model.relations import Column
from stepwell.model.types import parse_type
from views import answer

DIFFERENT: dict[str, list[str]] = {
    "BOOLEAN": ["true", "false", "NULL"],
    "TINYINT": ["0", "1", "-1", "NULL"],
    "SMALLINT": ["0", "1", "-1", "NULL"],
    "INT": ["0", "1", "-1", "2147483647", "NULL"],
    "BIGINT": ["0", "1", "9007199254740992", "9007199254740993", "NULL"],
    "FLOAT": ["0.0D", "-0.0D", "'NaN'", "'Infinity'", "'-Infinity'", "1.0D", "1.0000001D", "1.4E-45D", "NULL"],
    "DOUBLE": ["0.0D", "-0.0D", "'NaN'", "'Infinity'", "1.0D", "1.0000000000000002D", "4.9E-324D", "NULL"],
    "DECIMAL(5,2)": ["0", "0.01", "-0.01", "1.10", "1.11", "NULL"],
    "DECIMAL(38,0)": ["0", "99999999999999999999999999999999999999", "99999999999999999999999999999999999998", "NULL"],
    "DECIMAL(38,38)": ["0", "0.00000000000000000000000000000000000001", "NULL"],
    "STRING": ["''", "' '", "'a'", "'A'", "'a '", "'ä'", "'a\\u0308'", "'\\u0000'", "'NULL'", "NULL"],
    "BINARY": ["X''", "X'00'", "X'0000'", "X'FF'", "NULL"],
    "DATE": ["DATE '2024-01-01'", "DATE '2024-01-02'", "DATE '1969-12-31'", "DATE '0001-01-01'", "NULL"],
    "TIMESTAMP": [
        "TIMESTAMP '2024-01-01 00:00:00.000100Z'",
        "TIMESTAMP '2024-01-01 00:00:00.000101Z'",
        "TIMESTAMP '2024-01-01 00:00:00.000100+01:00'",
        "TIMESTAMP '1969-12-31 23:59:59.999999Z'",
        "NULL",
    ],
    "TIMESTAMP_NTZ": [
        "TIMESTAMP_NTZ '2024-01-01 00:00:00.000100'",
        "TIMESTAMP_NTZ '2024-01-01 00:00:00.000101'",
        "NULL",
    ],
    "ARRAY<INT>": ["array()", "array(NULL)", "array(NULL, NULL)", "array(0)", "array(0, 1)", "array(1, 0)", "NULL"],
    "ARRAY<STRING>": ["array('')", "array('a', 'b')", "array('ab')", "array('a,b')", "array(NULL, 'a')", "array('a', NULL)"],
    "ARRAY<DOUBLE>": ["array(0.0D)", "array(-0.0D)", "array(double('NaN'))", "array(NULL)"],
    "ARRAY<TIMESTAMP>": [
        "array(TIMESTAMP '2024-01-01 00:00:00.000100Z')",
        "array(TIMESTAMP '2024-01-01 00:00:00.000200Z')",
    ],
    "ARRAY<BINARY>": ["array(X'FF')", "array(X'EFBFBD')", "array(X'')", "array(NULL)"],
    "ARRAY<ARRAY<INT>>": [
        "array()", "array(array())", "array(array(), array())", "array(NULL)", "array(array(NULL))",
        "array(array(1), array(2, 3))", "array(array(1, 2), array(3))", "array(array(1, 2, 3))",
    ],
    "STRUCT<a: INT, b: STRING>": [
        "NULL", "named_struct('a', NULL, 'b', NULL)", "named_struct('a', NULL, 'b', '')", "named_struct('a', 1, 'b', NULL)",
        "named_struct('a', 1, 'b', '')",
    ],
    "STRUCT<at: TIMESTAMP>": [
        "named_struct('at', TIMESTAMP '2024-01-01 00:00:00.000100Z')",
        "named_struct('at', TIMESTAMP '2024-01-01 00:00:00.000200Z')",
    ],
    "STRUCT<`a b``.c`: STRUCT<x: DOUBLE>>": [
        "NULL", "named_struct('a', NULL)", "named_struct('a', named_struct('x', NULL))",
        "named_struct('a', named_struct('x', 0.0D))", "named_struct('a', named_struct('x', -0.0D))",
    ],
    "MAP<STRING, INT>": [
        "NULL", "map()", "map('a', NULL)", "map('a', 1)", "map('A', 1)", "map('a', 1, 'b', 2)", "map('a', 2, 'b', 1)",
    ],
    "MAP<STRING, DOUBLE>": ["map('a', 0.0D)", "map('a', -0.0D)", "map('a', NULL)"],
    "MAP<TIMESTAMP, MAP<INT, ARRAY<INT>>>": [
        "map()", "map(TIMESTAMP '2024-01-01 00:00:00.000001Z', map())", "map(TIMESTAMP '2024-01-01 00:00:00.000002Z', map())",
        "map(TIMESTAMP '2024-01-01 00:00:00.000001Z', NULL)", "map(TIMESTAMP '2024-01-01 00:00:00.000001Z', map(1, NULL))",
        "map(TIMESTAMP '2024-01-01 00:00:00.000001Z', map(1, array()))",
    ],
    "ARRAY<MAP<STRING, STRUCT<x: FLOAT>>>": [
        "array(map('a', named_struct('x', 0.0D)))", "array(map('a', named_struct('x', -0.0D)))", "array(map('a', NULL))",
        "array(map())", "array(NULL)", "array()",
    ],
}  # fmt: skip

SAME: list[tuple[str, str, str]] = [
    ("DOUBLE", "'NaN'", "double('Infinity') - double('Infinity')"),
    ("FLOAT", "'NaN'", "- float('NaN')"),
    ("DECIMAL(5,2)", "1.1", "1.10"),
    ("DECIMAL(38,10)", "1", "1.0000000000"),
    ("TIMESTAMP", "TIMESTAMP '2024-01-01 00:00:00Z'", "TIMESTAMP '2024-01-01 01:00:00+01:00'"),
    ("STRING", "'a' COLLATE UTF8_LCASE", "'a' COLLATE UNICODE_CI"),
    ("MAP<STRING, INT>", "map('a', 1, 'b', NULL)", "map('b', NULL, 'a', 1)"),
    ("MAP<INT, MAP<INT, INT>>", "map(1, map(1, 1, 2, 2), 2, map())", "map(2, map(), 1, map(2, 2, 1, 1))"),
    ("ARRAY<MAP<STRING, DOUBLE>>", "array(map('a', '1', 'b', 'NaN'))", "array(map('b', 'NaN', 'a', '1'))"),
    ("STRUCT<a: DECIMAL(4,1)>", "named_struct('a', 1)", "named_struct('a', 1.0)"),
]


def fingerprints(db: stepwell.Database, type_: str, values: list[str]) -> list[int]:
    number = fingerprint([("v", parse_type(type_))], "7L")
    rows = " UNION ALL ".join(f"SELECT {n} AS n, CAST({value} AS {type_}) AS v" for n, value in enumerate(values))
    return [row[1] for row in sorted(answer(db, f"SELECT n, {number} FROM ({rows})"))]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> stepwell.Database:
    return stepwell.connect(tmp_path_factory.mktemp("prints") / "w")


@pytest.mark.parametrize("type_", DIFFERENT)
def test_other_values_have_other_fingerprints(shared: stepwell.Database, type_: str) -> None:
    found = fingerprints(shared, type_, DIFFERENT[type_])
    pairs = itertools.combinations(zip(DIFFERENT[type_], found, strict=True), 2)
    assert [(one, other) for (one, first), (other, second) in pairs if first == second] == []


def test_the_same_value_has_one_fingerprint(shared: stepwell.Database) -> None:
    for type_, one, other in SAME:
        first, second = fingerprints(shared, type_, [one, other])
        assert first == second, (type_, one, other)


@pytest.mark.parametrize("type_", DIFFERENT)
def test_the_canonical_form_tells_the_same_values_apart(shared: stepwell.Database, type_: str) -> None:
    values, column = DIFFERENT[type_], Column("v", parse_type(type_))
    rows = " UNION ALL ".join(f"SELECT {n} AS n, CAST({value} AS {type_}) AS v" for n, value in enumerate(values))
    frame = shared.sql(f"SELECT a.n, b.n AS m, a.v, b.v AS w FROM ({rows}) AS a CROSS JOIN ({rows}) AS b")
    assert not isinstance(frame, stepwell.Rows)
    told = frame.select("n", "m", differs([(F.col("v"), F.col("w"), column)]).alias("differs")).collect()
    assert [(values[n], values[m]) for n, m, is_other in told if is_other != (n != m)] == []


def test_every_column_counts_where_it_stands(shared: stepwell.Database) -> None:
    list_, text = parse_type("ARRAY<INT>"), parse_type("STRING")
    pairs = [("array(1)", "array(2, 3)"), ("array(1, 2)", "array(3)"), ("array()", "NULL"), ("NULL", "array()")]
    texts = [("'a'", "'bc'"), ("'ab'", "'c'"), ("NULL", "''"), ("''", "NULL")]
    lists = [fingerprint([(f"CAST({each} AS ARRAY<INT>)", list_) for each in pair]) for pair in pairs]
    others = [fingerprint([(f"CAST({each} AS STRING)", text) for each in pair]) for pair in texts]
    (row,) = answer(shared, f"SELECT {', '.join([*lists, *others])}")
    assert len(set(row)) == len(row)


def test_a_change_of_a_microsecond_is_a_change(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (id INT, at TIMESTAMP)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, named_struct('at', at) AS s, map('at', at) AS m FROM t")
    db.sql("INSERT INTO t VALUES (1, TIMESTAMP '2024-01-01 00:00:00.000100')")
    db.sql("UPDATE t SET at = TIMESTAMP '2024-01-01 00:00:00.000200'")
    assert answer(db, "SELECT s.at - m['at'], unix_micros(s.at) % 1000 FROM v")[0][1] == 200

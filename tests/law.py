"""The law of every rule, as a game: random changes of three tables, to be played against views of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import stepwell
from limited import with_limits
from stepwell.model.limits import Limits
from views import answer, wrong_views

TABLES = """
CREATE TABLE t (a INT, g INT, b DOUBLE, s STRING, xs ARRAY<INT>, d DECIMAL(20,10), big BIGINT, ok BOOLEAN);
CREATE TABLE u (a INT, c STRING);
CREATE TABLE k (id INT PRIMARY KEY, a INT, v BIGINT);
"""

small = st.one_of(st.none(), st.integers(0, 4))
t_rows = st.lists(
    st.tuples(
        small, st.integers(0, 3) | st.none(), st.sampled_from([None, 0.0, -0.0, 0.1, -2.5, 1e300, 1e-40, 7e9, float("inf")]),
        st.sampled_from([None, "x", "y", ""]), st.lists(small, max_size=3) | st.none(),
        st.sampled_from([None, Decimal("1.1000000001"), Decimal("-2.25")]), st.sampled_from([None, 1, 2**40, -(2**50)]),
        st.booleans() | st.none(),
    ), min_size=1, max_size=5,
)  # fmt: skip
u_rows = st.lists(st.tuples(small, st.sampled_from(["x", "z", None])), min_size=1, max_size=3)
k_rows = st.lists(st.tuples(st.integers(0, 4), small, st.integers(-1, 5)), min_size=1, max_size=3)
number = st.integers(0, 4)

changes = st.one_of(
    st.builds(lambda rows: ("insert", "t", rows), t_rows),
    st.builds(lambda rows: ("insert", "t", rows), t_rows),
    st.builds(lambda rows: ("insert", "u", rows), u_rows),
    st.builds(lambda rows: ("insert", "k", rows), k_rows),
    st.builds(lambda n: ("sql", f"DELETE FROM t WHERE a = {n}"), number),
    st.builds(lambda n: ("sql", f"DELETE FROM t WHERE s = 'x' AND g = {n}"), number),
    st.builds(lambda n: ("sql", f"DELETE FROM u WHERE a = {n}"), number),
    st.builds(lambda n: ("sql", f"DELETE FROM k WHERE id = {n}"), number),
    st.builds(lambda n, m: ("sql", f"UPDATE t SET a = {n}, b = b * 2 WHERE a = {m}"), number, number),
    st.builds(lambda n, m: ("sql", f"UPDATE t SET g = {n} WHERE g = {m}"), number, number),
    st.builds(lambda n, m: ("sql", f"UPDATE u SET a = {n} WHERE a = {m}"), number, number),
    st.builds(lambda n, m: ("sql", f"UPDATE k SET a = {n} WHERE id = {m}"), number, number),
)


SMALL = Limits(cost_microseconds=2**62)
"""As it is, but that a view always goes by its rule: how long it took on a busy machine has no say."""

LARGE = replace(SMALL, whole_relation_bytes=-1, whole_state_bytes=-1, literal_versions=-1, in_plan_bytes=0)


def as_if_large(is_large: bool, db: stepwell.Database) -> None:
    """Let the few rows of a test be read as many are: sources and states cut to the keys of a change, retractions and
    small tables joined rather than written into the query. Or as what they are.
    """
    with_limits(db, LARGE if is_large else SMALL)


def play(
    db: stepwell.Database, queries: Mapping[str, str], examples: int, record: Callable[[str, object], None]
) -> None:
    """Random epochs, one an example; after each of them every view equals its query, computed anew by plain Spark."""
    played = 0

    @settings(max_examples=examples, phases=[Phase.explicit, Phase.generate], database=None)
    @given(st.lists(changes, min_size=1, max_size=4), st.booleans())
    def epoch(batch: list[tuple[Any, ...]], together: bool) -> None:
        nonlocal played
        as_if_large(played % 2 == 1, db)
        if db.in_transaction:
            db.sql("ROLLBACK")  # of an example that failed
        if together:
            db.sql("BEGIN")
        for change in batch:
            do(db, change)
        if together:
            db.sql("COMMIT")
        assert wrong_views(db, queries) == []
        played += 1

    try:
        epoch()
    finally:
        as_if_large(False, db)
    record("epochs compared", played)
    print(f"{played} epochs, {len(queries)} views compared after each")
    assert played >= examples


def do(db: stepwell.Database, change: tuple[Any, ...]) -> None:
    if change[0] == "sql":
        db.sql(change[1])
        return
    _, table, rows = change
    columns = [name for name, *_ in answer(db, f"DESCRIBE {table}")]
    texts = ", ".join("(" + ", ".join(map(_literal, row)) + ")" for row in rows)
    db.sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {texts}")


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case float():
            return f"DOUBLE('{value!r}')" if value == value and abs(value) != float("inf") else "DOUBLE('Infinity')"
        case str():
            return f"'{value}'"
        case Decimal():
            return f"{value}BD"
        case list():
            return f"CAST(array({', '.join(map(_literal, value))}) AS ARRAY<INT>)"
    return str(value).lower()

"""The law of every rule, as a game: random changes of three tables, to be played against views of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import stepwell
from stepwell.engine.maintain import cutting, maintenance
from stepwell.engine.session import SETTINGS
from stepwell.storage import scans
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


IN_PLAN = "spark.sql.execution.arrow.localRelationThreshold"
USUALLY_IN_PLAN = SETTINGS[IN_PLAN]
LIMITS = {(module, name): getattr(module, name) for module, name in (
    (cutting, "LARGE"), (maintenance, "LARGE_STATE"), (scans, "_LITERALS"),
)}  # fmt: skip


def as_if_large(is_large: bool, db: stepwell.Database | None = None) -> None:
    """Let the few rows of a test be read as many are: sources and states cut to the keys of a change, retractions and
    small tables joined rather than written into the query. Or as what they are.
    """
    for (module, name), usual in LIMITS.items():
        setattr(module, name, -1 if is_large else usual)
    SETTINGS[IN_PLAN] = "0" if is_large else USUALLY_IN_PLAN
    for session in db._runtime.spark._maintenance if db is not None else ():
        session.conf.set(IN_PLAN, SETTINGS[IN_PLAN])


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


@contextmanager
def prepared(folder: Path) -> Iterator[stepwell.Database]:
    """A warehouse with the tables, for bugs to be seeded in."""
    with stepwell.connect(folder / "warehouse") as db:
        db.sql(TABLES)
        yield db


def is_seen(
    db: stepwell.Database,
    name: str,
    query: str,
    seed: Callable[[pytest.MonkeyPatch], None],
    patch: pytest.MonkeyPatch,
) -> bool:
    """Whether a bug, put in by `seed` once a view is built, makes the view differ from its query; it is gone after."""
    db.sql(
        "BEGIN; TRUNCATE TABLE t; TRUNCATE TABLE u; TRUNCATE TABLE k;"
        "INSERT INTO t (a, g, s) VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'x'), (2, 2, 'z'), (5, 1, 'q');"
        "INSERT INTO u VALUES (1, 'x'), (2, 'y'); INSERT INTO k VALUES (1, 1, 1), (2, 2, 3); COMMIT"
    )
    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    try:
        assert wrong_views(db, {name: query}) == []
        seed(patch)
        for statement in (
            "INSERT INTO t (a, g, s) VALUES (2, 2, 'w'), (1, 1, 'x'), (3, 3, 'w')",
            "INSERT INTO u VALUES (3, 'x')",
            "INSERT INTO k VALUES (3, 3, 9), (4, 5, 9)",
            "UPDATE t SET a = a + 1 WHERE g = 1 OR a = 3",
            "DELETE FROM t WHERE s IN ('q', 'w')",
        ):
            try:
                db.sql(statement)
            except stepwell.StepwellWarning:
                return True  # the view has failed, and says so
            if wrong_views(db, {name: query}):
                return True
    finally:
        patch.undo()
        db.sql(f"DROP MATERIALIZED VIEW {name}")
    return False


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

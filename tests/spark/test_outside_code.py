"""Commands, Java code and files: never in a view, and in a query only where the session allows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import stepwell
from stepwell.model.errors import InvalidSettingError, UnsupportedError
from views import answer

CODE = [
    ("SELECT TRANSFORM(a) USING 'touch {}' AS (b STRING) FROM t", "USING 'touch {}'"),
    ('SELECT TRANSFORM(a)\n-- x\nUSING /* y */ r"touch {}" AS (b STRING) FROM t', 'USING /* y */ r"touch {}"'),
    ("FROM t MAP a USING 'touch {}' AS (b STRING)", "USING 'touch {}'"),
    ("FROM t REDUCE a USING 'touch {}' AS (b STRING)", "USING 'touch {}'"),
    ("WITH c AS (SELECT TRANSFORM(a) USING 'touch {}' AS (b STRING) FROM t) SELECT * FROM c", "USING 'touch {}'"),
    ("SELECT reflect('java.lang.System', 'getProperty', 'user.dir') AS b FROM t", "reflect"),
    ("SELECT JAVA_METHOD ('java.lang.System', 'getProperty', 'user.dir') AS b FROM t", "JAVA_METHOD"),
    ("SELECT try_reflect('java.lang.System', 'getProperty', 'user.dir') AS b FROM t", "try_reflect"),
    ("SELECT `reflect`('java.lang.System', 'getProperty', 'user.dir') AS b FROM t", "`reflect`"),
    ("SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getProperty', 'user.dir') AS b FROM t", "IDENTIFIER"),
    ("SELECT * FROM text.`{}.txt`", "text.`{}.txt`"),
    ("SELECT a FROM t JOIN CSV.`{}.txt` ON true", "CSV.`{}.txt`"),
    ("SELECT a FROM t WHERE EXISTS (SELECT * FROM parquet.`{}.txt`)", "parquet.`{}.txt`"),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path_factory.mktemp("outside") / "w") as db:
        db.sql("CREATE TABLE t (a STRING, using STRING); INSERT INTO t VALUES ('x', 'y')")
        yield db


@pytest.mark.parametrize(("query", "where"), CODE)
def test_it_is_refused_where_it_stands(shared: stepwell.Database, tmp_path: Path, query: str, where: str) -> None:
    mark = tmp_path / "ran"
    Path(f"{mark}.txt").write_text("secret\n")
    query, where = query.replace("{}", str(mark)), where.replace("{}", str(mark))
    for text in (
        query,
        f"EXPLAIN {query}",
        f"INSERT INTO t {query}",
        f"DELETE FROM t WHERE a IN ({query})",
        f"CREATE MATERIALIZED VIEW v AS {query}",
        f"CREATE VIEW v AS {query}",
        f"EXPLAIN CREATE MATERIALIZED VIEW v AS {query}",
    ):
        with pytest.raises(UnsupportedError) as caught:
            shared.sql(text)
        place = caught.value.place
        assert place is not None
        assert place.text[place.start : place.end] == where
    assert not mark.exists()


def test_a_session_may_allow_it_in_queries_but_not_in_views(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("one\n")
    path = f"text.`{tmp_path}/x.txt`"
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE t (a STRING); INSERT INTO t VALUES ('x')")
        with pytest.raises(InvalidSettingError, match="true or false"):
            db.sql("SET allow_external_code = '1 day'")
        db.sql("SET allow_external_code = true")
        assert answer(db, f"SELECT value FROM {path}") == [("one",)]
        assert answer(db, "SELECT TRANSFORM(a) USING 'cat' AS (b STRING) FROM t") == [("x",)]
        db.sql(f"INSERT INTO t SELECT value FROM {path}")
        with pytest.raises(UnsupportedError, match="a view cannot read files"):
            db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT * FROM {path}")
        with pytest.raises(UnsupportedError, match="no view may"):
            db.sql("CREATE MATERIALIZED VIEW v AS SELECT reflect('java.util.UUID', 'randomUUID') AS u FROM t")
        db.sql("SET allow_external_code = off")
        with pytest.raises(UnsupportedError, match="reaches outside"):
            db.sql(f"SELECT value FROM {path}")
    with stepwell.connect(tmp_path / "w") as db, pytest.raises(UnsupportedError):
        db.sql(f"SELECT value FROM {path}")  # a setting of the session, not of the database


def test_what_only_looks_like_it_is_allowed(shared: stepwell.Database) -> None:
    assert answer(shared, "SELECT transform(array(1), x -> x + 1), 'reflect(' AS `reflect`, t.using FROM t") == [
        ([2], "reflect(", "y")
    ]
    assert answer(shared, "SELECT text.a FROM t AS text JOIN t AS csv USING (a)") == [("x",)]
    assert answer(shared, "SELECT IDENTIFIER('a') FROM t") == [("x",)]

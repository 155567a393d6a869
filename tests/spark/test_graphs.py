"""Random graphs of views over random changes: every view equals its query over its parents, whatever lies between."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import stepwell
from law import LARGE, SMALL
from views import answer, wrong_views

EXAMPLES = 60 if os.environ.get("STEPWELL_TORTURE") else 2
PHASES = [Phase.explicit, Phase.generate]

SHAPES = (
    "SELECT k, x FROM {0} WHERE x > 1",
    "SELECT k + 1 AS k, x FROM {0}",
    "SELECT k, sum(x) AS x FROM {0} GROUP BY k",
    "SELECT x % 3 AS k, max(k) AS x FROM {0} GROUP BY x % 3 HAVING count(*) > 1",
    "SELECT count(*) AS k, min(x) AS x FROM {0}",
    "SELECT DISTINCT k, x FROM {0}",
    "SELECT p.k, q.x FROM {0} AS p JOIN {1} AS q ON p.k = q.k",
    "SELECT p.k, q.x FROM {0} AS p LEFT JOIN {1} AS q ON p.k = q.k",
    "SELECT coalesce(p.k, q.k) AS k, p.x FROM {0} AS p FULL JOIN {1} AS q ON p.x = q.x",
    "SELECT p.k, p.x FROM {0} AS p LEFT ANTI JOIN {1} AS q ON p.k = q.k",
    "SELECT k, x FROM {0} UNION ALL SELECT x, k FROM {1}",
    "SELECT k, x FROM {0} UNION SELECT k, x FROM {1}",
    "SELECT k, x FROM {0} EXCEPT SELECT k, x FROM {1}",
    "SELECT k, count(DISTINCT x) AS x FROM {0} GROUP BY k",
    "WITH s AS (SELECT k, count(*) AS n FROM {0} GROUP BY k) SELECT p.k, s.n AS x FROM {1} AS p JOIN s ON p.k = s.k",
    "SELECT k, x FROM (SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY x) AS r FROM {0}) WHERE r = 1",
    "SELECT k, x FROM {0} WHERE k IN (SELECT x FROM {1})",
    "SELECT k, x FROM {0} WHERE k NOT IN (SELECT k FROM {1} WHERE x > 1)",
    "SELECT p.k, p.x FROM {0} AS p WHERE p.x > 2 OR EXISTS (SELECT 1 FROM {1} AS q WHERE q.k = p.x)",
    "SELECT p.k, (SELECT sum(q.x) FROM {1} AS q WHERE q.k = p.k) AS x FROM {0} AS p",
    "SELECT k, x FROM {0} INTERSECT ALL SELECT k, x FROM {1}",
    "SELECT k, x FROM {0} EXCEPT ALL SELECT x, k FROM {1}",
    "SELECT k, count(x) AS x FROM {0} GROUP BY ROLLUP (k)",
    "SELECT k, sum(sum(x)) OVER (PARTITION BY k % 2) AS x FROM {0} GROUP BY k",
    "SELECT k, lag(x) OVER (PARTITION BY k ORDER BY x) AS x FROM {0}",
    "SELECT k, x FROM {0} ORDER BY x DESC, k LIMIT 3",
    "SELECT x AS k, count(*) OVER () AS x FROM {0}",
    "SELECT p.k, y.x FROM {0} AS p, LATERAL (SELECT q.x FROM {1} AS q WHERE q.k = p.k) AS y",
    "SELECT p.k, v.x FROM {0} AS p JOIN VALUES (0, 7L), (1, 8L), (1, 9L) AS v(k, x) ON p.k = v.k",
    "SELECT p.k, e.x FROM {0} AS p LATERAL VIEW explode(array(p.x, p.k)) e AS x",
)
"""Queries over one or two relations with the columns k and x, which have those columns again."""

graphs = st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(0, 99), st.integers(0, 99)), min_size=3, max_size=6)
rows = st.lists(st.tuples(st.integers(0, 3) | st.none(), st.integers(0, 4) | st.none()), min_size=1, max_size=5)
number = st.integers(0, 3)
changes = st.one_of(
    st.builds(lambda table, some: ("insert", table, some), st.sampled_from(["t", "u"]), rows),
    st.builds(lambda n: ("sql", f"DELETE FROM t WHERE k = {n}"), number),
    st.builds(lambda n: ("sql", f"UPDATE t SET x = x + 1 WHERE k = {n}"), number),
    st.builds(lambda n, m: ("sql", f"UPDATE u SET k = {n} WHERE x = {m}"), number, number),
)


def test_every_view_of_a_random_graph_equals_its_query(record_property: Callable[[str, object], None]) -> None:
    played = 0

    @settings(max_examples=EXAMPLES, phases=PHASES, database=None)
    @given(graphs, rows, st.lists(st.lists(changes, min_size=1, max_size=3), min_size=2, max_size=3))
    def play(graph: list[tuple[str, int, int]], first: list[Any], epochs: list[list[Any]]) -> None:
        nonlocal played
        limits = LARGE if played % 2 == 1 else SMALL
        with tempfile.TemporaryDirectory() as folder:
            queries: dict[str, str] = {}
            with stepwell.connect(folder, _limits=limits) as db:
                db.sql("CREATE TABLE t (k BIGINT, x BIGINT); CREATE TABLE u (k BIGINT, x BIGINT)")
                db.insert("t", first)
                names = ["t", "u"]
                for index, (shape, left, right) in enumerate(graph):
                    query = shape.format(names[left % len(names)], names[right % len(names)])
                    queries[f"v{index}"] = query
                    names.append(f"v{index}")
                db.sql("; ".join(f"CREATE MATERIALIZED VIEW {name} (k, x) AS {text}" for name, text in queries.items()))
                assert wrong_views(db, queries) == []
                for epoch in epochs:
                    db.sql("BEGIN")
                    for change in epoch:
                        if change[0] == "insert":
                            db.insert(change[1], change[2])
                        else:
                            db.sql(change[1])
                    db.sql("COMMIT")
                    assert wrong_views(db, queries) == []
                for name in names:
                    db.sql(f"OPTIMIZE {name}")
            with stepwell.connect(folder, _limits=limits) as again:
                assert wrong_views(again, queries) == []
                again.sql("INSERT INTO t VALUES (1, 1); DELETE FROM t WHERE x = 2")
                assert wrong_views(again, queries) == []
                for name in queries:
                    assert answer(again, f"VERIFY {name}")[0][2] is True, (name, queries[name])
        played += 1

    play()
    record_property("random graphs", played)
    print(f"{played} random graphs of {len(SHAPES)} shapes")
    assert played >= EXAMPLES

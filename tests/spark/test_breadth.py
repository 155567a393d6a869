"""The breadth of SQL against its law: subqueries, set operations, grouping sets and windows, kept equal to their query."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

import stepwell
from law import TABLES, play
from views import answer

TORTURE = bool(os.environ.get("STEPWELL_TORTURE"))
EXAMPLES = 200 if TORTURE else 2

QUERIES = {
    "is_in": "SELECT a, s FROM t WHERE a IN (SELECT a FROM u WHERE c = 'x')",
    "is_in_tied": "SELECT t.a, s FROM t WHERE g IN (SELECT k.a FROM k WHERE k.id = t.a)",
    "pair_in": "SELECT a, g FROM t WHERE (a, g) IN (SELECT id, a FROM k)",
    "not_in": "SELECT a, s FROM t WHERE a NOT IN (SELECT a FROM u)",
    "not_in_tied": "SELECT a, s, g FROM t WHERE a NOT IN (SELECT k.a FROM k WHERE k.id = t.g)",
    "in_groups": "SELECT a, s FROM t WHERE g IN (SELECT a FROM k GROUP BY a HAVING count(*) > 1)",
    "exist": "SELECT a, s FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.c <> t.s)",
    "not_exist": "SELECT a, s FROM t WHERE NOT EXISTS (SELECT * FROM k WHERE k.a = t.a AND v > 1) AND g > 0",
    "any_there": "SELECT a FROM u WHERE EXISTS (SELECT 1 FROM k WHERE v > 3)",
    "above_average": "SELECT a, g FROM t WHERE a > (SELECT avg(a) FROM t)",
    "of_its_group": "SELECT a, g FROM t WHERE a = (SELECT max(x.a) FROM t AS x WHERE x.g = t.g)",
    "counted": "SELECT u.a, (SELECT count(*) FROM k WHERE k.a = u.a) AS n, (SELECT max(v) FROM k) AS top FROM u",
    "having_value": "SELECT g, sum(a) AS sa FROM t GROUP BY g HAVING sum(a) > (SELECT avg(v) FROM k)",
    "nested": "SELECT a FROM u WHERE a IN (SELECT a FROM t WHERE g IN (SELECT a FROM k WHERE v > 0))",
    "excepted": "SELECT a FROM t EXCEPT SELECT a FROM u",
    "excepted_all": "SELECT a, s FROM t EXCEPT ALL SELECT a, c FROM u",
    "intersected": "SELECT a FROM t INTERSECT SELECT a FROM k",
    "intersected_all": "SELECT a FROM t INTERSECT ALL SELECT a FROM u",
    "united_once": "SELECT a FROM t UNION SELECT a FROM u",
    "rolled_up": "SELECT g, s, count(*) AS n, grouping_id(g, s) AS level FROM t GROUP BY ROLLUP (g, s)",
    "cubed": "SELECT g, ok, sum(a) AS sa FROM t GROUP BY CUBE (g, ok) HAVING count(*) > 1",
    "in_sets": "SELECT g, s, max(a) AS hi FROM t GROUP BY GROUPING SETS ((g), (s), ())",
    "ranked": "SELECT a, g, rank() OVER (PARTITION BY g ORDER BY a) AS r, count(*) OVER (PARTITION BY g) AS n FROM t",
    "dense": "SELECT a, g, dense_rank() OVER (PARTITION BY g, s ORDER BY a DESC) AS r, sum(a) OVER (PARTITION BY g) AS sa FROM t",
    "running": "SELECT id, a, v, sum(v) OVER (PARTITION BY a ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far, lag(v) OVER (PARTITION BY a ORDER BY id) AS before FROM k",
    "newest": "SELECT a, id, v FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY id DESC) AS n FROM k) AS x WHERE n = 1",
    "qualified": "SELECT a, id, v FROM k QUALIFY row_number() OVER (PARTITION BY a ORDER BY id DESC) <= 2",
    "latest_before": "SELECT id, a, v, last_value(v) IGNORE NULLS OVER (PARTITION BY a ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last_v FROM k",
    "twice": "WITH x AS (SELECT g, count(*) AS n FROM t GROUP BY g) SELECT l.g, l.n, r.n AS m FROM x AS l JOIN x AS r ON l.g = r.n",
    "filtered_sums": "SELECT g, count(*) FILTER (WHERE ok) AS n, sum(a) FILTER (WHERE s = 'x') AS sa, count(DISTINCT s) AS ns FROM t GROUP BY g",
    "cases": "SELECT CASE WHEN a > 2 THEN named_struct('a', a, 's', s) END AS st, array(a, g) AS xs, map('k', a) AS m FROM t",
    "either_in": "SELECT a, g FROM t WHERE g = 0 OR a IN (SELECT a FROM u WHERE c = 'x')",
    "either_exists": "SELECT a, s FROM t WHERE ok OR NOT EXISTS (SELECT 1 FROM k WHERE k.a = t.a AND k.v > 2)",
    "lateral_rows": "SELECT t.a, x.v FROM t, LATERAL (SELECT v FROM k WHERE k.a = t.a AND k.v > t.g) AS x",
    "lateral_generator": "SELECT t.a, e.x FROM t, LATERAL explode(t.xs) AS e(x)",
    "written_out": "SELECT t.a, v.word FROM t JOIN VALUES (0, 'none'), (1, 'one'), (2, 'two') AS v(n, word) ON t.a = v.n",
    "groups_ranked": "SELECT a, g, sum(big) AS sb, rank() OVER (PARTITION BY g ORDER BY count(*) DESC, a) AS r, sum(count(*)) OVER (PARTITION BY g) AS n FROM t GROUP BY a, g QUALIFY r < 3",
    "named_window": "SELECT id, a, sum(v) OVER w AS so_far, count(*) OVER w AS n FROM k WINDOW w AS (PARTITION BY a ORDER BY id)",
    "asof": "SELECT t.a, t.g, s.v FROM t JOIN (SELECT a, id AS since, lead(id) OVER (PARTITION BY a ORDER BY id) AS until, v FROM k) AS s ON t.a = s.a AND t.g >= s.since AND (t.g < s.until OR s.until IS NULL)",
    "lateral_view": "SELECT t.a, e.x FROM t LATERAL VIEW explode(xs) e AS x WHERE e.x > 0",
}  # fmt: skip

ANEW = {
    "limited": "SELECT id, a, v FROM k ORDER BY v DESC, id LIMIT 2",
    "paged": "SELECT id FROM k ORDER BY id LIMIT 2 OFFSET 1",
    "most": "SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, sum(a), g LIMIT 1",
    "of_the_first": "SELECT count(*) AS n, sum(v) AS sv FROM (SELECT v FROM k ORDER BY id LIMIT 3) AS first",
    "of_all": "SELECT id, v, sum(v) OVER (ORDER BY id) AS so_far, count(*) OVER () AS n FROM k",
    "united_first": "SELECT a FROM t UNION SELECT a FROM k ORDER BY a DESC LIMIT 2",
}
"""What looks at all rows, and is computed anew from parts that are not."""

EVERY = {**QUERIES, **ANEW}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path_factory.mktemp("breadth")) as db:
        db.sql(TABLES)
        for name, query in QUERIES.items():
            # strict: each has a rule, or is refused here
            db.sql(f"CREATE MATERIALIZED VIEW {name} WITH (refresh_policy = 'incremental strict') AS {query}")
        for name, query in ANEW.items():
            with pytest.raises(stepwell.StepwellError, match="cannot be maintained incrementally"):
                db.sql(f"CREATE MATERIALIZED VIEW {name} WITH (refresh_policy = 'incremental strict') AS {query}")
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        yield db


def test_maintained_equals_recomputed(
    shared: stepwell.Database, record_property: Callable[[str, object], None]
) -> None:
    """One history without end, an epoch an example; every form of SQL sees each of them."""
    play(shared, EVERY, EXAMPLES, record_property)
    for name in EVERY if TORTURE else list(EVERY)[::4]:
        assert answer(shared, f"VERIFY {name}")[0][2] is True, name

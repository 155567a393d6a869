"""Every rule against its law: a maintained view equals its query, computed anew by plain Spark, after every epoch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

import corpus
import stepwell
from law import TABLES, play
from stepwell.plan.steps import Rule
from views import STRICT, answer, creates, wrong_views

TORTURE = bool(os.environ.get("STEPWELL_TORTURE"))
EXAMPLES = 200 if TORTURE else 2

RULES: dict[str, tuple[str, list[tuple[str, Rule]]]] = {
    "filtered": ("SELECT a, b, s FROM t WHERE a > 1", [("filter, project", Rule.APPLY)]),
    "projected": ("SELECT g + 1 AS g1, upper(s) AS s FROM t", [("project", Rule.APPLY)]),
    "unnested": ("SELECT a, explode(xs) AS x FROM t WHERE a < 9", [("filter, unnest, project", Rule.APPLY)]),
    "united": (
        "SELECT a, s FROM t WHERE a > 0 UNION ALL SELECT a, c FROM u UNION ALL SELECT g, s FROM t",
        [("union all", Rule.APPLY), ("filter, project", Rule.APPLY)],
    ),
    "inner_join": (
        "SELECT t.a, t.s, u.c, k.v FROM t JOIN u ON t.a = u.a JOIN k ON k.a = u.a WHERE k.v >= 0",
        [("inner join", Rule.JOIN), ("inner join", Rule.JOIN), ("filter, project", Rule.APPLY)],
    ),
    "self_join": ("SELECT x.a, y.s FROM t AS x JOIN t AS y ON x.a = y.g", [("inner join", Rule.JOIN), ("project", Rule.APPLY)]),
    "crossed": (
        "SELECT u.a, k.id FROM u CROSS JOIN k WHERE u.a <> k.a",
        [("inner join", Rule.JOIN), ("project", Rule.APPLY)],
    ),
    "left_join": (
        "SELECT t.a, t.s, u.c FROM t LEFT JOIN u ON t.a = u.a",
        [("left join", Rule.TOUCHED_ROWS), ("project", Rule.APPLY)],
    ),
    "right_join": (
        "SELECT t.s, u.a, u.c FROM t RIGHT JOIN u ON t.a = u.a AND t.g > 0",
        [("left join", Rule.TOUCHED_ROWS), ("project", Rule.APPLY)],
    ),
    "full_join": (
        "SELECT u.a AS ua, u.c, k.a AS ka, k.v FROM u FULL JOIN k ON u.a = k.a",
        [("full join", Rule.TOUCHED_ROWS), ("project", Rule.APPLY)],
    ),
    "not_null": ("SELECT a, s FROM t WHERE a IS NOT NULL AND (s) IS NOT NULL", [("filter, project", Rule.APPLY)]),
    "semi_join": (
        "SELECT t.a, t.s FROM t LEFT SEMI JOIN u ON t.a = u.a",
        [("left semi join", Rule.TOUCHED_ROWS), ("project", Rule.APPLY)],
    ),
    "anti_join": (
        "SELECT t.a, t.s FROM t LEFT ANTI JOIN u ON t.a = u.a",
        [("left anti join", Rule.TOUCHED_ROWS), ("project", Rule.APPLY)],
    ),
    "wide_sums": (
        "SELECT g, sum(CAST(big AS DECIMAL(30,2)) * CAST(a AS DECIMAL(6,2))) AS wide, avg(CAST(big AS DECIMAL(36,4))) AS mean,"
        " avg(CAST(a AS DECIMAL(27,8))) AS fine, avg(CAST(a AS DECIMAL(28,0))) AS coarse FROM t GROUP BY g",
        [("group by", Rule.FOLD)],
    ),
    "folded": (
        "SELECT g, count(*) AS n, count(s) AS ns, sum(a) AS sa, avg(b) AS ab, sum(b) AS sb, sum(d) AS sd, sum(big) AS sbig,"
        " avg(d) AS ad, bool_and(ok) AS every_ok, bool_or(ok) AS some_ok FROM t GROUP BY g",
        [("group by", Rule.FOLD)],
    ),
    "having_many": ("SELECT g, sum(a) AS sa FROM t GROUP BY g HAVING count(*) > 1", [("group by, having", Rule.FOLD)]),
    "total": ("SELECT sum(a) AS sa, count(*) AS n, avg(b) AS ab FROM t", [("global aggregate", Rule.FOLD)]),
    "extremes": (
        "SELECT g, min(a) AS lo, max(s) AS hi, max_by(g, a) AS of_hi FROM t GROUP BY g",
        [("group by", Rule.FOLD)],
    ),
    "recomputed_groups": (
        "SELECT g, count(DISTINCT a) AS n, percentile(a, 0.5) AS median, stddev(a) AS sd FROM t GROUP BY g",
        [("group by", Rule.TOUCHED_GROUPS)],
    ),
    "distinct_rows": ("SELECT DISTINCT a, s FROM t", [("distinct", Rule.FOLD)]),
    "grouped_join": (
        "SELECT u.c, sum(t.a) AS total, count(*) AS n FROM t JOIN u ON t.a = u.a GROUP BY u.c",
        [("inner join", Rule.JOIN), ("group by", Rule.FOLD)],
    ),
    "join_of_groups": (
        "SELECT p.g, p.n, q.m FROM (SELECT g, count(*) AS n FROM t GROUP BY g) AS p"
        " LEFT JOIN (SELECT a, max(v) AS m FROM k GROUP BY a) AS q ON p.g = q.a",
        [("group by", Rule.FOLD), ("group by", Rule.FOLD), ("left join", Rule.TOUCHED_ROWS), ("project", Rule.APPLY)],
    ),
    "numbered": (
        "SELECT a, s, row_number() OVER (ORDER BY a, s, g, b, big) AS n FROM t WHERE a IS NOT NULL",
        [("filter, project", Rule.APPLY), ("limit or window functions", Rule.RECOMPUTE)],
    ),
    "starred": ("SELECT * EXCEPT (b, xs, d, big, ok) FROM t WHERE a IS NOT NULL", [("filter, project", Rule.APPLY)]),
    "listed": (
        "SELECT g, listagg(s, ',') WITHIN GROUP (ORDER BY s) AS words, percentile_disc(0.5) WITHIN GROUP (ORDER BY a) AS mid FROM t GROUP BY g",
        [("group by", Rule.TOUCHED_GROUPS)],
    ),
    "whole": (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n, count(a) AS c FROM r LEFT JOIN t ON n = a GROUP BY n",
        [("query", Rule.RECOMPUTE)],
    ),
    "of_views": (
        "SELECT f.g, f.sa + h.sa AS both FROM folded AS f JOIN having_many AS h ON f.g = h.g JOIN distinct_rows AS r ON r.a = f.g",
        [("inner join", Rule.JOIN), ("inner join", Rule.JOIN), ("project", Rule.APPLY)],
    ),
}  # fmt: skip
"""A query for each rule, and what EXPLAIN must say of it."""

QUERIES = {name: query for name, (query, _) in RULES.items()}
EVERY = {**QUERIES, **corpus.QUERIES, **corpus.ANEW}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path_factory.mktemp("views")) as db:
        for name, query in corpus.ANEW.items():
            with pytest.raises(stepwell.StepwellError, match="cannot be maintained incrementally"):
                db.sql(f"{TABLES}; CREATE MATERIALIZED VIEW {name} {STRICT} AS {query}")
        db.sql(f"{TABLES}; {creates(QUERIES)}")
        db.sql(f"{creates(corpus.QUERIES, STRICT)}; {creates(corpus.ANEW)}")  # strict: each has a rule, or is refused
        yield db


def test_explain_names_the_rule_of_each_block(shared: stepwell.Database) -> None:
    for name, (query, rules) in RULES.items():
        rows = answer(shared, f"EXPLAIN CREATE MATERIALIZED VIEW {name}_again AS {query}")
        assert [(block, rule) for _, block, rule, *_ in rows] == [(what, rule.value) for what, rule in rules], name


def test_maintained_equals_recomputed(
    shared: stepwell.Database, record_property: Callable[[str, object], None]
) -> None:
    """One history without end, an epoch an example; every rule and every form of SQL sees each of them."""
    play(shared, EVERY, EXAMPLES, record_property)
    some = list(EVERY) if TORTURE else list(EVERY)[::8]
    for name in some:
        assert answer(shared, f"VERIFY {name}")[0][2] is True, name
    for name in ("t", "u", "k", *some):
        shared.sql(f"OPTIMIZE {name}")
    assert wrong_views(shared, EVERY) == []


def test_a_view_that_was_paused_catches_up_with_what_it_has_missed(db: stepwell.Database) -> None:
    """By its own rule: what came and went meanwhile is nothing, and a row that changed twice has changed once."""
    db.sql(TABLES)
    db.sql(
        "INSERT INTO t (a, g, b, s, big, ok) VALUES (1, 1, 0.5, 'x', 7, true), (2, 2, 1.5, 'y', 8, false), (3, 1, NULL, 'x', 9, NULL)"
    )
    chosen = {name: QUERIES[name] for name in list(QUERIES)[:-1:3]}
    db.sql(creates(chosen))
    for name in chosen:
        db.sql(f"ALTER MATERIALIZED VIEW {name} PAUSE")
    stopped = db.epoch
    for statement in (
        "INSERT INTO t (a, g, b, s, xs) VALUES (4, 3, 2.5, 'gone', array(1, 2)), (2, 3, 3.5, 'stays', array(4))",
        "UPDATE t SET a = a + 1 WHERE g = 1",
        "INSERT INTO u VALUES (2, 'q'), (4, 'x'); INSERT INTO k VALUES (1, 2, 3), (2, 4, 1)",
        "DELETE FROM t WHERE s = 'gone'",
        "OPTIMIZE t; OPTIMIZE k",
        "UPDATE t SET a = a - 1, s = 'z' WHERE g = 1; UPDATE k SET v = v + 1 WHERE id = 1",
        "DELETE FROM u WHERE c = 'q'",
    ):
        db.sql(statement)
    for name in chosen:
        db.sql(f"ALTER MATERIALIZED VIEW {name} RESUME")
    assert wrong_views(db, chosen) == []
    rules = dict(answer(db, f"SELECT name, step FROM stepwell.refreshes WHERE epoch > {stopped} AND NOT is_part"))
    assert not [name for name in chosen if "it was stopped" in rules.get(name, "")]
    with pytest.raises(stepwell.StepwellError, match="is running already"):
        db.sql(f"ALTER MATERIALIZED VIEW {next(iter(chosen))} RESUME")

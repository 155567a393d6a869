"""Lineage: the columns that a column is made of, through every kind of block."""

from __future__ import annotations

import pytest
import sqlglot
from stepwell.plan.decompose import Decomposer

from stepwell.plan.lineage import origins

COLUMNS = {1: ("a", "b", "c", "xs"), 2: ("a", "d"), 3: ("k", "v")}
KNOWN = {f"_sw_rel{number}": names for number, names in COLUMNS.items()}
T, U, W = "_sw_rel1 AS t", "_sw_rel2 AS u", "_sw_rel3 AS w"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT a + b AS x, 1 AS one FROM {T} WHERE c > 0", [[(1, "a"), (1, "b")], []]),
        (f"SELECT t.a, u.d AS x FROM {T} JOIN {U} ON t.b = u.a", [[(1, "a")], [(2, "d")]]),
        (f"SELECT a AS x FROM {T} UNION ALL SELECT d FROM {U}", [[(1, "a"), (2, "d")]]),
        (f"SELECT b, sum(a) + max(c) AS s, count(*) AS n FROM {T} GROUP BY b", [[(1, "b")], [(1, "a"), (1, "c")], []]),
        (f"SELECT b, rank() OVER (PARTITION BY b ORDER BY a) AS r FROM {T}", [[(1, "b")], [(1, "b"), (1, "a")]]),
        (f"SELECT s.y AS x FROM (SELECT a * c AS y FROM {T}) AS s", [[(1, "a"), (1, "c")]]),
        (f"WITH z AS (SELECT a AS y FROM {T}) SELECT y FROM z", [[(1, "a")]]),
        (f"SELECT a, e.x AS y FROM {T} LATERAL VIEW explode(xs) e AS x", [[(1, "a")], [(1, "xs")]]),
        (f"SELECT a FROM {T} WHERE a IN (SELECT d FROM {U})", [[(1, "a")]]),
        (f"SELECT v AS top FROM {W} ORDER BY v LIMIT 3", [[(3, "v")]]),
        (f"SELECT DISTINCT a FROM {T}", [[(1, "a")]]),
    ],
)
def test_the_values_of_a_column_come_from_these(query: str, expected: list[list[tuple[int, str]]]) -> None:
    tree = sqlglot.parse_one(query, read="spark")
    assert isinstance(tree, sqlglot.exp.Query)
    names = tuple(each.alias_or_name for each in tree.selects)
    plan, _ = Decomposer(KNOWN).plan(query, names)
    assert plan.hidden == ()
    assert [sorted(origins(plan.root, name, COLUMNS)) for name in names] == [sorted(each) for each in expected]

"""The generator of queries: the same from the same seed, all forms, and what becomes of a query that is shrunken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from querygen.cases import Case, View, make_case
from querygen.histories import Epoch
from querygen.nodes import clause, listed, node, smaller
from querygen.runner import Failure
from querygen.shrinking import shrink

TEXTS = "from querygen.cases import make_case; made = make_case(3, 20, 3, lambda text, views: None); print(made.case)"

FORMS = (
    "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN", " USING (", "NATURAL ",
    "EXISTS (SELECT", "NOT EXISTS", " IN (SELECT", "NOT IN (SELECT", "coalesce(sum(", "GROUP BY ALL", "GROUP BY 1",
    " HAVING ", "FILTER (WHERE", "count(DISTINCT", "GROUPING SETS (", "ROLLUP (", "CUBE (", "WITH ROLLUP", "WITH CUBE",
    "grouping(", "grouping_id()", "PIVOT (", "LATERAL VIEW ", "LATERAL VIEW OUTER", "posexplode", "explode_outer(",
    "UNION ALL", " UNION SELECT", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL", "SELECT DISTINCT", "OVER (PARTITION",
    "row_number()", "lag(", " ROWS BETWEEN", "QUALIFY", "LIMIT", "WITH w1 AS", "`a b`", "`a``b`", "collect_list", "listagg",
    "LATERAL (SELECT", "explode(sort_array(", "count(DISTINCT *)",
)  # fmt: skip


def test_a_seed_gives_the_same_case_in_every_process() -> None:
    folder = Path(__file__).parents[1]
    found = {
        subprocess.run(
            [sys.executable, "-c", TEXTS],
            check=True,
            capture_output=True,
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_every_form_is_made() -> None:
    text = "\n".join(view.text for view in make_case(1, 1500, 1, lambda text, views: None).case.views)
    assert [form for form in FORMS if form not in text] == []


def test_what_is_left_out_is_optional_or_one_of_a_list() -> None:
    tree = node("query", "SELECT ", listed([node("item", "a"), node("item", "b")]), " FROM t", clause(" WHERE c"))
    assert [less.text for less in smaller(tree)] == [
        "SELECT a, b FROM t",
        "SELECT b FROM t WHERE c",
        "SELECT a FROM t WHERE c",
    ]


def test_an_expression_becomes_one_inside_of_it_or_a_literal() -> None:
    tree = node("INT", "(", node("INT", "column1"), " + ", node("INT", "length(", node("STRING", "column2"), ")"), ")")
    texts = [less.text for less in smaller(tree)]
    assert texts[:2] == ["column1", "length(column2)"]
    assert "0" in texts
    assert "(column1 + length('a'))" in texts


def test_a_case_is_shrunken_to_what_fails() -> None:
    case = make_case(11, 30, 4, lambda text, views: None).case
    guilty = next(view for view in case.views if "DISTINCT" in view.text)

    def fails(smaller: Case) -> Failure | None:
        wrong = any(view.name == guilty.name and "DISTINCT" in view.text for view in smaller.views)
        return Failure(guilty.name, 0, "wrong rows: some") if wrong else None

    less = shrink(case, Failure(guilty.name, 2, "wrong rows: some"), fails, lambda text, views: None, 2000)
    assert [view.name for view in less.views if view.name == guilty.name] == [guilty.name]
    assert less.epochs == ()
    assert less.first == Epoch(())
    assert len(less.views[-1].text) < len(guilty.text) / 3
    assert isinstance(less.views[-1], View)

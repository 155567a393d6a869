"""Texts to blocks, blocks to rules and back from JSON; no Spark."""

from __future__ import annotations

import pytest
from stepwell.plan.decompose import Decomposer

from stepwell.model.views import RefreshPolicy
from stepwell.plan.blocks import (
    Block,
    Group,
    Join,
    Partitioned,
    Plan,
    Select,
    UnionAll,
    Whole,
    decode,
    encode,
    inputs_of,
    obstacle,
    renumbered,
)
from stepwell.plan.cuts import Change
from stepwell.plan.render import Mode, Term, only_adds, terms_of
from stepwell.plan.steps import Rule, plan_step

COLUMNS = {"_sw_rel1": ("a", "b"), "_sw_rel2": ("a", "c"), "_sw_rel3": ("c", "d")}


def plan(text: str, *names: str) -> Plan:
    return Decomposer(COLUMNS).plan(text, names)[0]


def root(text: str, *names: str) -> Block:
    return plan(text, *names).root


def test_a_star_is_the_columns_that_are_there_now() -> None:
    block = root("SELECT * FROM _sw_rel1 AS t WHERE a > 1", "a", "b")
    assert isinstance(block, Select)
    assert block.items == ("`t`.`a`", "`t`.`b`")
    assert block.where == "a > 1"


def test_joins_keep_their_kinds_and_conditions() -> None:
    block = root(
        "SELECT x.a, z.d FROM _sw_rel1 AS x LEFT JOIN _sw_rel2 AS y ON x.a = y.a JOIN _sw_rel3 AS z USING (c)", "a", "d"
    )
    assert isinstance(block, Select)
    assert [(source.join, source.condition) for source in block.sources] == [
        (Join.FIRST, ""), (Join.LEFT, "ON x.a = y.a"), (Join.INNER, "USING (c)"),
    ]  # fmt: skip


def test_groups_speak_of_their_keys_and_results() -> None:
    block = root(
        "SELECT a + 1 AS k, sum(b) / count(*) AS m FROM _sw_rel1 AS t GROUP BY k HAVING max(b) > 2 AND m < 9", "k", "m"
    )
    assert isinstance(block, Group)
    assert block.keys == 1
    assert isinstance(block.rows, Select)
    assert block.rows.items == ("a + 1", "b")
    assert block.items[0] == "_sw_g0"
    assert block.having is not None
    assert "_sw_r" in block.having
    assert [aggregate.function for aggregate in block.aggregates] == ["sum", "count", "max"]


def test_a_group_inside_another_query_becomes_a_hidden_block() -> None:
    found = plan(
        "WITH s AS (SELECT a, count(*) AS n FROM _sw_rel1 AS t GROUP BY a) SELECT s.n, u.c FROM s JOIN _sw_rel2 AS u ON s.a = u.a",
        "n", "c",
    )  # fmt: skip
    assert len(found.hidden) == 1
    assert isinstance(found.hidden[0], Group)
    assert set(inputs_of(found.root)) == {-1, 2}
    assert set(inputs_of(renumbered(found.root, {-1: 40}))) == {40, 2}


def test_distinct_and_union_are_groups_of_everything() -> None:
    block = root("SELECT a, b FROM _sw_rel1 AS t UNION SELECT a, c FROM _sw_rel2 AS u", "a", "b")
    assert isinstance(block, Group)
    assert block.distinct
    assert isinstance(root("SELECT a FROM _sw_rel1 AS t UNION ALL SELECT a FROM _sw_rel2 AS u", "a"), UnionAll)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT a FROM _sw_rel1 AS t ORDER BY a LIMIT 1 + 2", "LIMIT of other than a number"),
        ("SELECT a FROM _sw_rel1 AS t WHERE a > 1 OR a NOT IN (SELECT a FROM _sw_rel2 AS u)", "inside an expression"),
        ("SELECT a FROM _sw_rel1 AS t SORT BY a", "SORT BY has no rule"),
        ("SELECT (SELECT c FROM _sw_rel2 AS u LIMIT 1) AS a FROM _sw_rel1 AS t", "no aggregate over all its rows"),
        ("SELECT a, sum(b) OVER (PARTITION BY a) AS s FROM _sw_rel1 AS t GROUP BY ROLLUP (a, b)", "OVER together with"),
        (
            "SELECT a, first_value(b) OVER (PARTITION BY a) AS s FROM _sw_rel1 AS t",
            "without ORDER BY has no one answer",
        ),
        ("SELECT a FROM _sw_rel1 AS t NATURAL JOIN _sw_rel2 AS u", "NATURAL JOIN has no rule"),
        (
            "SELECT x.a FROM _sw_rel1 AS x JOIN _sw_rel2 AS y ON x.a = y.a FULL JOIN _sw_rel3 AS z ON y.c = z.c",
            "FULL JOIN behind",
        ),
    ],
)
def test_what_has_no_rule_says_so(text: str, reason: str) -> None:
    block = root(text, *(["a", "a2"] if "OVER" in text else ["a", "s"] if "ROLLUP" in text else ["a"]))
    assert isinstance(block, Whole)
    assert reason in block.reason
    assert set(inputs_of(block)) <= {1, 2, 3}


def test_a_part_without_a_rule_does_not_spoil_the_rest() -> None:
    found = plan("SELECT s.a, count(*) AS n FROM (SELECT a FROM _sw_rel1 AS t SORT BY b) AS s GROUP BY s.a", "a", "n")
    assert isinstance(found.root, Group)
    assert isinstance(found.hidden[0], Whole)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM _sw_rel1 AS t ORDER BY b LIMIT 3",
        "SELECT a FROM _sw_rel1 AS t UNION SELECT a FROM _sw_rel2 AS u ORDER BY 1 LIMIT 3 OFFSET 1",
        "SELECT row_number() OVER (ORDER BY b) AS a FROM _sw_rel1 AS t",
        "SELECT a FROM _sw_rel1 AS t GROUP BY a ORDER BY count(*) LIMIT 2",
    ],
)
def test_what_looks_at_all_rows_is_one_partition(text: str) -> None:
    block = root(text, "a")
    assert isinstance(block, Partitioned)
    assert block.keys == 0
    assert block.made_total
    assert obstacle(block) is not None


def test_windows_over_groups_group_first() -> None:
    found = plan(
        "SELECT a, rank() OVER (PARTITION BY a % 2 ORDER BY sum(b)) AS r FROM _sw_rel1 AS t GROUP BY a", "a", "r"
    )
    assert isinstance(found.root, Partitioned)
    assert found.root.keys == 1
    assert isinstance(found.hidden[0], Group)


def test_a_subquery_becomes_a_join() -> None:
    block = root("SELECT a FROM _sw_rel1 AS t WHERE a IN (SELECT a FROM _sw_rel2 AS u) AND b > 1", "a")
    assert isinstance(block, Select)
    assert [source.join for source in block.sources] == [Join.FIRST, Join.SEMI]
    found = plan("SELECT a FROM _sw_rel1 AS t WHERE b > (SELECT avg(x.b) FROM _sw_rel1 AS x WHERE x.a = t.a)", "a")
    assert isinstance(found.root, Select)
    assert [source.join for source in found.root.sources] == [Join.FIRST, Join.LEFT]
    assert isinstance(found.hidden[0], Group)


def test_set_operations_and_grouping_sets_are_groups() -> None:
    block = root("SELECT a FROM _sw_rel1 AS t EXCEPT SELECT a FROM _sw_rel2 AS u", "a")
    assert isinstance(block, Group)
    assert block.having == "_sw_r0 > 0 AND _sw_r1 = 0"
    found = plan("SELECT a, sum(b) AS s FROM _sw_rel1 AS t GROUP BY ROLLUP (a)", "a", "s")
    assert isinstance(found.root, UnionAll)
    assert len(found.hidden) == 2


def test_windows_share_their_partitions() -> None:
    block = root(
        "SELECT a, rank() OVER (PARTITION BY a, b ORDER BY b) AS r, lag(b) OVER (PARTITION BY a ORDER BY b) AS l FROM _sw_rel1 AS t",
        "a",
        "r",
        "l",
    )
    assert isinstance(block, Partitioned)
    assert (block.keys, block.made_total) == (1, True)
    assert "_sw_id" in block.items[2]
    assert "_sw_id" not in block.items[1]


def test_a_part_that_is_there_twice_is_kept_once() -> None:
    found = plan(
        "WITH g AS (SELECT a, count(*) AS n FROM _sw_rel1 AS t GROUP BY a) SELECT x.a FROM g AS x JOIN g AS y ON x.n = y.a",
        "a",
    )
    assert len(found.hidden) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b FROM _sw_rel1 AS t WHERE a > 1",
        "SELECT a, sum(b) AS b FROM _sw_rel1 AS t GROUP BY a HAVING count(*) > 1",
        "SELECT x.a, y.c AS b FROM _sw_rel1 AS x LEFT JOIN _sw_rel2 AS y ON x.a = y.a",
        "SELECT a, b FROM _sw_rel1 AS t UNION ALL SELECT a, c FROM _sw_rel2 AS u",
        "SELECT a, b FROM _sw_rel1 AS t LIMIT 2",
    ],
)
def test_a_block_survives_the_catalog(text: str) -> None:
    block = root(text, "a", "b")
    assert decode(encode(block)) == block


def test_the_change_of_a_join_is_told_term_by_term() -> None:
    block = root(
        "SELECT x.a FROM _sw_rel1 AS x JOIN _sw_rel2 AS y ON x.a = y.a LEFT JOIN _sw_rel3 AS z ON y.c = z.c", "a"
    )
    assert isinstance(block, Select)
    after, before, delta = Mode.AFTER, Mode.BEFORE, Mode.DELTA
    assert terms_of(block, {1}) == [Term((delta, after, after))]
    assert terms_of(block, {1, 2}) == [Term((delta, after, after)), Term((before, delta, after))]
    assert terms_of(block, {3}) == [Term((before, before, after), 1, 2), Term((before, before, before), -1, 2)]
    assert only_adds(block, {1, 2})
    assert not only_adds(block, {3})


def test_the_step_follows_from_what_changed() -> None:
    text = "SELECT a, max(b) AS b FROM _sw_rel1 AS t GROUP BY a"
    block = root(text, "a", "b")
    assert isinstance(block, Group)
    typed = Group(
        block.rows, 1, ("INT",), tuple(type(each)(each.function, each.direct, each.arguments, ("INT",), "INT") for each in block.aggregates),
        block.items, block.names,
    )  # fmt: skip
    auto = RefreshPolicy.AUTO
    assert plan_step(typed, auto, {1: Change(5, 0, 100)}).rule == Rule.FOLD
    assert plan_step(typed, auto, {1: Change(5, 3, 100)}).rule == Rule.TOUCHED_GROUPS
    assert plan_step(typed, auto, {1: Change(5, 1, 100)}, hopeful=False).rule == Rule.TOUCHED_GROUPS
    hopeful = plan_step(typed, auto, {1: Change(5, 1, 100)})
    assert (hopeful.rule, hopeful.losing) == (Rule.FOLD, True)
    assert plan_step(typed, auto, {1: Change(60_000, 0, 100_000)}).rule == Rule.RECOMPUTE
    assert plan_step(typed, RefreshPolicy.INCREMENTAL, {1: Change(60_000, 0, 100_000)}).rule == Rule.FOLD
    assert plan_step(typed, RefreshPolicy.FULL, {1: Change(1, 0, 100)}).rule == Rule.RECOMPUTE

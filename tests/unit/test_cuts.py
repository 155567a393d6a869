"""What a change has to read: the order of its joins, its cuts, and when all of it would be less. No Spark."""

from __future__ import annotations

from stepwell.plan.decompose import Decomposer
from stepwell.plan.ties import reading_order

from stepwell.model.views import RefreshPolicy
from stepwell.plan.blocks import Filter, Group, Origin, Select
from stepwell.plan.costs import PATIENCE, Cost, Costs
from stepwell.plan.cuts import Change, Cut, Sizes, cuts_of, filter_of, reached, worthwhile
from stepwell.plan.reading import WORTHWHILE, reading_of
from stepwell.plan.render import Mode, Term, rows_sql, terms_of
from stepwell.plan.steps import Rule, plan_step

COLUMNS = {
    "_sw_rel1": ("p", "brand"),
    "_sw_rel2": ("s", "nation"),
    "_sw_rel3": ("o", "l_p", "l_s", "price"),
    "_sw_rel4": ("ps_p", "ps_s", "cost"),
}
MUCH = 100 * 2**20


def select(text: str, *names: str) -> Select:
    block = Decomposer(COLUMNS).plan(text, names)[0].root
    block = block.rows if isinstance(block, Group) else block
    assert isinstance(block, Select)
    return block


FOUR = """SELECT price, cost FROM _sw_rel1 AS part, _sw_rel2 AS supplier, _sw_rel3 AS line, _sw_rel4 AS stock
          WHERE p = l_p AND s = l_s AND ps_s = l_s AND ps_p = l_p AND line.price > 3 AND brand = 'x' AND cost < price"""


def test_a_change_is_joined_first_and_then_what_is_tied_to_it() -> None:
    block = select(FOUR, "price", "cost")
    assert block.free == 4
    assert reading_order(block, 2) == [2, 0, 1, 3]
    assert reading_order(block, 0) == [0, 2, 1, 3]
    text = rows_sql(block, Mode.DELTA, {3})
    assert "FROM _sw_rel3_d AS `line` CROSS JOIN _sw_rel1_b AS `part`" in text


def test_conditions_move_behind_the_joins_that_have_moved() -> None:
    block = select(
        "SELECT a.p AS x, c.price FROM _sw_rel1 AS a JOIN _sw_rel2 AS b ON a.p = b.s JOIN _sw_rel3 AS c ON c.l_p = a.p",
        "x", "price",
    )  # fmt: skip
    text = rows_sql(block, Mode.DELTA, {3})
    assert " ".join(text.split()).endswith(
        "FROM _sw_rel3_d AS `c` CROSS JOIN _sw_rel1_b AS `a` INNER JOIN _sw_rel2_b AS `b` ON (a.p = b.s) AND (c.l_p = a.p)"
    )


def test_joins_stay_where_they_are_if_a_name_would_mean_two_columns() -> None:
    columns = {"_sw_rel1": ("k", "a"), "_sw_rel2": ("j", "b"), "_sw_rel3": ("k", "c")}
    text = "SELECT t.a, u.b, v.c FROM _sw_rel1 AS t JOIN _sw_rel2 AS u ON k = j JOIN _sw_rel3 AS v ON v.k = u.j"
    block = Decomposer(columns).plan(text, ("a", "b", "c"))[0].root
    assert isinstance(block, Select)
    assert block.free == 1
    assert reading_order(block, 2) == [0, 1, 2]


def test_outer_joins_stay_behind_what_they_are_joined_to() -> None:
    block = select(
        "SELECT a.p, c.price FROM _sw_rel1 AS a JOIN _sw_rel3 AS c ON a.p = c.l_p LEFT JOIN _sw_rel2 AS b ON b.s = c.l_s",
        "p", "price",
    )  # fmt: skip
    assert block.free == 2
    assert reading_order(block, 1) == [1, 0, 2]
    assert reading_order(block, 2) == [0, 1, 2]


def test_a_filter_speaks_of_one_relation_in_its_own_words() -> None:
    block = select(FOUR, "price", "cost")
    assert block.filters == (Filter(2, "price > 3"), Filter(0, "brand = 'x'"))
    assert filter_of(block, 2) == "(price > 3)"
    assert filter_of(block, 3) is None


def test_the_partner_of_an_outer_join_is_not_filtered() -> None:
    block = select("SELECT p FROM _sw_rel1 AS a LEFT JOIN _sw_rel2 AS b ON p = s WHERE b.nation IS NULL", "p")
    assert block.filters == ()


def test_a_cut_goes_by_all_columns_that_tie_two_sources() -> None:
    block = select(FOUR, "price", "cost")
    [term] = terms_of(block, {3})
    line = Origin(2, "l_s"), Origin(2, "l_p")
    assert cuts_of(block, term, [3]) == [Cut(3, ("ps_s", "ps_p"), line)]


def test_a_small_source_is_cut_only_where_a_large_one_is_reached_through_it() -> None:
    block = select("SELECT price FROM _sw_rel2 AS b, _sw_rel1 AS a, _sw_rel3 AS c WHERE s = p AND p = l_p", "price")
    term = Term((Mode.DELTA, Mode.AFTER, Mode.AFTER))
    through = [Cut(1, ("p",), (Origin(0, "s"),)), Cut(2, ("l_p",), (Origin(1, "p"),))]
    assert cuts_of(block, term, [2]) == through
    assert cuts_of(block, term, [1]) == through[:1]
    assert cuts_of(block, term, []) == []


def test_the_columns_of_a_filtered_relation_are_reached() -> None:
    block = select(
        "SELECT x FROM _sw_rel1 AS a JOIN (SELECT s AS x FROM _sw_rel2 AS i WHERE nation > 1) AS b ON p = x", "x"
    )
    found = reached(block, 1, ("x",))
    assert found is not None
    assert (found.relation, found.columns) == (2, ("s",))
    assert filter_of(block, 1) == "(nation > 1)"


NESTED = """SELECT s FROM _sw_rel2 AS b LEFT SEMI JOIN
            (SELECT l_s, l_p FROM _sw_rel3 AS c JOIN _sw_rel1 AS a ON l_p = p) AS n ON n.l_s = b.s"""


def sizes(changed: int) -> Sizes:
    return Sizes(dict.fromkeys((1, 2, 3, 4), MUCH), {changed: Change(10, 5, 1_000_000)}, large=2**20)


def test_a_change_that_can_be_cut_reads_each_source_once() -> None:
    block = select(FOUR, "price", "cost")
    reading = reading_of(block, sizes(3), stored=0)
    assert (reading.change, reading.everything) == (3 * MUCH, 4 * MUCH)
    assert not reading.is_more


def test_a_partner_that_cannot_be_cut_is_recomputed_rather_than_read_twice() -> None:
    block = select(NESTED, "s")
    reading = reading_of(block, sizes(1), stored=2**20)
    assert reading.change > reading.everything > WORTHWHILE
    changes = sizes(1).changes
    step = plan_step(block, RefreshPolicy.AUTO, changes, reading=reading)
    assert step.rule == Rule.RECOMPUTE
    assert step.reason is not None
    assert step.reason.startswith("the change would read")
    assert plan_step(block, RefreshPolicy.INCREMENTAL, changes, reading=reading).rule == Rule.TOUCHED_ROWS


def test_little_is_never_worth_the_choice() -> None:
    block = select(NESTED, "s")
    small = Sizes(dict.fromkeys((1, 2, 3), 1000), {1: Change(1, 0, 10)}, large=2**20)
    assert not reading_of(block, small, stored=0).is_more


def test_a_change_of_most_rows_is_not_known_by_a_few_keys() -> None:
    block = select(FOUR, "price", "cost")
    [term] = terms_of(block, {3})
    most = Sizes(dict.fromkeys((1, 2, 3, 4), MUCH), {3: Change(900_000, 0, 1_000_000)}, large=2**20)
    assert worthwhile(block, term, most) == []
    assert len(worthwhile(block, term, sizes(3))) == 3


def test_the_first_update_does_not_count_and_a_dear_one_is_tried_again() -> None:
    slow, quick = Cost(100, 9_000_000), Cost(1_000_000, 4_000_000)
    costs = Costs().recomputed(quick).updated(slow)
    assert not costs.expect(100, 1_000_000).is_dearer
    costs = costs.updated(slow)
    assert costs.expect(100, 1_000_000).is_dearer
    for _ in range(PATIENCE):
        costs = costs.recomputed(quick)
    assert not costs.expect(100, 1_000_000).is_dearer

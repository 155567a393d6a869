"""Aggregates by the type of their result; each says the same whatever order its rows come in."""

from __future__ import annotations

from querygen.dice import Dice
from querygen.expressions import Leaf, expression, filled
from querygen.nodes import Node, node
from querygen.types import ARRAY, BIGINT, BOOLEAN, DATE, DECIMAL, DOUBLE, INT, ROUGH, STRING, TIMESTAMP

FORMS: dict[str, tuple[str, ...]] = {
    INT: (
        "min({INT})", "max({INT})", "bit_or({INT})", "bit_and({INT})", "bit_xor({INT})", "max_by({1}, struct({STRING}, {1}))",
        "mode() WITHIN GROUP (ORDER BY {INT})", "percentile_disc(0.5) WITHIN GROUP (ORDER BY {INT})",
    ),
    BIGINT: (
        "count(*)", "count(*)", "count({INT})", "count({STRING})", "count(DISTINCT {INT})", "count(DISTINCT {INT}, {STRING})",
        "sum({INT})", "sum({INT})", "sum({BIGINT})", "sum(DISTINCT {INT})", "count_if({BOOLEAN})", "max({BIGINT})",
        "min({BIGINT})", "approx_count_distinct({INT})", "count(DISTINCT {ROUGH})", "count({INT}, {STRING})",
        "count(DISTINCT *)", "count(DISTINCT {STRING} COLLATE UTF8_LCASE)",
    ),
    DECIMAL: ("sum({DECIMAL})", "min({DECIMAL})", "max({DECIMAL})", "avg({DECIMAL})", "sum(DISTINCT {DECIMAL})"),
    DOUBLE: ("sum({DOUBLE})", "min({DOUBLE})", "max({DOUBLE})", "sum(DISTINCT {DOUBLE})"),
    ROUGH: (
        "avg({INT})", "avg({DOUBLE})", "max({ROUGH} + DOUBLE(0))", "min({ROUGH} + DOUBLE(0))", "round(stddev_pop({DOUBLE}), 10)",
        "percentile({INT}, 0.5)", "median({DOUBLE})", "round(var_samp({INT}), 10)", "avg(DISTINCT {INT})",
    ),
    STRING: (
        "min({STRING})", "max({STRING})", "min_by({1}, struct({INT}, {1}))",
        "listagg({1}, ',') WITHIN GROUP (ORDER BY {1})",
        "array_join(array_sort(collect_list({STRING})), '+')",
    ),
    BOOLEAN: ("bool_and({BOOLEAN})", "bool_or({BOOLEAN})", "every({BOOLEAN})", "some({BOOLEAN})", "max({BOOLEAN})"),
    DATE: ("min({DATE})", "max({DATE})"),
    TIMESTAMP: ("min({TIMESTAMP})", "max({TIMESTAMP})"),
    ARRAY: ("array_sort(collect_list({INT}))", "sort_array(collect_set({INT}))", "sort_array(collect_list({INT}), false)"),
}  # fmt: skip
"""{1} is one expression of the type of the result wherever it stands: what it is ordered by, too, so that ties are equal."""


def aggregate(rng: Dice, type_: str, leaf: Leaf, depth: int = 1) -> Node | None:
    """An aggregate that gives `type_`, or None if there is none."""
    if type_ not in FORMS:
        return None
    form = rng.choice(FORMS[type_])
    same = expression(rng, type_, leaf, rng.randint(0, depth))
    found = filled(
        form, type_, lambda hole: same if hole == "1" else expression(rng, hole, leaf, rng.randint(0, depth))
    )
    if rng.chance(0.2) and _is_bare(form):
        condition = expression(rng, BOOLEAN, leaf, 1)
        return node(type_, found, node("clause", " FILTER (WHERE ", condition, ")").as_optional())
    return found


def _is_bare(form: str) -> bool:
    """Whether FILTER behind the form belongs to the aggregate: nothing is around it."""
    return not form.startswith(("array_", "sort_", "round")) and "WITHIN" not in form

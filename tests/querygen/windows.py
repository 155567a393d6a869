"""Window functions whose result does not depend on how ties are broken: the order is total, or does not matter."""

from __future__ import annotations

from querygen.dice import Dice
from querygen.expressions import Leaf, expression, filled
from querygen.nodes import Node, node
from querygen.scopes import Scope
from querygen.types import ARRAY, BIGINT, DATE, DECIMAL, DOUBLE, INT, ROUGH, STRING, TIMESTAMP

ANY_ORDER: dict[str, tuple[str, ...]] = {
    INT: ("rank()", "dense_rank()", "max({INT})", "min({INT})"),
    BIGINT: ("count(*)", "sum({INT})", "count({STRING})", "max({BIGINT})", "sum({BIGINT})"),
    DECIMAL: ("sum({DECIMAL})", "max({DECIMAL})"),
    DOUBLE: ("sum({DOUBLE})", "min({DOUBLE})"),
    ROUGH: ("avg({INT})", "percent_rank()", "cume_dist()", "max({ROUGH} + DOUBLE(0))", "avg({DOUBLE})"),
    STRING: ("max({STRING})", "min({STRING})"),
    DATE: ("max({DATE})",),
    TIMESTAMP: ("min({TIMESTAMP})",),
}
TOTAL_ORDER: dict[str, tuple[str, ...]] = {
    INT: ("row_number()", "lag({INT})", "lead({INT}, 2)", "ntile(2)", "first_value({INT})", "lag({INT}, 1, -1)"),
    BIGINT: ("lag({BIGINT})", "last_value({BIGINT}) IGNORE NULLS"),
    STRING: ("lag({STRING})", "first_value({STRING}) IGNORE NULLS", "nth_value({STRING}, 2)"),
    ROUGH: ("lag({ROUGH})",),
    ARRAY: ("lag({ARRAY})", "collect_list({INT})"),
}
FRAMES = (
    "", "", " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " ROWS 2 PRECEDING",
)  # fmt: skip
UNFRAMED = ("row_number", "rank", "dense_rank", "lag", "lead", "ntile", "percent_rank", "cume_dist")


class Windows:
    """Makes window functions over a scope; most of those of one SELECT are partitioned by the same."""

    def __init__(self, rng: Dice, scope: Scope, leaf: Leaf) -> None:
        self.rng = rng
        self.scope = scope
        self.leaf = leaf
        keys = [column for column in scope.columns if column.type in (INT, STRING, DATE)] or list(scope.columns)
        chosen = rng.sample(keys, min(len(keys), rng.randint(1, 2)))
        self.partition = ", ".join(column.text for column in chosen)
        if rng.chance(0.04):
            self.partition = ""

    def function(self, type_: str) -> Node | None:
        rng = self.rng
        table = TOTAL_ORDER if rng.chance(0.45) else ANY_ORDER
        if type_ not in table:
            return None
        form = rng.choice(table[type_])
        name = form.split("(")[0]
        call = filled(form, type_, lambda hole: expression(rng, hole, self.leaf, rng.randint(0, 1)))
        order, frame = "", ""
        if table is TOTAL_ORDER:
            order, frame = self.scope.total_order(), rng.choice(FRAMES)
            if rng.chance(0.5):
                first = rng.choice(self.scope.columns)
                order = f"{first.text} {rng.choice(('DESC', 'ASC NULLS LAST', 'DESC NULLS FIRST'))}, {order}"
        elif name in UNFRAMED or rng.chance(0.4):
            order = rng.choice(self.scope.columns).text
        if name in UNFRAMED:
            frame = ""
        partition = f"PARTITION BY {self.partition}" if self.partition else ""
        written = " ".join(part for part in (partition, f"ORDER BY {order}" if order else "") if part)
        return node(type_, call, f" OVER ({written}{frame})")

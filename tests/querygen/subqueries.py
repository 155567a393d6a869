"""Subqueries inside of expressions: EXISTS, IN and their negations, and scalar ones, tied to the row outside or not."""

from __future__ import annotations

from querygen.aggregates import FORMS, aggregate
from querygen.dice import Dice
from querygen.expressions import expression, literal
from querygen.nodes import Node, clause, node
from querygen.scopes import Scope
from querygen.sources import Sources
from querygen.types import ARRAY, BOOLEAN, INT, STRING


class Subqueries:
    """Makes them over the sources that `sources` offers."""

    def __init__(self, rng: Dice, sources: Sources) -> None:
        self.rng = rng
        self.sources = sources

    def condition(self, outer: Scope) -> Node:
        """EXISTS or IN, as it is or inside of something larger."""
        rng = self.rng
        found = self._exists(outer) if rng.chance(0.5) else self._in(outer)
        if rng.chance(0.2):
            other = expression(rng, BOOLEAN, outer.leaf(rng), 1)
            return node(BOOLEAN, "(", found, " OR ", other, ")")
        if rng.chance(0.1):
            return node(
                BOOLEAN, "(CASE WHEN ", found, " THEN true ELSE ", expression(rng, BOOLEAN, outer.leaf(rng), 1), " END)"
            )
        return found

    def scalar(self, outer: Scope, type_: str) -> Node:
        """The value of an aggregate, also one that is something over no rows."""
        rng = self.rng
        if type_ not in FORMS:
            type_ = INT
        inner = self.sources.joined(2 if rng.chance(0.2) else 1)
        value = aggregate(rng, type_, inner.scope.leaf(rng))
        assert value is not None
        if rng.chance(0.35):
            value = node(type_, "coalesce(", value, ", ", literal(rng, type_), ")")
        where = self._where(inner.scope, outer, tied=rng.chance(0.7))
        having = clause(" HAVING count(*) > 1") if rng.chance(0.05) else None
        return node(type_, "(SELECT ", value, " AS z FROM ", inner.tree, where, having, ")")

    def _exists(self, outer: Scope) -> Node:
        inner = self.sources.joined(2 if self.rng.chance(0.2) else 1)
        where = self._where(inner.scope, outer, tied=self.rng.chance(0.85))
        word = self.rng.choice(("EXISTS", "NOT EXISTS"))
        return node(BOOLEAN, f"({word} (SELECT 1 FROM ", inner.tree, where, "))")

    def _in(self, outer: Scope) -> Node:
        rng = self.rng
        inner = self.sources.joined(2 if rng.chance(0.2) else 1)
        type_ = rng.choice((INT, INT, STRING, ARRAY))
        word = rng.choice(("IN", "IN", "NOT IN"))
        where = self._where(inner.scope, outer, tied=rng.chance(0.25))
        asked = expression(rng, type_, outer.leaf(rng), rng.randint(0, 1))
        held = expression(rng, type_, inner.scope.leaf(rng), rng.randint(0, 1))
        if rng.chance(0.1):
            asked2, held2 = (
                expression(rng, STRING, outer.leaf(rng), 0),
                expression(rng, STRING, inner.scope.leaf(rng), 0),
            )
            return node(
                BOOLEAN,
                "((",
                asked,
                ", ",
                asked2,
                f") {word} (SELECT ",
                held,
                ", ",
                held2,
                " FROM ",
                inner.tree,
                where,
                "))",
            )
        return node(BOOLEAN, "(", asked, f" {word} (SELECT ", held, " FROM ", inner.tree, where, "))")

    def _where(self, inner: Scope, outer: Scope, tied: bool) -> Node | None:
        rng = self.rng
        conditions: list[Node] = []
        pairs = [
            (one, other)
            for one in inner.columns
            for other in outer.columns
            if one.type == other.type and one.type in (INT, STRING)
        ]
        if tied and pairs:
            for one, other in rng.sample(pairs, min(len(pairs), 2 if rng.chance(0.15) else 1)):
                sign = rng.choice(("=", "=", "=", "=", "=", "<=>", "<"))
                conditions.append(node("condition", f"{one.text} {sign} {other.text}"))
        if rng.chance(0.4):
            scope = Scope(inner.columns + outer.columns) if tied and rng.chance(0.2) else inner
            conditions.append(node("condition", expression(rng, BOOLEAN, scope.leaf(rng), 1)))
        if not conditions:
            return None
        return clause(" WHERE ", Node("list", tuple(conditions), separator=" AND "))

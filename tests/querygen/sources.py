"""FROM: relations, subqueries and CTEs, joined in every way, and unnested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from querygen.dice import Dice
from querygen.expressions import expression
from querygen.nodes import Node, clause, node
from querygen.schema import Relation, quoted
from querygen.scopes import Column, Scope
from querygen.types import ARRAY, BIGINT, BOOLEAN, INT, MAP, ORDERED, STRING

JOINS = (
    "JOIN",
    "JOIN",
    "INNER JOIN",
    "LEFT JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
    "CROSS JOIN",
)
MOST = 6
"""After so many relations in a query, no more joins."""


@dataclass(frozen=True, slots=True)
class Source:
    """What stands behind FROM, and what can be named because of it."""

    tree: Node
    scope: Scope


class Sources:
    """Makes FROM clauses. `pick` gives something to read from: the text that stands for it, and its columns."""

    def __init__(self, rng: Dice, pick: Callable[[], tuple[Node, Relation]]) -> None:
        self.rng = rng
        self.pick = pick
        self.aliases = 0

    def alias(self) -> str:
        self.aliases += 1
        return f"{self.rng.choice('abcr')}{self.aliases}"

    def one(self) -> Source:
        """A single relation under an alias."""
        tree, relation = self.pick()
        alias = self.alias()
        columns = tuple(Column(name, type_, alias) for name, type_ in relation.columns)
        return Source(node("source", tree, f" AS {alias}"), Scope(columns))

    def joined(self, most: int = 4) -> Source:
        """One to `most` relations."""
        most = max(1, min(most, MOST - self.aliases))
        count = self.rng.choices(range(1, most + 1), weights=(50, 30, 13, 7)[:most])[0]
        found = self.one()
        for _ in range(count - 1):
            found = self.join(found, self.one())
        return found

    def join(self, left: Source, right: Source, kind: str | None = None) -> Source:
        """Two sources as one, in some way or in this one."""
        rng = self.rng
        if kind is not None:
            together = Scope(left.scope.columns + right.scope.columns)
            on = self._condition(left.scope, right.scope, together)
            return Source(node("source", left.tree, clause(f" {kind} ", right.tree, " ON ", on)), together)
        kind = rng.choice(JOINS)
        keeps_right = "SEMI" not in kind and "ANTI" not in kind
        together = Scope(left.scope.columns + right.scope.columns)
        if rng.chance(0.04) and left.scope.of((INT,)):
            return self._lateral(left)
        if kind == "CROSS JOIN":
            if rng.chance(0.5):
                return Source(node("source", left.tree, clause(", ", right.tree)), together)
            return Source(node("source", left.tree, clause(" CROSS JOIN ", right.tree)), together)
        shared = _shared(left.scope, right.scope)
        if shared and rng.chance(0.2):
            return self._by_names(kind, left, right, shared)
        condition = self._condition(left.scope, right.scope, together)
        return Source(
            node("source", left.tree, clause(f" {kind} ", right.tree, " ON ", condition)),
            together if keeps_right else left.scope,
        )

    def _lateral(self, left: Source) -> Source:
        """A subquery that sees what is to the left of it."""
        rng = self.rng
        inner = self.one()
        alias = self.alias()
        outer = rng.choice(left.scope.of((INT,)))
        ties = inner.scope.of((INT,))
        where = clause(f" WHERE {rng.choice(ties).text} = {outer.text}") if ties else None
        if rng.chance(0.5):
            value, type_ = rng.choice((("count(*)", BIGINT), ("coalesce(sum(1), 0)", BIGINT), ("max(2)", INT)))
        else:
            column = rng.choice(inner.scope.columns)
            value, type_ = column.text, column.type
        kind = rng.choice((", LATERAL", " CROSS JOIN LATERAL", " LEFT JOIN LATERAL"))
        on = " ON true" if kind == " LEFT JOIN LATERAL" else ""
        tree = clause(f"{kind} (SELECT {value} AS z FROM ", inner.tree, where, f") AS {alias}{on}")
        return Source(node("source", left.tree, tree), Scope((*left.scope.columns, Column("z", type_, alias))))

    def _by_names(self, kind: str, left: Source, right: Source, shared: tuple[Column, ...]) -> Source:
        """USING some of the columns that both have, or NATURAL by all of them."""
        keeps_right = "SEMI" not in kind and "ANTI" not in kind
        names = [column.name.lower() for column in left.scope.columns]
        common = {column.name.lower() for column in right.scope.columns} & set(names)
        if keeps_right and common == {column.name.lower() for column in shared} and self.rng.chance(0.4):
            word = kind.replace("INNER ", "")
            tree = node("source", left.tree, clause(f" NATURAL {word} ", right.tree))
        else:
            shared = shared[: self.rng.randint(1, 2)]
            using = ", ".join(quoted(column.name) for column in shared)
            tree = node("source", left.tree, clause(f" {kind} ", right.tree, f" USING ({using})"))
        if not keeps_right:
            return Source(tree, left.scope)
        merged = {column.name.lower() for column in shared}
        rest = tuple(each for each in left.scope.columns + right.scope.columns if each.name.lower() not in merged)
        return Source(tree, Scope(tuple(Column(each.name, each.type) for each in shared) + rest))

    def _condition(self, left: Scope, right: Scope, together: Scope) -> Node:
        rng = self.rng
        pairs = [
            (one, other) for one in left.of(ORDERED) for other in right.of(ORDERED) if one.type == other.type
        ]  # fmt: skip
        likely = [pair for pair in pairs if pair[0].type in (INT, STRING)]
        if not pairs or rng.chance(0.08):
            return expression(rng, BOOLEAN, together.leaf(rng), 1)
        one, other = rng.choice(likely or pairs)
        equal = f"{one.text} {'<=>' if rng.chance(0.1) else '='} {other.text}"
        if rng.chance(0.1):
            equal = f"{one.text} {rng.choice(('<', '>=', '<>'))} {other.text}"
        more = clause(" AND ", expression(rng, BOOLEAN, together.leaf(rng), 1)) if rng.chance(0.3) else None
        return node("condition", equal, more)

    def unnested(self, found: Source) -> Source:
        """With a LATERAL VIEW of an array or a map of it, if there is one."""
        rng = self.rng
        nested = found.scope.of((ARRAY, MAP))
        if not nested:
            return found
        column = rng.choice(nested)
        outer = " OUTER" if rng.chance(0.4) else ""
        alias = self.alias()
        function = rng.choice(("explode", "posexplode"))
        names = [("key", STRING), ("value", INT)] if column.type == MAP else [("x", INT)]
        if function == "posexplode":
            names = [("pos", INT), *names]
        written = ", ".join(name for name, _ in names)
        lateral = clause(f" LATERAL VIEW{outer} {function}({column.text}) {alias} AS {written}")
        more = tuple(Column(name, type_, alias) for name, type_ in names)
        return Source(node("source", found.tree, lateral), Scope(found.scope.columns + more))


def _shared(left: Scope, right: Scope) -> tuple[Column, ...]:
    """Columns of the left side that the right side has too, by the same name and type, and that are there but once."""
    names = [column.name.lower() for column in left.columns]
    others = {column.name.lower(): column.type for column in right.columns}
    return tuple(
        column
        for column in left.of(ORDERED)
        if others.get(column.name.lower()) == column.type and names.count(column.name.lower()) == 1
    )

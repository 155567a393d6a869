"""Whole queries: rows, groups, windows, set operations, PIVOT, nested into each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from querygen.aggregates import aggregate
from querygen.dice import Dice
from querygen.expressions import Leaf, expression
from querygen.grouping import group_clause
from querygen.names import Names
from querygen.nodes import Node, clause, listed, node
from querygen.schema import Relation, quoted
from querygen.scopes import Column, Scope
from querygen.sources import Sources
from querygen.subqueries import Subqueries
from querygen.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INT,
    MAP,
    ORDERED,
    ROUGH,
    STRING,
    TIMESTAMP,
    WIDER,
    common,
)  # fmt: skip
from querygen.windows import Windows

NUMBERS = (INT, INT, BIGINT, BIGINT, DECIMAL, DOUBLE, ROUGH)
AGGREGATED = (*NUMBERS, STRING, BOOLEAN, DATE, TIMESTAMP, ARRAY)
OUTPUTS = (INT, INT, INT, BIGINT, DECIMAL, DOUBLE, ROUGH, STRING, STRING, BOOLEAN, DATE, TIMESTAMP, ARRAY, MAP)


@dataclass(frozen=True, slots=True)
class Query:
    """A query and the columns that come out of it."""

    tree: Node
    columns: tuple[tuple[str, str], ...]


class Queries:
    """Makes queries over relations, from nothing but the numbers of `rng`."""

    def __init__(self, rng: Dice, relations: Sequence[Relation]) -> None:
        self.rng = rng
        self.relations = list(relations)
        self.depth = 0
        self.sources = Sources(rng, self._pick)
        self.subqueries = Subqueries(rng, self.sources)

    def view(self) -> Query:
        """A query for a view: often just rows, sometimes behind WITH, seldom cut by LIMIT."""
        rng = self.rng
        if rng.chance(0.34):  # what applies to a delta or joins it is seldom left when all forms are mixed
            return self._just_rows(rng.choice((1, 1, 2, 2, 3)))
        if rng.chance(0.12):
            return self._with()
        query = self._any(2)
        if rng.chance(0.02):
            return self._limited(query)
        return query

    def _pick(self) -> tuple[Node, Relation]:
        """Something to read from: a relation, or a query in parentheses while it is not too deep."""
        if self.depth > 0 and self.sources.aliases < 4 and self.rng.chance(0.25):
            query = self._any(self.depth - 1)
            return node("relation", "(", query.tree, ")"), Relation("", query.columns)
        relation = self.rng.choice(self.relations)
        return node("relation", relation.name), relation

    def _any(self, depth: int) -> Query:
        outer, self.depth = self.depth, depth
        try:
            return self.rng.choices(
                (self._rows, self._groups, self._windows, self._set, self._pivot, self._exploded, self._global),
                weights=(36, 25, 16, 11, 3, 4, 5),
            )[0]()
        finally:
            self.depth = outer

    # -- rows

    def _just_rows(self, count: int) -> Query:
        """So many relations, joined where rows meet, and of them what a condition on each row by itself leaves."""
        rng = self.rng
        found = self.sources.one()
        for _ in range(count - 1):
            found = self.sources.join(found, self.sources.one(), "INNER JOIN")
        if rng.chance(0.15):
            found = self.sources.unnested(found)
        items, columns = self._items(found.scope, with_maps=True)
        where = clause(" WHERE ", expression(rng, BOOLEAN, found.scope.leaf(rng), 1)) if rng.chance(0.5) else None
        return Query(node("query", "SELECT ", listed(items), " FROM ", found.tree, where), columns)

    def _rows(self) -> Query:
        rng = self.rng
        found = self.sources.joined()
        if rng.chance(0.15):
            found = self.sources.unnested(found)
        distinct = clause("DISTINCT ") if rng.chance(0.18) else None
        if (
            rng.chance(0.06)
            and not distinct
            and len({each.name.lower() for each in found.scope.columns}) == len(found.scope.columns)
        ):
            return Query(
                node("query", "SELECT * FROM ", found.tree, self._where(found.scope)),
                tuple((each.name, each.type) for each in found.scope.columns),
            )
        items, columns = self._items(found.scope, with_maps=distinct is None)
        return Query(
            node("query", "SELECT ", distinct, listed(items), " FROM ", found.tree, self._where(found.scope)), columns
        )

    def _items(self, scope: Scope, with_maps: bool) -> tuple[list[Node], tuple[tuple[str, str], ...]]:
        rng, names = self.rng, Names(self.rng, scope)
        items: list[Node] = []
        columns: list[tuple[str, str]] = []
        for _ in range(rng.randint(26, 30) if rng.chance(0.02) else rng.randint(1, 5)):
            type_ = rng.choice([each for each in self._likely(scope) if each != MAP or with_maps])
            reach = scope
            if columns and rng.chance(0.15):  # a name given to the left of it
                reach = Scope((*scope.columns, *(Column(name, held) for name, held in columns)))
            if rng.chance(0.08):
                value = self.subqueries.scalar(scope, type_)
                type_ = value.sort
            elif rng.chance(0.04):
                value, type_ = self.subqueries.condition(scope), BOOLEAN
            else:
                value = expression(rng, type_, reach.leaf(rng), rng.randint(0, 2))
            items.append(self._item(value, names, columns, type_))
        return items, tuple(columns)

    def _likely(self, scope: Scope) -> list[str]:
        """Types for an output: those that are there count more."""
        return [*OUTPUTS, *(column.type for column in scope.columns), *(column.type for column in scope.columns)]

    def _item(self, value: Node, names: Names, columns: list[tuple[str, str]], type_: str) -> Node:
        name = names.next()
        columns.append((name, type_))
        return node("item", value, f" AS {quoted(name)}")

    def _where(self, scope: Scope) -> Node | None:
        rng = self.rng
        if rng.chance(0.5):
            return None
        conditions = []
        if rng.chance(0.35):
            conditions.append(self.subqueries.condition(scope))
        if rng.chance(0.08):
            type_ = rng.choice((INT, BIGINT, STRING))
            left = expression(rng, type_, scope.leaf(rng), 0)
            conditions.append(
                node(BOOLEAN, left, f" {rng.choice(('=', '<', '>='))} ", self.subqueries.scalar(scope, type_))
            )
        if not conditions or rng.chance(0.4):
            conditions.append(expression(rng, BOOLEAN, scope.leaf(rng), rng.randint(1, 2)))
        return clause(" WHERE ", Node("list", tuple(conditions), separator=" AND "))

    # -- groups

    def _groups(self) -> Query:
        rng = self.rng
        found = self.sources.joined(3)
        if rng.chance(0.08):
            found = self.sources.unnested(found)
        grouped = found.scope.without_maps()
        if not grouped.columns:
            return self._rows()
        keys = self._keys(grouped)
        names = Names(rng, found.scope)
        columns: list[tuple[str, str]] = []
        items: list[Node] = []
        for key in keys:
            if rng.chance(0.85):
                items.append(self._item(key, names, columns, key.sort))
        leaf = self._grouped_leaf(found.scope.leaf(rng), keys)
        form = group_clause(rng, keys, items)
        for _ in range(rng.randint(1, 4)):
            type_ = rng.choice([each for each in self._likely(found.scope) if each in AGGREGATED])
            value = expression(rng, type_, leaf, rng.choice((0, 0, 0, 1, 2)))
            items.append(self._item(value, names, columns, type_))
        for text, type_ in form.grouping:
            items.append(self._item(node(type_, text), names, columns, type_))
        if rng.chance(0.06):
            items.append(self._item(self._over_groups(leaf, keys), names, columns, BIGINT))
        if rng.chance(0.03):
            exploded = node(
                "item", "explode(sort_array(collect_set(", expression(rng, INT, found.scope.leaf(rng), 0), ")))"
            )
            items.append(self._item(exploded, names, columns, INT))
        having = None
        if rng.chance(0.3):
            aliases = Scope(tuple(Column(name, type_) for name, type_ in columns)).leaf(rng)
            reach: Leaf = lambda type_: aliases(type_) if rng.chance(0.4) else leaf(type_)  # noqa: E731
            having = clause(" HAVING ", expression(rng, BOOLEAN, reach, 1))
        tree = node(
            "query", "SELECT ", listed(items), " FROM ", found.tree, self._where(found.scope), form.tree, having
        )
        return Query(tree, tuple(columns))

    def _over_groups(self, leaf: Leaf, keys: list[Node]) -> Node:
        """A window over what is grouped."""
        value = expression(self.rng, BIGINT, leaf, 0)
        partition = self.rng.choice(keys).text
        if self.rng.chance(0.5):
            return node(BIGINT, "sum(", value, f") OVER (PARTITION BY {partition})")
        return node(BIGINT, f"CAST(rank() OVER (PARTITION BY {partition} ORDER BY ", value, ") AS BIGINT)")

    def _keys(self, scope: Scope) -> list[Node]:
        """What is grouped by: columns mostly, and expressions that have a column in them."""
        rng = self.rng
        keys: list[Node] = []
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            if rng.chance(0.7):
                column = rng.choice(scope.columns)
                keys.append(node(column.type, column.text))
                continue
            type_ = rng.choice((INT, STRING, DATE, BOOLEAN, ROUGH))
            if (key := expression(rng, type_, scope.leaf(rng), 1)).inside() and any(
                each.text in key.text for each in scope.columns
            ):
                keys.append(key)
        if not keys:
            column = rng.choice(scope.columns)
            keys.append(node(column.type, column.text))
        return list({key.text: key for key in keys}.values())

    def _grouped_leaf(self, leaf: Leaf, keys: list[Node]) -> Leaf:
        def found(type_: str) -> Node | None:
            fitting = [key for key in keys if key.sort == type_]
            if fitting and self.rng.chance(0.15):
                return self.rng.choice(fitting)
            return aggregate(self.rng, type_, leaf)

        return found

    def _global(self) -> Query:
        """Aggregates over everything: one row, also of nothing."""
        rng = self.rng
        found = self.sources.joined(2)
        names, columns = Names(rng, found.scope), list[tuple[str, str]]()
        leaf = self._grouped_leaf(found.scope.leaf(rng), [])
        items = []
        for _ in range(rng.randint(1, 3)):
            type_ = rng.choice((*NUMBERS, STRING, ARRAY))
            value = expression(rng, type_, leaf, rng.choice((0, 0, 1)))
            items.append(self._item(value, names, columns, type_))
        having = clause(" HAVING count(*) > 2") if rng.chance(0.1) else None
        return Query(
            node("query", "SELECT ", listed(items), " FROM ", found.tree, self._where(found.scope), having),
            tuple(columns),
        )

    # -- windows

    def _windows(self) -> Query:
        rng = self.rng
        found = self.sources.joined(2)
        scope = found.scope.without_maps()
        if not scope.columns:
            return self._rows()
        names, columns = Names(rng, scope), list[tuple[str, str]]()
        plain = scope.leaf(rng)
        windows = Windows(rng, scope, plain)
        items = []
        for column in rng.sample(scope.columns, min(len(scope.columns), rng.randint(1, 3))):
            items.append(self._item(node(column.type, column.text), names, columns, column.type))
        for _ in range(rng.randint(1, 3)):
            type_ = rng.choice((INT, INT, INT, BIGINT, BIGINT, DECIMAL, DOUBLE, ROUGH, STRING, ARRAY))
            leaf: Leaf = lambda wanted: windows.function(wanted) or plain(wanted)  # noqa: E731
            items.append(self._item(expression(rng, type_, leaf, rng.choice((0, 0, 1))), names, columns, type_))
        qualify = None
        if rng.chance(0.35) and (number := windows.function(INT)) is not None:
            qualify = clause(" QUALIFY ", number, f" {rng.choice(('=', '<=', '>'))} 1")
        tree = node("query", "SELECT ", listed(items), " FROM ", found.tree, self._where(scope), qualify)
        return Query(tree, tuple(columns))

    # -- set operations

    def _set(self) -> Query:
        rng = self.rng
        word = rng.choice(
            ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "MINUS")
        )
        offered = [type_ for type_ in OUTPUTS if type_ != MAP or word == "UNION ALL"]
        types = [rng.choice(offered) for _ in range(rng.randint(1, 3))]
        names = Names(rng, Scope(()))
        called = [names.next() for _ in types]
        branches = [self._branch(types, called)]
        for _ in range(2 if rng.chance(0.2) else 1):
            others = [rng.choice(WIDER.get(type_, (type_,))) if rng.chance(0.4) else type_ for type_ in types]
            branches.append(self._branch(others, called if rng.chance(0.5) else None))
            types = [common(one, other) for one, other in zip(types, others, strict=True)]
        tree = Node("query", tuple(branches), separator=f" {word} ")
        return Query(tree, tuple(zip(called, types, strict=True)))

    def _branch(self, types: list[str], called: list[str] | None) -> Node:
        rng = self.rng
        found = self.sources.joined(2)
        group = rng.chance(0.2) and MAP not in types
        leaf = found.scope.leaf(rng)
        values = [expression(rng, type_, leaf, rng.randint(0, 1)) for type_ in types]
        items = [
            node("item", value, f" AS {quoted(called[number])}" if called else None)
            for number, value in enumerate(values)
        ]
        grouping = clause(" GROUP BY ALL") if group else None
        return node(
            "query",
            "SELECT ",
            Node("items", tuple(_spaced(items))),
            " FROM ",
            found.tree,
            self._where(found.scope),
            grouping,
        )

    # -- PIVOT, explode, WITH, LIMIT

    def _pivot(self) -> Query:
        rng = self.rng
        found = self.sources.joined(2)
        leaf = found.scope.leaf(rng)
        kept = [expression(rng, rng.choice((INT, STRING, DATE)), leaf, 0) for _ in range(rng.randint(1, 2))]
        inner = node(
            "query", "SELECT ", Node("items", tuple(_spaced([node("item", each, f" AS i{number}") for number, each in enumerate(kept)]))),
            ", ", expression(rng, INT, leaf, 1), " AS h, ", expression(rng, INT, leaf, 1), " AS m, ",
            expression(rng, STRING, leaf, 0), " AS q FROM ", found.tree, self._where(found.scope),
        )  # fmt: skip
        values = rng.sample((0, 1, 2, 3), rng.randint(1, 3))
        sums = rng.sample(
            (("sum(m)", BIGINT), ("count(*)", BIGINT), ("max(q)", STRING), ("count(DISTINCT q)", BIGINT)),
            rng.randint(1, 2),
        )
        columns = [(f"i{number}", each.sort) for number, each in enumerate(kept)]
        # what PIVOT does not name is grouped by: m or q too, where no aggregate uses it
        used = " ".join(text for text, _ in sums)
        columns += [
            (name, type_)
            for name, type_ in (("m", INT), ("q", STRING))
            if f"({name}" not in used and f" {name}" not in used
        ]
        for number in values:
            columns += [
                (f"h{number}" if len(sums) == 1 else f"h{number}_g{place}", type_)
                for place, (_, type_) in enumerate(sums)
            ]
        listed_sums = ", ".join(f"{text} AS g{place}" for place, (text, _) in enumerate(sums))
        listed_values = ", ".join(f"{number} AS h{number}" for number in values)
        return Query(
            node("query", "SELECT * FROM (", inner, f") PIVOT ({listed_sums} FOR h IN ({listed_values}))"),
            tuple(columns),
        )

    def _exploded(self) -> Query:
        """A generator in the SELECT list."""
        rng = self.rng
        found = self.sources.joined(2)
        leaf = found.scope.leaf(rng)
        names, columns = Names(rng, found.scope), list[tuple[str, str]]()
        items = []
        for _ in range(rng.randint(1, 2)):
            type_ = rng.choice((INT, STRING, BIGINT))
            items.append(self._item(expression(rng, type_, leaf, 1), names, columns, type_))
        call = rng.choice(("explode", "explode_outer"))
        items.append(self._item(node("item", f"{call}(", expression(rng, ARRAY, leaf, 1), ")"), names, columns, INT))
        return Query(
            node("query", "SELECT ", listed(items), " FROM ", found.tree, self._where(found.scope)), tuple(columns)
        )

    def _with(self) -> Query:
        """A WITH that is used once, or twice."""
        first = self._any(1)
        name = "w1"
        outside = self.relations
        here = Relation(name, first.columns)
        self.relations = [here, here, here, *self.rng.sample(outside, min(2, len(outside)))]
        second: Query = self._rows() if self.rng.chance(0.5) else self._groups()
        self.relations = outside
        return Query(node("query", f"WITH {name} AS (", first.tree, ") ", second.tree), second.columns)

    def _limited(self, query: Query) -> Query:
        ordered = [(name, type_) for name, type_ in query.columns if type_ in ORDERED]
        if any(type_ not in ORDERED for _, type_ in query.columns):
            return query
        order = ", ".join(
            f"CAST({quoted(name)} AS STRING)" if type_ == ROUGH else quoted(name) + self.rng.choice(("", " DESC"))
            for name, type_ in ordered
        )
        return Query(
            node("query", "SELECT * FROM (", query.tree, f") AS l ORDER BY {order} LIMIT {self.rng.randint(1, 5)}"),
            query.columns,
        )


def _spaced(items: list[Node]) -> list[str | Node]:
    """Items with commas between them, none of which can be left out alone: other branches have as many."""
    spaced: list[str | Node] = []
    for item in items:
        spaced += [", ", item] if spaced else [item]
    return spaced

"""Subqueries in expressions, as joins: what a rule for joins can maintain.

    WHERE EXISTS (q)          LEFT SEMI JOIN q ON what ties it to the row
    WHERE x IN (q)            LEFT SEMI JOIN q ON x = its value
    WHERE NOT EXISTS (q)      LEFT ANTI JOIN
    WHERE x NOT IN (q)        LEFT ANTI JOIN ON x = its value; and none if x or a value is NULL, unless q is empty
    c OR EXISTS (q)           c OR (SELECT count(*) …) > 0
    FROM t, LATERAL (q)       JOIN q ON what ties it to the row
    (SELECT sum(y) FROM …)    CROSS JOIN a row, or LEFT JOIN a row for each value that ties it to the outer one

What ties a subquery to the row outside are those conditions of its WHERE that speak of both; they become the join's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from stepwell.plan.grouping import Unsuited, has_aggregate, sql_of

ALIAS = "_sw_q"

Names = Callable[[exp.Query], dict[str, tuple[str, ...]]]
"""The sources of a query, by alias in small letters, with their columns."""


def has_subquery(node: exp.Expr | None) -> bool:
    """Whether a query stands in an expression."""
    return node is not None and node.find(exp.Subquery, exp.Exists, exp.Query) is not None


class SubqueryJoins:
    """Turns the subqueries in the expressions of one SELECT into joins."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._joins: list[exp.Join] = []
        self._number = 0

    def applied(self, tree: exp.Select) -> exp.Select:
        """The same query without subqueries in WHERE and in what it selects."""
        where, joins = tree.args.get("where"), tree.args.get("joins") or ()
        if (
            not has_subquery(where)
            and not any(map(has_subquery, tree.expressions))
            and not any(map(_is_lateral, joins))
        ):
            return tree
        tree = tree.copy()
        self._number = sum(str(join.alias_or_name).startswith(ALIAS) for join in tree.args.get("joins") or ())
        if where is not None:
            kept = [left for each in conjuncts(tree.args["where"].this) if (left := self._condition(each)) is not None]
            tree.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
        tree.set("expressions", [self._scalars(item) for item in tree.expressions])
        joins = [self._lateral(join) if _is_lateral(join) else join for join in tree.args.get("joins") or ()]
        tree.set("joins", [*joins, *self._joins])
        return tree

    def _lateral(self, join: exp.Join) -> exp.Join:
        """A subquery in FROM that speaks of the sources before it, as a join on what ties it to them."""
        query, alias = _query(join.this.this), join.this.args.get("alias")
        if alias is None or alias.columns or any(item.is_star for item in query.expressions):
            raise Unsuited("LATERAL without an alias, or with a star, has no rule: name its columns")
        if _is_grouped(query) or query.args.get("distinct") or query.args.get("limit"):
            raise Unsuited("LATERAL of an aggregate, DISTINCT or LIMIT has no rule")
        tied, inner = self._untied(query)
        on, shown = self._exposed(tied, query, alias.name)
        inner.set("expressions", [*inner.expressions, *(exp.alias_(column, name) for column, name in shown)])
        on += [join.args["on"].copy()] if join.args.get("on") else []
        condition = exp.and_(*(exp.paren(each) for each in on), copy=False) if on else None
        return exp.Join(this=inner.subquery(alias.name), side=join.side or None, on=condition)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def _condition(self, node: exp.Expr) -> exp.Expr | None:
        """What is left of a condition once its subqueries are joins."""
        node = node.unnest() if isinstance(node, exp.Paren) else node
        negated = isinstance(node, exp.Not)
        inner = node.this if negated else node
        inner = inner.unnest() if isinstance(inner, exp.Paren) else inner
        if isinstance(inner, exp.Exists):
            self._exists(_query(inner.this), negated=negated)
            return None
        if isinstance(inner, exp.In) and inner.args.get("query"):
            self._in(inner, negated=negated)
            return None
        return self._scalars(self._counted(node))

    def _counted(self, node: exp.Expr) -> exp.Expr:
        """A condition with OR in it: EXISTS and IN in it ask how many there are, and NULL is as good as false."""
        if isinstance(node, exp.Paren):
            return exp.paren(self._counted(node.this), copy=False)
        if isinstance(node, exp.Or | exp.And):
            return type(node)(this=self._counted(node.this), expression=self._counted(node.expression))
        negated = isinstance(node, exp.Not)
        inner = node.this.unnest() if negated else node
        if isinstance(inner, exp.Exists):
            query = _query(inner.this)
        elif isinstance(inner, exp.In) and inner.args.get("query") and not negated:
            query = _query(inner.args["query"])
            if len(query.expressions) != 1 or isinstance(inner.this, exp.Tuple) or self._untied(query)[0]:
                raise Unsuited("IN of several columns, or of one that depends on the row outside, has no rule under OR")
            query.set("expressions", [exp.alias_(_unaliased(query.expressions[0]).copy(), "_sw_v0")])
            equal = exp.EQ(this=_column("_sw_in", "_sw_v0"), expression=inner.this.copy())
            query = exp.select("1").from_(query.subquery("_sw_in")).where(equal)
        else:
            return node
        if _is_grouped(query) or query.args.get("limit"):
            raise Unsuited("EXISTS or IN of a grouped subquery under OR has no rule")
        query.set("expressions", [exp.Count(this=exp.Literal.number(1))])
        query.set("distinct", None)
        how = exp.EQ if negated else exp.GT
        return how(this=exp.Subquery(this=query), expression=exp.Literal.number(0))

    def _exists(self, query: exp.Select, *, negated: bool) -> None:
        if not _is_grouped(query):
            query.set("limit", None)  # one is enough, and more do no harm
        tied, inner = self._untied(query)
        alias = self._alias()
        if _is_grouped(inner):
            inner = exp.select("1").from_(inner.subquery("_sw_in"))
        on, shown = self._exposed(tied, query, alias)
        inner.set("expressions", [exp.alias_(column, name) for column, name in shown] or [exp.alias_("1", "_sw_c")])
        inner.set("distinct", None)
        self._join("ANTI" if negated else "SEMI", inner, alias, on)

    def _in(self, node: exp.In, *, negated: bool) -> None:
        query = _query(node.args["query"])
        values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        if any(map(has_subquery, values)):
            raise Unsuited("IN over a subquery of a subquery has no rule")
        if len(query.expressions) != len(values) or any(isinstance(each, exp.Star) for each in query.expressions):
            raise Unsuited("IN with a star has no rule: name the column")
        tied, inner = self._untied(query)
        alias = self._alias()
        on, shown = self._exposed(tied, query, alias)
        items = [_unaliased(item) for item in query.expressions]
        if shown and _is_grouped(inner):
            raise Unsuited("a grouped subquery that depends on the row outside has no rule in IN")
        named = [exp.alias_(item.copy(), f"_sw_v{index}") for index, item in enumerate(items)]
        inner.set("expressions", [*named, *(exp.alias_(column, name) for column, name in shown)])
        pairs = [
            exp.EQ(this=value.copy(), expression=_column(alias, f"_sw_v{index}")) for index, value in enumerate(values)
        ]
        if not negated:
            self._join("SEMI", inner, alias, [*pairs, *on])
        elif tied or len(pairs) > 1:
            equal = exp.and_(*pairs, copy=False)
            unknown = exp.Coalesce(this=equal, expressions=[exp.true()])
            self._join("ANTI", inner, alias, [unknown, *on])
        else:
            self._not_in(values[0], inner, alias, pairs[0])

    def _not_in(self, value: exp.Expr, inner: exp.Select, alias: str, equal: exp.Expr) -> None:
        """x NOT IN q: no value is x; no value is NULL; and x is not NULL unless q is empty. Three joins, none of them
        a comparison of all with all."""
        self._join("ANTI", inner, alias, [equal])
        missing = exp.select("1 AS _sw_c").from_(inner.copy().subquery("_sw_in")).where("_sw_in._sw_v0 IS NULL")
        self._join("ANTI", missing, self._alias(), [exp.true()])
        count = exp.select("count(*) AS _sw_count").from_(inner.copy().subquery("_sw_in"))
        some = exp.select("1 AS _sw_c").from_(count.subquery("_sw_some")).where("_sw_some._sw_count > 0")
        self._join("ANTI", some, self._alias(), [exp.Is(this=value.copy(), expression=exp.null())])

    # -- values -------------------------------------------------------------------------------------------------------

    def _scalars(self, node: exp.Expr) -> exp.Expr:
        """An expression with each subquery in it replaced by a column of a join."""
        if isinstance(node, exp.Subquery):
            return self._scalar(_query(node))
        if isinstance(node, exp.Exists):
            return self._scalars(self._counted(node))
        if isinstance(node, exp.Query | exp.Exists | exp.Any | exp.All) or (
            isinstance(node, exp.In) and node.args.get("query")
        ):
            if isinstance(node, exp.In | exp.Exists | exp.Query) or has_subquery(node):
                raise Unsuited(f"{node.key.upper()} of a subquery inside an expression has no rule")
            return node
        for name, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(name, self._scalars(value))
            elif isinstance(value, list):
                node.set(name, [self._scalars(each) if isinstance(each, exp.Expr) else each for each in value])
        return node

    def _scalar(self, query: exp.Select) -> exp.Expr:
        if len(query.expressions) != 1:
            raise Unsuited("a subquery with several columns is no value")
        item = _unaliased(query.expressions[0])
        if query.args.get("group") or query.args.get("having") or not has_aggregate(item):
            raise Unsuited("a subquery that is no aggregate over all its rows has no rule as a value")
        tied, inner = self._untied(query)
        alias = self._alias()
        inner.set("expressions", [exp.alias_(item.copy(), "_sw_v")])
        if not tied:
            self._join("CROSS", inner, alias, [])
            return _column(alias, "_sw_v")
        keys: list[tuple[exp.Expr, exp.Expr]] = []
        local = self._names(query)
        for each in tied:
            if not isinstance(each, exp.EQ):
                raise Unsuited("an aggregate tied to the row outside by other than = has no rule")
            sides = (each.this, each.expression)
            outside = [not _speaks_of(side, local) for side in sides]
            if sorted(outside) != [False, True]:
                raise Unsuited("an aggregate tied to the row outside in both sides of = has no rule")
            keys.append((sides[outside.index(False)], sides[outside.index(True)]))
        names = [f"_sw_k{index}" for index in range(len(keys))]
        shown = [exp.alias_(key.copy(), name) for (key, _), name in zip(keys, names, strict=True)]
        inner.set("expressions", [*shown, *inner.expressions])
        inner.set("group", exp.Group(expressions=[key.copy() for key, _ in keys]))
        on: list[exp.Expr] = [
            exp.EQ(this=outer.copy(), expression=_column(alias, name))
            for (_, outer), name in zip(keys, names, strict=True)
        ]
        self._join("LEFT", inner, alias, on)
        if item.find(exp.Count, exp.CountIf):
            if not isinstance(item, exp.Count | exp.CountIf):
                raise Unsuited("an expression of a count that depends on the row outside has no rule")
            return exp.Coalesce(this=_column(alias, "_sw_v"), expressions=[exp.Literal.number(0)])
        return _column(alias, "_sw_v")

    # -- what ties a subquery to the row outside ----------------------------------------------------------------------

    def _untied(self, query: exp.Select) -> tuple[list[exp.Expr], exp.Select]:
        """The conditions that speak of the row outside, and the query without them."""
        local = self._names(query)
        where = query.args.get("where")
        tied: list[exp.Expr] = []
        kept: list[exp.Expr] = []
        for each in conjuncts(where.this) if where else ():
            speaks = [column for column in self._free(each) if not _is_of(column, local)]
            (tied if speaks else kept).append(each)
        inner = query.copy()
        inner.set("where", exp.Where(this=exp.and_(*(each.copy() for each in kept), copy=False)) if kept else None)
        if any(not _is_of(column, local) for column in self._free(inner, skip_where=True)):
            raise Unsuited("a subquery that depends on the row outside elsewhere than in its WHERE has no rule")
        if tied and (query.args.get("limit") or any(item.find(exp.Window) for item in query.expressions)):
            raise Unsuited("LIMIT or OVER in a subquery that depends on the row outside has no rule")
        if any(has_subquery(each) for each in tied):
            raise Unsuited("a subquery tied to a row two levels outside has no rule")
        return [each.copy() for each in tied], inner

    def _free(self, node: exp.Expr, *, skip_where: bool = False) -> Iterator[exp.Column]:
        """The columns in an expression or a query, but those that a query inside it has of its own."""
        for child in node.iter_expressions():
            if skip_where and isinstance(child, exp.Where):
                continue
            yield from self._free_of(child)

    def _free_of(self, node: exp.Expr) -> Iterator[exp.Column]:
        if isinstance(node, exp.Column):
            if not isinstance(node.this, exp.Star):
                yield node
        elif isinstance(node, exp.Select):
            local = self._names(node)
            aliases = {item.alias.lower() for item in node.expressions if isinstance(item, exp.Alias)}
            for column in self._free(node):
                if not _is_of(column, local) and not (not column.table and column.name.lower() in aliases):
                    yield column
        else:
            yield from self._free(node)

    def _exposed(
        self, tied: list[exp.Expr], query: exp.Select, alias: str
    ) -> tuple[list[exp.Expr], list[tuple[exp.Expr, str]]]:
        """The conditions as a join's: the columns of the subquery under names of their own, which it has to show."""
        local = self._names(query)
        shown: dict[str, tuple[exp.Expr, str]] = {}

        def look(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and _is_of(node, local):
                _, name = shown.setdefault(sql_of(node), (node.copy(), f"_sw_c{len(shown)}"))
                return _column(alias, name)
            return node

        return [each.transform(look) for each in tied], list(shown.values())

    def _alias(self) -> str:
        self._number += 1
        return f"{ALIAS}{self._number}"

    def _join(self, kind: str, inner: exp.Select, alias: str, on: list[exp.Expr]) -> None:
        side, how = {"SEMI": ("LEFT", "SEMI"), "ANTI": ("LEFT", "ANTI"), "LEFT": ("LEFT", ""), "CROSS": ("", "CROSS")}[
            kind
        ]
        condition = exp.and_(*(exp.paren(each) for each in on), copy=False) if on else None
        if condition is None and kind != "CROSS":
            condition = exp.true()
        self._joins.append(exp.Join(this=inner.subquery(alias), side=side or None, kind=how or None, on=condition))


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that all have to hold."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this) if isinstance(node.this, exp.And | exp.Paren) else [node]
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [node]


def _query(node: exp.Expr) -> exp.Select:
    """A SELECT, copied out of its parentheses."""
    while isinstance(node, exp.Subquery):
        node = node.this
    if not isinstance(node, exp.Select):
        raise Unsuited(f"{node.key.upper()} in an expression has no rule")
    if node.args.get("offset") or node.args.get("qualify"):
        raise Unsuited("OFFSET and QUALIFY in a subquery of an expression have no rule")
    return node.copy()


def _is_lateral(join: exp.Join) -> bool:
    return isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Subquery)


def _is_grouped(query: exp.Select) -> bool:
    return bool(query.args.get("group") or query.args.get("having") or any(map(has_aggregate, query.expressions)))


def _is_of(column: exp.Column, sources: dict[str, tuple[str, ...]]) -> bool:
    """Whether a column is one of these sources'."""
    if column.table:
        return column.table.lower() in sources
    return any(column.name.lower() == name.lower() for names in sources.values() for name in names)


def _speaks_of(node: exp.Expr, sources: dict[str, tuple[str, ...]]) -> bool:
    return any(_is_of(column, sources) for column in node.find_all(exp.Column))


def _column(table: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))


def _unaliased(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item

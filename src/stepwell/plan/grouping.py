"""Grouping: aggregates and keys taken out of the expressions of a GROUP BY, and names left in their places."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from stepwell.plan.blocks import Aggregate


class Unsuited(Exception):
    """A part of a query that no rule but the last one can maintain; the message says which."""


class Grouping:
    """Takes aggregates and keys out of expressions, and leaves `_sw_r0` and `_sw_g0` in their places."""

    def __init__(self, keys: list[exp.Expr], time: exp.Column | None = None) -> None:
        """`time` is the event time of the grouped rows, by which FIRST_VALUE and LAST_VALUE go."""
        self._keys = keys
        self._time = time
        self.aggregates: list[Aggregate] = []
        self.arguments: list[str] = []

    def replaced(self, node: exp.Expr) -> exp.Expr:
        for index, key in enumerate(self._keys):
            if node == key:
                return exp.column(f"_sw_g{index}")
        if is_aggregate(node):
            return exp.column(f"_sw_r{self._aggregate(node)}")
        if isinstance(node, exp.Anonymous) and list(node.find_all(exp.Column)) and not self._is_over_keys(node):
            return exp.column(f"_sw_r{self._aggregate(node)}")
        if isinstance(node, exp.Column):
            raise Unsuited(f"{sql_of(node)} is neither grouped nor aggregated as far as can be seen")
        return with_parts(node, self.replaced)

    def _is_over_keys(self, node: exp.Expr) -> bool:
        """Whether a function that sqlglot does not know is one of the keys, so that it can be no aggregate."""
        names = {sql_of(key) for key in self._keys}
        return all(sql_of(column) in names for column in node.find_all(exp.Column))

    def _aggregate(self, node: exp.Expr) -> int:
        made = self._make(node)
        if made in self.aggregates:
            return self.aggregates.index(made)
        self.aggregates.append(made)
        return len(self.aggregates) - 1

    def _make(self, node: exp.Expr) -> Aggregate:
        condition = None
        if isinstance(node, exp.Filter):
            condition = node.expression.this
            node = node.this
        call = node.this if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) else node
        function = call.name.lower() if isinstance(call, exp.Anonymous) else _function_name(call)
        arguments: list[exp.Expr] = []
        for value in call.expressions if isinstance(call, exp.Anonymous) else call.args.values():
            arguments.extend(value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else [])
        plain = not isinstance(node, exp.IgnoreNulls) and not any(
            isinstance(each, exp.Distinct | exp.Order | exp.WithinGroup) for each in arguments
        )
        if isinstance(call, exp.Count) and len(arguments) == 1 and isinstance(arguments[0], exp.Star | exp.Literal):
            if condition is None:
                return Aggregate("count", "count(1)")
            held = self._argument(exp.Case(ifs=[exp.If(this=condition, true=exp.Literal.number(1))]))
            return Aggregate("count", f"count({held})", (held,))
        names: dict[str, str] = {}

        def taken(value: exp.Expr) -> exp.Expr:
            """An argument, replaced by a column that holds it; the literals of a call stay where they are."""
            if isinstance(value, exp.Distinct):
                return exp.Distinct(expressions=[taken(each) for each in value.expressions])
            if isinstance(value, exp.Order | exp.Ordered | exp.WithinGroup):
                return value.transform(lambda each: taken(each) if isinstance(each, exp.Column) else each)
            if not list(value.find_all(exp.Column)):
                return value
            held = exp.Case(ifs=[exp.If(this=condition, true=value)]) if condition is not None else value
            name = self._argument(held)
            names.setdefault(name, name)
            return exp.column(name)

        again = call.copy()
        for name, value in call.args.items():
            if isinstance(value, list):
                again.set(name, [taken(each) if isinstance(each, exp.Expr) else each for each in value])
            elif isinstance(value, exp.Expr):
                again.set(name, taken(value))
        if condition is not None and (len(names) != 1 or function in ("first", "last", "any_value", "collect_list")):
            raise Unsuited(f"FILTER on {function} has no rule")
        direct = sql_of(again)
        if isinstance(call, exp.FirstValue | exp.LastValue) and plain and len(names) == 1 and self._time is not None:
            return Aggregate(function, direct, (*names, self._argument(self._time)))
        if isinstance(node, exp.IgnoreNulls):
            direct = f"{direct} IGNORE NULLS"
        plain = plain and len(names) == len(arguments)
        return Aggregate(function, direct, tuple(names), plain=plain)

    def _argument(self, value: exp.Expr) -> str:
        text = sql_of(value)
        if text not in self.arguments:
            self.arguments.append(text)
        return f"_sw_x{self.arguments.index(text)}"


def _function_name(call: exp.Expr) -> str:
    return call.sql_name().lower() if isinstance(call, exp.Func) else call.key.lower()


def has_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Window | exp.Query):
        return False
    if is_aggregate(node):
        return True
    return any(has_aggregate(each) for each in node.iter_expressions())


def is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        return is_aggregate(node.this)
    if isinstance(node, exp.AggFunc):
        return True
    return isinstance(node, exp.Anonymous) and node.name.lower() in _UNKNOWN_AGGREGATES


_UNKNOWN_AGGREGATES = {"every", "some", "any", "bool_and", "bool_or", "mode", "kurtosis", "skewness", "regr_slope"}


def with_parts(node: exp.Expr, look: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A copy of a node in which each part is what `look` makes of it."""
    new = node.copy()
    for name, value in node.args.items():
        if isinstance(value, exp.Expr):
            new.set(name, look(value))
        elif isinstance(value, list):
            new.set(name, [look(each) if isinstance(each, exp.Expr) else each for each in value])
    return new


def sql_of(node: exp.Expr) -> str:
    return node.sql(dialect="spark", comments=False)

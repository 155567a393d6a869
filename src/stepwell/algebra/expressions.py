"""Expressions: what a column is made of, as Spark has resolved it. Frozen, typed, nothing left to look up.

A `Attribute` is known by its number. Numbers are Spark's own where a plan was read, and new ones where a rule made the
column; two columns of one scope never share one. Types are written as Spark's SQL writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepwell.algebra.nodes import Node


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of what stands below."""

    id: int
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant, in the words of Spark's SQL."""

    text: str
    type: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or a function, by the name of Spark's class for it; `detail` holds what is not an argument."""

    function: str
    arguments: tuple[Expression, ...]
    type: str
    nullable: bool = True
    detail: tuple[tuple[str, Any], ...] = ()

    def get(self, name: str) -> Any:
        return next((value for key, value in self.detail if key == name), None)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate over the rows of a group, or of a window."""

    function: str
    arguments: tuple[Expression, ...]
    type: str
    nullable: bool = True
    distinct: bool = False
    filter: Expression | None = None
    detail: tuple[tuple[str, Any], ...] = ()
    order: tuple[Order, ...] = ()
    """The order in which it takes the rows, if it says one."""

    def get(self, name: str) -> Any:
        return next((value for key, value in self.detail if key == name), None)


@dataclass(frozen=True, slots=True)
class Order:
    """One key of an order."""

    expression: Expression
    ascending: bool = True
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows around a row a window function sees: `kind` is ROWS or RANGE, the ends are SQL or expressions."""

    kind: str
    lower: str | Expression
    upper: str | Expression


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A function over the rows of its partition, in their order, within a frame."""

    function: Call | AggregateCall
    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: Frame | None
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Named:
    """A column that is known by a name, where the rows are not those of a tree: a key or a result of a group."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Variable:
    """An argument of a lambda."""

    id: int
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query as a value that depends on no row around it: its one value (`scalar`), or whether it has rows (`exists`).

    `most` is the most rows that it can have, if that is known.
    """

    kind: str
    plan: Node
    type: str
    nullable: bool = True
    most: int | None = None


Expression = Attribute | Literal | Call | AggregateCall | WindowCall | Named | Variable | Subquery

TRUE = Literal("true", "BOOLEAN")
FALSE = Literal("false", "BOOLEAN")


def children_of(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that one is made of."""
    match expression:
        case Call():
            return expression.arguments
        case AggregateCall():
            filters = [expression.filter] if expression.filter is not None else []
            return (*expression.arguments, *filters, *(each.expression for each in expression.order))
        case WindowCall():
            orders = tuple(each.expression for each in expression.order)
            return (expression.function, *expression.partition, *orders)
        case _:
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and all that it is made of."""
    yield expression
    for each in children_of(expression):
        yield from walk(each)


def columns_in(expression: Expression) -> frozenset[int]:
    """The columns that an expression reads."""
    return frozenset(each.id for each in walk(expression) if isinstance(each, Attribute))


def transform(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with every part replaced for which `change` gives another, from the outside in."""
    changed = change(expression)
    if changed is not None:
        return changed
    match expression:
        case Call():
            return replace(expression, arguments=tuple(transform(each, change) for each in expression.arguments))
        case AggregateCall():
            return replace(
                expression,
                arguments=tuple(transform(each, change) for each in expression.arguments),
                filter=transform(expression.filter, change) if expression.filter is not None else None,
                order=tuple(replace(each, expression=transform(each.expression, change)) for each in expression.order),
            )
        case WindowCall():
            function = transform(expression.function, change)
            assert isinstance(function, Call | AggregateCall)
            return replace(
                expression,
                function=function,
                partition=tuple(transform(each, change) for each in expression.partition),
                order=tuple(replace(each, expression=transform(each.expression, change)) for each in expression.order),
            )
        case _:
            return expression


def substitute(expression: Expression, values: dict[int, Expression]) -> Expression:
    """The expression with columns replaced by what they stand for."""
    return transform(expression, lambda each: values.get(each.id) if isinstance(each, Attribute) else None)


def size_of(expression: Expression) -> int:
    """How many parts an expression has."""
    return 1 + sum(size_of(each) for each in children_of(expression))


def and_all(conditions: list[Expression]) -> Expression:
    """That all of these hold."""
    if not conditions:
        return TRUE
    found = conditions[0]
    for each in conditions[1:]:
        found = Call("And", (found, each), "BOOLEAN")
    return found


def conjuncts(condition: Expression | None) -> list[Expression]:
    """The conditions that all have to hold for this one to hold."""
    if condition is None:
        return []
    if isinstance(condition, Call) and condition.function == "And":
        return [part for each in condition.arguments for part in conjuncts(each)]
    return [condition]


def equal(left: Expression, right: Expression) -> Call:
    """That two values are the same, NULLs included."""
    return Call("EqualNullSafe", (left, right), "BOOLEAN", nullable=False)


ROW = Call("RowIdentity", (), "BIGINT", nullable=False)
"""The identity of the row at hand, wherever it comes from: what makes an order total."""


def identity(*parts: Expression) -> Call:
    """The identity of a row that is made of several."""
    return Call("Identity", parts, "BIGINT", nullable=False)


def fingerprint_of(values: Sequence[Expression], *ids: Expression) -> Call:
    """A number for what these values are, and for the identities `ids`, none of which is NULL."""
    return Call("Fingerprint", (*ids, *values), "BIGINT", nullable=False, detail=(("ids", len(ids)),))


def checked(value: Expression, wrong: Expression, message: str) -> Call:
    """A value, or an error where it is wrong."""
    return Call("Checked", (value, wrong), value.type, value.nullable, (("message", message),))


def template(text: str, values: Mapping[str, Expression], type_: str) -> Call:
    """SQL with `{name}` where values stand: what a lowering writes that has no node of its own."""
    return Call("Template", tuple(values.values()), type_, detail=(("text", text), ("names", tuple(values))))


def cast(value: Expression, type_: str) -> Expression:
    """A value in another type."""
    return value if value.type == type_ else Call("Cast", (value,), type_)


def negated(condition: Expression) -> Call:
    return Call("Not", (condition,), "BOOLEAN")


def either(*conditions: Expression) -> Expression:
    """That one of these holds."""
    found = conditions[0]
    for each in conditions[1:]:
        found = Call("Or", (found, each), "BOOLEAN")
    return found


def if_(condition: Expression, then: Expression, otherwise: Expression) -> Call:
    return Call("If", (condition, then, otherwise), then.type)


def compare(function: str, left: Expression, right: Expression) -> Call:
    """Two values by one of Spark's operators: EqualTo, LessThan, GreaterThan."""
    return Call(function, (left, right), "BOOLEAN")


def is_true(condition: Expression) -> Call:
    """That a condition holds: NULL does not."""
    return Call("Coalesce", (condition, FALSE), "BOOLEAN", nullable=False, detail=(("name", "coalesce"),))


def null(type_: str) -> Literal:
    return Literal("NULL" if type_ == "VOID" else f"CAST(NULL AS {type_})", type_, nullable=True)


def number(value: int) -> Literal:
    return Literal(f"{value}L", "BIGINT")

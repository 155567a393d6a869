"""Aggregates: one value of the rows of a group, or of a frame, in the order in which they are given."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from oracle.counting import counted
from oracle.expressions import applied, holds, value_of
from oracle.states import merged, partial
from oracle.values import Row, Value, key
from stepwell.algebra.expressions import AggregateCall, Attribute, Call, Expression, Literal, transform


def aggregated(call: AggregateCall, rows: Sequence[Row]) -> Value:
    """The value of an aggregate over rows."""
    if call.function == "PartialState":
        read = [[value_of(each, row) for each in call.arguments] for row in rows]
        return partial(call.get("of"), read, call.get("rows"))
    if call.function == "CombinedState":
        states = [value_of(call.arguments[0], row) for row in rows]
        return reduce(merged, states)  # type: ignore[arg-type]  # they are states, or nothing
    if call.function == "OrderedList":
        pairs = sorted(
            ([value_of(each, row) for each in call.arguments] for row in rows), key=lambda each: key(each[1])
        )
        return tuple(value for value, _ in pairs if value is not None)
    cells = [[value_of(each, row) for each in call.arguments] for row in rows if holds(call.filter, row)]
    if call.distinct:
        cells = list({tuple(map(key, each)): each for each in reversed(cells)}.values())[::-1]
    if call.function in ("Count", "Sum", "Average"):
        return counted(call.function, cells)
    firsts = [each[0] for each in cells]
    known = [each for each in firsts if each is not None]
    match call.function:
        case "Min":
            return min(known, key=key, default=None)
        case "Max":
            return max(known, key=key, default=None)
        case "First" | "AnyValue":
            return next(iter(known if call.get("ignoreNulls") else firsts), None)
        case "Last":
            return next(reversed(known if call.get("ignoreNulls") else firsts), None)
        case "CollectList":
            return tuple(known)
        case "CollectSet":
            return tuple(sorted({key(each): each for each in known}.values(), key=key))
        case "MinBy" | "MaxBy":
            by = [each for each in cells if each[1] is not None]
            best = min if call.function == "MinBy" else max
            return best(by, key=lambda each: key(each[1]))[0] if by else None
        case _:
            raise NotImplementedError(call.function)


def of_group(expression: Expression, keys: dict[Expression, Value], rows: Sequence[Row]) -> Value:
    """The value of an expression that is made of keys and aggregates."""
    if plain(expression) in keys:
        return keys[plain(expression)]
    match expression:
        case AggregateCall():
            return aggregated(expression, rows)
        case Call():
            return applied(expression, [of_group(each, keys, rows) for each in expression.arguments])
        case Literal():
            return value_of(expression, {})
        case _:
            raise AssertionError(f"{expression} is neither a key nor an aggregate")


def plain(expression: Expression) -> Expression:
    """The expression without what it says of NULLs, which an outer join below changes."""
    return transform(expression, lambda each: Attribute(each.id, each.type) if isinstance(each, Attribute) else None)

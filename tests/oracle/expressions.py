"""Expressions: the value of one for a row, with three-valued logic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oracle.states import RuleError, finished, lost_best, merged, replaced_best
from oracle.values import Id, Row, StateValue, Struct, Value, compared, exact, key
from stepwell.algebra.expressions import ROW, Attribute, Call, Expression, Literal

PLACE = -1
"""Where a row keeps its place among the rows of its node, which is its identity if no rule has given it another."""


def value_of(expression: Expression, row: Row) -> Value:
    """The value of an expression that has no aggregates and no windows."""
    match expression:
        case Attribute():
            return row[expression.id]
        case Literal():
            return literal(expression)
        case Call() if expression == ROW:
            return row[PLACE]
        case Call():
            return applied(expression, [value_of(each, row) for each in expression.arguments])
        case _:
            raise NotImplementedError(type(expression).__name__)


def holds(condition: Expression | None, row: Row) -> bool:
    """Whether a condition is true: neither false nor NULL."""
    return condition is None or value_of(condition, row) is True


def literal(constant: Literal) -> Value:
    text = constant.text
    if text.startswith("CAST("):
        text = text.removeprefix("CAST(").rpartition(" AS ")[0]
    if text == "NULL":
        return None
    match constant.type:
        case "BOOLEAN":
            return {"true": True, "false": False}[text]
        case "INT" | "BIGINT":
            return int(text.removesuffix("L"))
        case "DOUBLE":
            return float(text.strip("'").removesuffix("D"))
        case "STRING":
            return text[1:-1]
        case _:
            raise NotImplementedError(constant.type)


def written(value: Value, type_: str) -> str:
    """A value in the words of SQL."""
    match value:
        case None:
            return f"CAST(NULL AS {type_})"
        case bool():
            return str(value).lower()
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case str():
            return f"'{value}'"
        case tuple():
            return f"CAST(array({', '.join(written(each, 'INT') for each in value)}) AS {type_})"
        case _:
            return str(value)


def applied(call: Call, values: Sequence[Value]) -> Value:
    """An operator or a function of values that are known."""
    match call.function, list(values):
        case "And", [left, right]:
            return False if left is False or right is False else None if left is None or right is None else True
        case "Or", [left, right]:
            return True if left is True or right is True else None if left is None or right is None else False
        case "Not", [value]:
            return None if value is None else not value
        case "IsNull", [value]:
            return value is None
        case "IsNotNull", [value]:
            return value is not None
        case "EqualNullSafe", [left, right]:
            return key(left) == key(right)
        case "EqualTo" | "LessThan" | "LessThanOrEqual" | "GreaterThan" | "GreaterThanOrEqual", [left, right]:
            order = compared(left, right)
            return None if order is None else order in _HOLDS[call.function]
        case "In", [value, *list_]:
            found = [compared(value, each) for each in list_]
            return True if 0 in found else None if None in found else False
        case "Coalesce", _:
            return next((each for each in values if each is not None), None)
        case "If", [condition, then, otherwise]:
            return then if condition is True else otherwise
        case "CaseWhen", _:
            pairs = zip(values[::2], values[1::2], strict=False)
            otherwise = values[-1] if len(values) % 2 else None
            return next((then for condition, then in pairs if condition is True), otherwise)
        case "Least" | "Greatest", _:
            known = [each for each in values if each is not None]
            return (min if call.function == "Least" else max)(known, key=key, default=None)
        case "CreateArray", _:
            return tuple(values)
        case "CreateNamedStruct", _:
            return Struct(tuple((str(name), each) for name, each in zip(values[::2], values[1::2], strict=True)))
        case "GetStructField", [Struct(fields)]:
            return dict(fields)[call.get("fieldName")]
        case "Identity", parts:
            return Id(tuple(parts))
        case "Fingerprint", parts:
            return Id(tuple(repr(exact(each)) for each in parts))
        case "Checked", [value, wrong]:
            if wrong is True:
                raise RuleError(call.get("message"))
            return value
        case "MergedState", [old, new]:
            return merged(_state(old), _state(new))
        case "FinishedState", [state]:
            return finished(_state(state)) if state is not None else _of_nothing(call)
        case "IsOddState", _:
            return False
        case "LostBest", [old, went]:
            return lost_best(_state(old), _state(went))
        case "ReplacedBest", [came, went]:
            return replaced_best(_state(came), _state(went))
        case _, known if None in known:
            return None  # all functions below
        case "GetStructField" | "MapEntries", _:
            raise NotImplementedError(call.function)
        case "SortArray", [tuple() as array, _]:
            return tuple(sorted(array, key=key))
        case "Sequence", [int(first), int(last)]:
            return tuple(range(first, last + 1))
        case "Add", [int() | float() as left, int() | float() as right]:
            return left + right
        case "Subtract", [int() | float() as left, int() | float() as right]:
            return left - right
        case "Multiply", [int() | float() as left, int() | float() as right]:
            return left * right
        case "Remainder", [int(left), int(right)]:
            return int(math.fmod(left, right))
        case "UnaryMinus", [int() | float() as value]:
            return -value
        case "Cast", [value] if call.type in ("INT", "BIGINT") and type(value) is int:
            return value
        case "Cast", [int(value)] if call.type == "DOUBLE":
            return float(value)
        case _:
            raise NotImplementedError(call.function)


def _state(value: Value) -> StateValue | None:
    assert value is None or isinstance(value, StateValue)
    return value


def _of_nothing(call: Call) -> Value:
    """What is finished where there is no state: nobody looks at it."""
    return None


_HOLDS = {
    "EqualTo": {0},
    "LessThan": {-1},
    "LessThanOrEqual": {-1, 0},
    "GreaterThan": {1},
    "GreaterThanOrEqual": {0, 1},
}

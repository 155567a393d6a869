"""Counting: aggregates that do not look at the order of their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from oracle.values import Value


def counted(function: str, cells: Sequence[Sequence[Value]]) -> Value:
    """The value of an aggregate that does not look at the order of its rows."""
    if function == "Count":
        return sum(None not in each for each in cells)
    known = [each[0] for each in cells if each[0] is not None]
    match function:
        case "Sum":
            return _total(known)
        case "Average":
            return _average(known)
        case _:
            raise NotImplementedError(function)


def _total(values: Sequence[Value]) -> Value:
    numbers = [each for each in values if isinstance(each, int | float)]
    assert len(numbers) == len(values), "only numbers have a sum"
    if not numbers:
        return None
    if any(isinstance(each, float) for each in numbers):
        return math.fsum(numbers) if all(map(math.isfinite, numbers)) else float(sum(numbers))
    return sum(numbers)


def _average(values: Sequence[Value]) -> Value:
    total = _total(values)
    if total is None:
        return None
    assert isinstance(total, int | float)
    return float(Fraction(total) / len(values)) if math.isfinite(total) else total

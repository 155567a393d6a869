"""States: what is kept of the rows of a group for an aggregate.

One that can be undone is the bag of what it has read; one that cannot is the best row that it has seen, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from oracle.counting import counted
from oracle.values import StateValue, Value, exact, key
from stepwell.algebra.aggregates import GroupResult, Kind, state_of
from stepwell.algebra.states import ALL, CAME

SMALLEST = frozenset({"Min", "MinBy", "First", "AnyValue"})


class RuleError(Exception):
    """What a program says is wrong."""


def partial(result: GroupResult, rows: Iterable[Sequence[Value]], side: str) -> StateValue | None:
    """The state of signed rows, each with its arguments, its sign, its identity, and a condition if it has one."""
    count = len(result.argument_types)
    found: list[tuple[tuple[Value, ...], int]] = []
    for row in rows:
        cells, (sign, id_, *condition) = tuple(row[:count]), row[count:]
        assert isinstance(sign, int)
        if condition and condition[0] is not True:
            continue
        if side != ALL and (sign > 0) != (side == CAME):
            continue
        if state_of(result).kind == Kind.INVERTIBLE:
            found.append((cells, sign))
        elif (best := _candidate(result, cells, id_)) is not None:
            if side == ALL and sign < 0:
                raise RuleError("a row is taken out of what cannot be undone")
            found.append((best, 1))
    if state_of(result).kind == Kind.INVERTIBLE:
        return _bag(result, found)
    return _best(result, [best for best, _ in found])


def _candidate(result: GroupResult, cells: tuple[Value, ...], id_: Value) -> tuple[Value, ...] | None:
    """A row as it competes: what it is ordered by, and last what it stands for."""
    match result.function, cells:
        case "Min" | "Max", (value,):
            return None if value is None else (value, value)
        case "MinBy" | "MaxBy", (value, by):
            return None if by is None else (by, id_, value)
        case (("First" | "AnyValue" | "Last"), (value,)):
            return (id_, value)
        case (("First" | "Last"), (value, time)):
            return ((time is None) == (result.function == "First"), time, id_, value)
        case _:
            raise NotImplementedError(result.function)


def _best(result: GroupResult, rows: list[tuple[Value, ...]]) -> StateValue | None:
    if not rows:
        return None
    choose = min if result.function in SMALLEST else max
    return StateValue(result, ((choose(rows, key=_order), 1),))


def _order(row: tuple[Value, ...]) -> Any:
    return tuple(map(key, row[:-1]))


def _bag(result: GroupResult, rows: Iterable[tuple[tuple[Value, ...], int]]) -> StateValue:
    counts: dict[Any, tuple[tuple[Value, ...], int]] = {}
    for cells, number in rows:
        known = tuple(map(exact, cells))
        counts[known] = cells, counts.get(known, (cells, 0))[1] + number
    return StateValue(
        result, tuple(each for _, each in sorted(counts.items(), key=lambda each: repr(each[0])) if each[1])
    )


def merged(old: StateValue | None, new: StateValue | None) -> StateValue | None:
    if old is None or new is None:
        return old or new
    if state_of(old.result).kind == Kind.INVERTIBLE:
        return _bag(old.result, (*old.items, *new.items))
    return _best(old.result, [cells for cells, _ in (*old.items, *new.items)])


def finished(state: StateValue | None) -> Value:
    """The result of an aggregate."""
    if state is None:
        return None
    if state_of(state.result).kind != Kind.INVERTIBLE:
        return state.items[0][0][-1]
    if any(count < 0 for _, count in state.items):
        raise RuleError("a state has a row less than never")
    return counted(state.result.function, [cells for cells, count in state.items for _ in range(count)])


def is_worse(one: StateValue | None, other: StateValue | None) -> bool:
    """Whether the one does not matter beside the other."""
    if one is None or other is None:
        return False
    mine, theirs = _order(one.items[0][0]), _order(other.items[0][0])
    return bool(mine > theirs if one.result.function in SMALLEST else mine < theirs)


def lost_best(old: StateValue | None, went: StateValue | None) -> bool:
    return went is not None and not is_worse(went, old)


def replaced_best(came: StateValue | None, went: StateValue | None) -> bool:
    if came is None or went is None:
        return False
    is_zero = isinstance(went.items[0][0][0], float) and went.items[0][0][0] == 0
    return not is_worse(came, went) and not is_zero

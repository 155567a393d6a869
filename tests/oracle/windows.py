"""Windows: what a function says of a row among the rows of its partition."""

from __future__ import annotations

from collections.abc import Sequence

from oracle.aggregates import aggregated
from oracle.expressions import literal, value_of
from oracle.values import Row, Value, compared, key
from stepwell.algebra.expressions import (
    AggregateCall,
    Call,
    Expression,
    Frame,
    Literal,
    Order,
    WindowCall,
)


def in_order(rows: Sequence[Row], order: Sequence[Order]) -> list[Row]:
    """Rows in an order; those that are equal in it stay as they are."""
    found = list(rows)
    for each in reversed(order):
        null_is = each.nulls_first != each.ascending  # the side of NULLs, before the order is turned around

        def by(row: Row, each: Order = each, null_is: bool = null_is) -> tuple[bool, tuple[object, ...]]:
            value = value_of(each.expression, row)
            return (null_is if value is None else not null_is), key(value)

        found.sort(key=by, reverse=not each.ascending)
    return found


def windowed(call: WindowCall, rows: Sequence[Row]) -> list[Value]:
    """The value of a window function for each of the rows."""
    partitions: dict[tuple[object, ...], list[int]] = {}
    for index, row in enumerate(rows):
        partitions.setdefault(tuple(key(value_of(each, row)) for each in call.partition), []).append(index)
    found: list[Value] = [None] * len(rows)
    for members in partitions.values():
        inside = [{**rows[index], _WHERE: index} for index in members]
        ordered = in_order(inside, call.order)
        peers: Peers = [tuple(key(value_of(each.expression, row)) for each in call.order) for row in ordered]
        for at, row in enumerate(ordered):
            where = row[_WHERE]
            assert isinstance(where, int)
            found[where] = _of_row(call, ordered, peers, at)
    return found


_WHERE = -2

Peers = list[tuple[object, ...]]
"""The keys of the order, row by row: rows with the same ones are peers."""


def _of_row(call: WindowCall, rows: list[Row], peers: Peers, at: int) -> Value:
    function = call.function
    match function:
        case AggregateCall():
            return aggregated(function, [rows[each] for each in _framed(call, rows, peers, at)])
        case Call(function="RowNumber"):
            return at + 1
        case Call(function="Rank"):
            return peers.index(peers[at]) + 1
        case Call(function="DenseRank"):
            return len(set(peers[: at + 1]))
        case Call(function="Lag" | "Lead", arguments=(value, offset, default)):
            assert isinstance(offset, Literal)
            by = literal(offset)
            assert isinstance(by, int)
            there = at + by if function.function == "Lead" else at - by
            return value_of(value, rows[there]) if 0 <= there < len(rows) else value_of(default, rows[at])
        case _:
            raise NotImplementedError(function.function)


def _framed(call: WindowCall, rows: list[Row], peers: Peers, at: int) -> list[int]:
    """The places of the rows that a row's frame holds."""
    frame = call.frame
    if frame is None:
        upper = "CURRENT ROW" if call.order else "UNBOUNDED FOLLOWING"
        frame = Frame("RANGE", "UNBOUNDED PRECEDING", upper)
    return [
        each
        for each in range(len(rows))
        if _is_behind(frame, frame.lower, call, rows, peers, at, each, 1)
        and _is_behind(frame, frame.upper, call, rows, peers, at, each, -1)
    ]


def _is_behind(
    frame: Frame,
    end: str | Expression,
    call: WindowCall,
    rows: list[Row],
    peers: Peers,
    at: int,
    other: int,
    way: int,
) -> bool:
    """Whether the row `other` is not outside this end of the frame of the row `at`; `way` is -1 for the upper end."""
    match end:
        case "UNBOUNDED PRECEDING" | "UNBOUNDED FOLLOWING":
            return True
        case "CURRENT ROW":
            distance = 0
        case Literal():
            value = literal(end)
            assert isinstance(value, int)
            distance = value
        case _:
            raise NotImplementedError(str(end))
    if frame.kind == "ROWS":
        return (other - (at + distance)) * way >= 0
    if distance == 0 or value_of(call.order[0].expression, rows[at]) is None:
        return peers[other] == peers[at] or (other - at) * way > 0
    order = call.order[0]
    here, there = (value_of(order.expression, rows[each]) for each in (at, other))
    assert isinstance(here, int | float)
    if there is None:
        return (other - at) * way > 0  # NULLs stand together on one side, which is inside only if the end is unbounded
    place = compared(there, here + distance if order.ascending else here - distance)
    assert place is not None
    return place * (1 if order.ascending else -1) * way >= 0

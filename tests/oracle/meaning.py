"""Meaning: the rows of a tree, given the rows of its leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oracle.aggregates import of_group, plain
from oracle.expressions import PLACE, applied, holds, literal, value_of, written
from oracle.values import Row, Stored, Struct, Value, as_key, key
from oracle.windows import in_order, windowed
from stepwell.algebra.expressions import (
    FALSE,
    TRUE,
    Attribute,
    Call,
    Expression,
    Literal,
    Subquery,
    WindowCall,
    transform,
)
from stepwell.algebra.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Item,
    Join,
    JoinKind,
    Limit,
    Moment,
    Node,
    Project,
    Scan,
    SetOperation,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)

Leaves = Mapping[tuple[int, Moment] | str, Sequence[Stored]]
"""The rows of each relation at each moment; and of what is cut out of them, by its name."""


def meaning(node: Node, leaves: Leaves) -> list[Row]:
    """The rows of a tree, in an order that only ties look at. A row has exactly the columns of the node's output."""
    return [{each.id: row[each.id] for each in node.output} for row in _rows(node, leaves)]


def _rows(node: Node, leaves: Leaves) -> list[Row]:
    match _answered(node, leaves):
        case Scan() as node:
            return [_stored(node, each) for each in leaves[node.cut or (node.relation, node.moment)]]
        case Values(columns, rows):
            return [{c.id: literal(cell) for c, cell in zip(columns, row, strict=True)} for row in rows]
        case Project(items, child):
            return [_items(items, row) for row in _placed(child, leaves)]
        case Filter(condition, child):
            return [row for row in _placed(child, leaves) if holds(condition, row)]
        case Join() as node:
            return _joined(node, meaning(node.left, leaves), meaning(node.right, leaves))
        case Aggregate(keys, items, child):
            return [_group(keys, items, rows) for rows in _groups(keys, meaning(child, leaves))]
        case Unnest(array, element, place, outer, child):
            return [
                {**row, place.id: at, element.id: each}
                for row in meaning(child, leaves)
                for at, each in _elements(value_of(array, row), outer)
            ]
        case Generate(generator, outer, columns, child):
            return [
                {**row, **made}
                for row in meaning(child, leaves)
                for made in _generated(generator, value_of(generator.arguments[0], row), outer, columns)
            ]
        case Union(columns, children):
            return [row for child in children for row in _as(columns, child, leaves)]
        case SetOperation() as node:
            return _set_operation(node, _as(node.columns, node.left, leaves), _as(node.columns, node.right, leaves))
        case Distinct(child):
            return [_keyed(rows[0]) for rows in _groups(child.output, meaning(child, leaves))]
        case Sort(order, child):
            return in_order(_placed(child, leaves), order)
        case Limit(count, offset, child):
            return meaning(child, leaves)[offset:][:count]
        case Window(items, child):
            seen = _placed(child, leaves)
            made = [_windows(item.expression, seen) for item in items]
            numbers = [item.column.id for item in items]
            return [{**row, **dict(zip(numbers, cells, strict=True))} for row, *cells in zip(seen, *made, strict=True)]


def _answered(node: Node, leaves: Leaves) -> Node:
    """The node with every subquery in its expressions replaced by its value, which is the same for all rows."""

    def answer(each: Expression) -> Expression | None:
        if not isinstance(each, Subquery):
            return None
        rows = meaning(each.plan, leaves)
        if each.kind == "exists":
            return TRUE if rows else FALSE
        assert len(rows) <= 1, "more than one row as a value"
        (value,) = rows[0].values() if rows else (None,)
        return Literal(written(value, each.type), each.type)

    match node:
        case Project(items) | Aggregate(items=items):
            return replace(node, items=tuple(Item(item.column, transform(item.expression, answer)) for item in items))
        case Filter(condition):
            return replace(node, condition=transform(condition, answer))
        case Join(condition=condition) if condition is not None:
            return replace(node, condition=transform(condition, answer))
        case _:
            return node


def _stored(scan: Scan, stored: Stored) -> Row:
    row: Row = {each.id: stored.values[name] for each, name in zip(scan.columns, scan.names, strict=True)}
    if scan.identity is not None:
        row[scan.identity.id] = stored.id
    if scan.sign is not None:
        row[scan.sign.id] = stored.sign
    return row


def _placed(node: Node, leaves: Leaves) -> list[Row]:
    """The rows of a node, each with its place among them."""
    return [{**row, PLACE: place} for place, row in enumerate(meaning(node, leaves))]


def _items(items: tuple[Item, ...], row: Row) -> Row:
    return {item.column.id: value_of(item.expression, row) for item in items}


def _as(columns: tuple[Attribute, ...], child: Node, leaves: Leaves) -> list[Row]:
    """The rows of a child whose columns count by position."""
    pairs = list(zip(columns, child.output, strict=True))
    return [{ours.id: row[own.id] for ours, own in pairs} for row in meaning(child, leaves)]


# -- joins ------------------------------------------------------------------------------------------------------------


def _joined(join: Join, left: list[Row], right: list[Row]) -> list[Row]:
    ids = [{each.id for each in side.output} for side in (join.left, join.right)]
    assert ids[0].isdisjoint(ids[1]), "a column of both sides"
    if join.kind == JoinKind.RIGHT:
        left, right, ids = right, left, ids[::-1]
    partners = [[other for other in right if holds(join.condition, {**row, **other})] for row in left]
    met = [{**row, **other} for row, others in zip(left, partners, strict=True) for other in others]
    nothing: Row = dict.fromkeys(ids[1])
    match join.kind:
        case JoinKind.INNER | JoinKind.CROSS:
            return met
        case JoinKind.SEMI:
            return [row for row, others in zip(left, partners, strict=True) if others]
        case JoinKind.ANTI:
            return [row for row, others in zip(left, partners, strict=True) if not others]
        case JoinKind.MARK:
            assert join.mark is not None
            return [{**row, join.mark.id: bool(others)} for row, others in zip(left, partners, strict=True)]
        case JoinKind.LEFT | JoinKind.RIGHT | JoinKind.FULL:
            pairs = zip(left, partners, strict=True)
            kept = [{**row, **other} for row, others in pairs for other in others or [nothing]]
            if join.kind == JoinKind.FULL:
                seen = {id(other) for others in partners for other in others}
                kept += [{**dict.fromkeys(ids[0]), **other} for other in right if id(other) not in seen]
            return kept


# -- groups and sets --------------------------------------------------------------------------------------------------


def _groups(keys: tuple[Expression, ...], rows: list[Row]) -> list[list[Row]]:
    """Rows by equal keys; without keys one group, also of no rows."""
    groups: dict[tuple[object, ...], list[Row]] = {} if keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(key(value_of(each, row)) for each in keys), []).append(row)
    return list(groups.values())


def _group(keys: tuple[Expression, ...], items: tuple[Item, ...], rows: list[Row]) -> Row:
    values = {plain(each): as_key(value_of(each, rows[0])) for each in keys}
    return {item.column.id: of_group(item.expression, values, rows) for item in items}


def _keyed(row: Row) -> Row:
    return {number: as_key(value) for number, value in row.items()}


def _set_operation(node: SetOperation, left: list[Row], right: list[Row]) -> list[Row]:
    others = [tuple(map(key, row.values())) for row in right]
    found = []
    for rows in _groups(node.columns, left):
        here, there = len(rows), others.count(tuple(map(key, rows[0].values())))
        if not node.keep_all:
            here, there = 1, min(there, 1)
        found += [_keyed(rows[0])] * (min(here, there) if node.kind == "INTERSECT" else here - there)
    return found


# -- generators and windows -------------------------------------------------------------------------------------------


def _elements(array: Value, outer: bool) -> list[tuple[int | None, Value]]:
    assert array is None or isinstance(array, tuple)
    return list(enumerate(array or ())) or ([(None, None)] if outer else [])


def _generated(generator: Call, array: Value, outer: bool, columns: tuple[Attribute, ...]) -> list[Row]:
    found: list[Row] = []
    for place, element in _elements(array, outer):
        match generator.function:
            case "Explode":
                cells = [element]
            case "PosExplode":
                cells = [place, element]
            case "Inline":
                cells = [each for _, each in element.fields] if isinstance(element, Struct) else [None] * len(columns)
            case _:
                raise NotImplementedError(generator.function)
        found.append({column.id: cell for column, cell in zip(columns, cells, strict=True)})
    return found


def _windows(expression: Expression, rows: list[Row]) -> list[Value]:
    """The values of an expression that may hold window functions, row by row."""
    match expression:
        case WindowCall():
            return windowed(expression, rows)
        case Call() if expression.arguments:
            columns = [_windows(each, rows) for each in expression.arguments]
            return [applied(expression, cells) for cells in zip(*columns, strict=True)]
        case _:
            return [value_of(expression, row) for row in rows]

"""Lineage: which columns a column's values are made of. What only decides whether a row is there is no part of it."""

from __future__ import annotations

from collections.abc import Mapping

from stepwell.algebra.expressions import Attribute, Expression, Named, Subquery, walk
from stepwell.algebra.nodes import Aggregate, Join, JoinKind, Node, Project, Scan, Union, Unnest, Window, children_of
from stepwell.rules.blocks import LEAF, Block, GroupBlock, RowBlock, WholeBlock, WindowBlock

Origins = tuple[tuple[int, str], ...]
"""Columns of relations, each once."""


def origins(block: Block, name: str) -> list[tuple[int, str]]:
    """The columns of the relations a block reads that one of its outputs is made of, each once."""
    index = [each.lower() for each in block.names].index(name.lower())
    match block:
        case RowBlock(tree, columns):
            return list(lineage_of(tree).get(columns[index].id, ()))
        case GroupBlock():
            return list(_of_group(block, block.items[index]))
        case WindowBlock(rows, keys, top, columns):
            below = lineage_of(rows.tree)
            leaf = {
                each: below.get(own.id, ()) for each, own in zip(_leaf(top).columns, rows.columns[keys:], strict=True)
            }
            known = lineage_of(top, {column.id: found for column, found in leaf.items()})
            return list(known.get(columns[index].id, ()))
        case WholeBlock():
            return []


def lineage_of(node: Node, leaf: Mapping[int, Origins] | None = None) -> dict[int, Origins]:
    """What each column of a tree's output is made of."""
    below: dict[int, Origins] = {}
    if isinstance(node, Scan):
        if node.relation == LEAF and leaf is not None:
            return dict(leaf)
        return {each.id: ((node.relation, name),) for each, name in zip(node.columns, node.names, strict=True)}
    children = children_of(node)
    if isinstance(node, Join) and node.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK):
        children = children[:1]
    known = [lineage_of(child, leaf) for child in children]
    for each in known:
        below.update(each)
    match node:
        case Project(items) | Aggregate(_, items):
            return {item.column.id: _of(item.expression, below) for item in items}
        case Window(items):
            return {**below, **{item.column.id: _of(item.expression, below) for item in items}}
        case Unnest(array, element):
            return {**below, element.id: _of(array, below)}
        case Union(columns, branches):
            found: dict[int, Origins] = {}
            for index, column in enumerate(columns):
                parts = [known[n].get(branch.output[index].id, ()) for n, branch in enumerate(branches)]
                found[column.id] = tuple(dict.fromkeys(each for part in parts for each in part))
            return found
        case _:
            return below


def _of(expression: Expression, below: Mapping[int, Origins]) -> Origins:
    found: dict[tuple[int, str], None] = {}
    for each in walk(expression):
        if isinstance(each, Attribute):
            found.update(dict.fromkeys(below.get(each.id, ())))
        elif isinstance(each, Subquery):
            inner = lineage_of(each.plan)
            found.update(dict.fromkeys(origin for column in each.plan.output for origin in inner.get(column.id, ())))
    return tuple(found)


def _of_group(group: GroupBlock, item: Expression) -> Origins:
    below = lineage_of(group.rows.tree)
    columns = dict(zip(group.rows.names, group.rows.columns, strict=True))
    found: dict[tuple[int, str], None] = {}
    for each in walk(item):
        if not isinstance(each, Named):
            continue
        names = [each.name]
        if each.name.startswith("_sw_r"):
            result = group.results[int(each.name.removeprefix("_sw_r"))]
            names = list(result.arguments[:1] if result.function in ("First", "Last") else result.arguments)
        for name in (each for each in names if each in columns):
            found.update(dict.fromkeys(below.get(columns[name].id, ())))
    return tuple(found)


def _leaf(node: Node) -> Scan:
    while not isinstance(node, Scan):
        node = children_of(node)[0]
    return node

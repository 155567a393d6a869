"""Blocks: the tree that a block of a view stands for, so that the oracle can say what it means."""

from __future__ import annotations

from stepwell.algebra.expressions import Column, Expression, Name, transform
from stepwell.algebra.nodes import Aggregate, Filter, Fresh, Item, Node, Project, Scan, rebuilt
from stepwell.plan.blocks import LEAF, Block, GroupBlock, RowBlock, WindowBlock


def tree_of(block: Block) -> Project:
    """A tree whose output is that of a block, in the order of its names."""
    match block:
        case RowBlock(tree, columns):
            fresh = Fresh(tree)
            return Project(tuple(Item(fresh.like(each), each) for each in columns), tree)
        case GroupBlock():
            return _groups(block)
        case WindowBlock():
            return _windows(block)
        case _:
            raise AssertionError("a whole has no tree")


def _groups(block: GroupBlock) -> Project:
    rows = block.rows
    fresh = Fresh(rows.tree)
    named: dict[str, Expression] = dict(zip(rows.names, rows.columns, strict=True))

    def by_name(each: Expression) -> Expression | None:
        return named[each.name] if isinstance(each, Name) else None

    keys = [Item(fresh.like(each), each) for each in rows.columns[: block.keys]]
    results = [Item(fresh.column(each.result_type), transform(each.call, by_name)) for each in block.results]
    found: Node = Aggregate(rows.columns[: block.keys], (*keys, *results), rows.tree)
    named = {f"_sw_g{index}": item.column for index, item in enumerate(keys)}
    named |= {f"_sw_r{index}": item.column for index, item in enumerate(results)}
    if block.having is not None:
        found = Filter(transform(block.having, by_name), found)
    return Project(tuple(Item(fresh.column(each.type), transform(each, by_name)) for each in block.items), found)


def _windows(block: WindowBlock) -> Project:
    """The windows over the rows in the place of their leaf."""
    fresh = Fresh(block.top, block.rows.tree)
    columns: dict[str, Column] = dict(zip(block.rows.names, block.rows.columns, strict=True))

    def over(node: Node) -> Node:
        if not isinstance(node, Scan) or node.relation != LEAF:
            return node
        pairs = zip(node.columns, node.names, strict=True)
        return Project(tuple(Item(own, columns[name]) for own, name in pairs), block.rows.tree)

    return Project(tuple(Item(fresh.like(each), each) for each in block.columns), rebuilt(block.top, over))

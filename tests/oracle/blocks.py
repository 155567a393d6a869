"""Blocks: the tree that a block of a view stands for, so that the oracle can say what it means."""

from __future__ import annotations

from stepwell.algebra.expressions import Attribute, Expression, Named, transform
from stepwell.algebra.nodes import Aggregate, Filter, Fresh, Item, Moment, Node, Project, Scan, passed, rebuilt
from stepwell.rules.blocks import LEAF, Block, GroupBlock, RowBlock, WindowBlock
from stepwell.rules.identity import at


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
    found, columns, _ = groups_over(block)
    fresh = Fresh(found, block.rows.tree)
    return Project(tuple(Item(fresh.like(each), each) for each in columns), _over(found, block.rows))


def _windows(block: WindowBlock) -> Project:
    fresh = Fresh(block.top, block.rows.tree)
    return Project(tuple(Item(fresh.like(each), each) for each in block.columns), _over(block.top, block.rows))


def _over(top: Node, rows: RowBlock) -> Node:
    """What stands above the rows of a block, with these in the place of their leaf."""
    columns: dict[str, Attribute] = dict(zip(rows.names, rows.columns, strict=True))

    def over(node: Node) -> Node:
        if not isinstance(node, Scan) or node.relation != LEAF:
            return node
        pairs = zip(node.columns, node.names, strict=True)
        return Project(tuple(Item(own, columns[name]) for own, name in pairs), rows.tree)

    return rebuilt(top, over)


Top = tuple[Node, tuple[Attribute, ...], tuple[Attribute, ...]]
"""What a block makes of its rows: a tree over their leaf, its outputs in order, and what identifies its rows."""


def groups_over(block: GroupBlock) -> Top:
    """The groups of a leaf that has the rows of a block."""
    rows = block.rows
    fresh = Fresh(rows.tree)
    leaf = Scan(LEAF, tuple(fresh.like(each) for each in rows.columns), rows.names, Moment.AFTER)
    named: dict[str, Expression] = dict(zip(leaf.names, leaf.columns, strict=True))

    def by_name(each: Expression) -> Expression | None:
        return named[each.name] if isinstance(each, Named) else None

    keys = [Item(fresh.like(each), each) for each in leaf.columns[: block.keys]]
    results = [Item(fresh.column(each.result_type), transform(each.call, by_name)) for each in block.results]
    found: Node = Aggregate(leaf.columns[: block.keys], (*keys, *results), leaf)
    named = {f"_sw_g{index}": item.column for index, item in enumerate(keys)}
    named |= {f"_sw_r{index}": item.column for index, item in enumerate(results)}
    if block.having is not None:
        found = Filter(transform(block.having, by_name), found)
    items = [Item(fresh.column(each.type), transform(each, by_name)) for each in block.items]
    ids = tuple(item.column for item in keys)
    return Project((*items, *passed(ids)), found), tuple(item.column for item in items), ids


def windows_over(block: WindowBlock) -> Top:
    """The windows over a leaf that has the rows of a block."""
    found = at(block.top, Moment.AFTER, Fresh(block.top))
    return found.tree, block.columns, (found.id,)

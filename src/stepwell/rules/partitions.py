"""Partitions: window functions are computed anew over the partitions that a change has touched.

ΔV = W(rows.after ⋉ K) − (own ⋉ ids of rows.before ⋉ K)        K = the partitions of Δrows
"""

from __future__ import annotations

from stepwell.algebra.expressions import Attribute
from stepwell.algebra.nodes import Fresh, Item, Moment, Node, Project, Scan, rebuilt
from stepwell.model.relations import Column
from stepwell.rules.blocks import LEAF, WindowBlock
from stepwell.rules.identity import Identified, at
from stepwell.rules.programs import Occasion, Program, StoredRows, own_rows, touched_keys
from stepwell.rules.row_changes import delta_of
from stepwell.rules.touched_groups import meeting
from stepwell.rules.versions import among, difference, versioned


def touched_partitions(block: WindowBlock, occasion: Occasion) -> Program:
    """The change of a block of window functions that all have a partition in common."""
    fresh = occasion.fresh
    keys = touched_keys(block, delta_of(block.rows, occasion), occasion)
    new = windows(block, meeting(block, Moment.AFTER, keys, occasion), occasion.columns, fresh)
    had = meeting(block, Moment.BEFORE, keys, occasion)
    id_ = fresh.column("BIGINT", nullable=False)
    ids = Project((Item(id_, had.id),), had.tree)
    change = difference(new, among(own_rows(occasion.columns, fresh), ids, id_), fresh)
    return Program(change.tree, (change.output([each.name for each in occasion.columns]),))


def windows(block: WindowBlock, rows: Identified, columns: tuple[Column, ...], fresh: Fresh) -> StoredRows:
    """W(rows)."""
    return versioned(columns, block.columns, windows_over(block, rows, fresh), fresh)


def windows_over(block: WindowBlock, rows: Identified, fresh: Fresh) -> Identified:
    """The windows of a block over some of its rows."""
    found = at(block.top, Moment.AFTER, fresh)
    known: dict[str, Attribute] = dict(zip(block.rows.names, block.rows.columns, strict=True))

    def over(node: Node) -> Node:
        if not isinstance(node, Scan) or node.relation != LEAF:
            return node
        items = [Item(own, known[name]) for own, name in zip(node.columns, node.names, strict=True)]
        assert node.identity is not None
        return Project((*items, Item(node.identity, rows.id)), rows.tree)

    return Identified(rebuilt(found.tree, over), found.id)

"""Recomputing: a view as its query gives it, less what is stored of it.

    ΔV = V(parents.after) − own

and V as it stands where nothing is stored.
"""

from __future__ import annotations

from typing import assert_never

from stepwell.algebra.nodes import Moment, Scan
from stepwell.model.files import ROW_VERSION
from stepwell.rules.blocks import LEAF, Block, GroupBlock, RowBlock, WholeBlock, WindowBlock
from stepwell.rules.groups import computed
from stepwell.rules.partitions import windows
from stepwell.rules.programs import WHOLE, Occasion, Program, StoredRows, own_rows
from stepwell.rules.row_changes import rows_at
from stepwell.rules.versions import difference, signed, versioned


def recompute(block: Block, occasion: Occasion) -> Program:
    """The change of a view, whatever has changed."""
    made = difference(all_rows(block, occasion), own_rows(occasion.columns, occasion.fresh), occasion.fresh)
    return Program(made.tree, (made.output([each.name for each in occasion.columns]),))


def build(block: Block, occasion: Occasion, *, exact: bool = True) -> Program:
    """A view of which nothing is stored; one that is not `exact` fails where it meets a value that it cannot add."""
    made = signed(all_rows(block, occasion, exact=exact), 1, occasion.fresh)
    return Program(made.tree, (made.output([each.name for each in occasion.columns], fresh=True),))


def all_rows(block: Block, occasion: Occasion, *, exact: bool = True) -> StoredRows:
    """All rows of a view after the epoch, as its query gives them."""
    columns, fresh = occasion.columns, occasion.fresh
    match block:
        case WholeBlock():
            shown = tuple(fresh.column(str(each.type)) for each in columns)
            id_, version = (fresh.column("BIGINT", nullable=False) for _ in range(2))
            names = (*(each.name for each in columns), ROW_VERSION)
            return StoredRows(Scan(LEAF, (*shown, version), names, identity=id_, cut=WHOLE), shown, id_, version)
        case GroupBlock():
            return computed(block, rows_at(block.rows, Moment.AFTER, occasion), columns, fresh, exact=exact)
        case WindowBlock():
            return windows(block, rows_at(block.rows, Moment.AFTER, occasion), columns, fresh)
        case RowBlock():
            return versioned(columns, block.columns, rows_at(block, Moment.AFTER, occasion), fresh)
        case _:
            assert_never(block)

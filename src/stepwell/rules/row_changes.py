"""Rows: a view that filters, projects, unnests, joins and unites.

    ΔV = net(Δ(tree))

and as it stands, without adding up, where a change can only bring rows that never were there.
"""

from __future__ import annotations

from stepwell.algebra.nodes import Moment
from stepwell.rules.blocks import RowBlock
from stepwell.rules.deltas import Deltas, is_netted, only_adds
from stepwell.rules.identity import Identified, at
from stepwell.rules.programs import Occasion, Program
from stepwell.rules.versions import consolidated, netted, versioned


def row_changes(rows: RowBlock, occasion: Occasion) -> Program:
    """The change of a view that is just rows."""
    delta = delta_of(rows, occasion)
    made = versioned(occasion.columns, rows.columns, delta, occasion.fresh)
    fresh = occasion.brings and only_adds(rows.tree, occasion.changed)
    made = made if fresh else consolidated(made, occasion.fresh)
    return Program(made.tree, (made.output([each.name for each in occasion.columns], fresh=fresh),))


def delta_of(rows: RowBlock, occasion: Occasion) -> Identified:
    """What has come and gone of some rows, as far as it counts; a row may be there with both signs."""
    found = Deltas(occasion.changed, occasion.fresh, occasion.cutting).of(rows.tree)
    assert found is not None, "nothing that these rows read has changed"
    return found if occasion.late is None else occasion.late.kept(rows, found)


def net_delta_of(rows: RowBlock, occasion: Occasion) -> Identified:
    """What has come and gone of some rows, as far as it counts, each row once."""
    delta = delta_of(rows, occasion)
    if occasion.brings and is_netted(rows.tree, occasion.changed):
        return delta
    return netted(rows, delta, occasion.fresh)


def rows_at(rows: RowBlock, moment: Moment, occasion: Occasion) -> Identified:
    """The rows before an epoch or after it, as far as they count."""
    return counted(rows, at(rows.tree, moment, occasion.fresh), moment, occasion)


def counted(rows: RowBlock, there: Identified, moment: Moment, occasion: Occasion) -> Identified:
    """Those of some rows that count at a moment."""
    if occasion.late is None:
        return there
    return occasion.late.counted(rows, there, after=moment == Moment.AFTER, fresh=occasion.fresh)

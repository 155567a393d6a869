"""Reading: how much a change has to look at, beside computing everything anew.

A change that cannot be cut to what it meets reads its sources once a term, and a partner whose rows may change others
is read as it was and as it is. Then the way around a view is longer than the way through it, however small the change.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepwell.algebra.nodes import Fresh, Moment, Node, scans_of
from stepwell.model.limits import Limits
from stepwell.plan.cuts import Cuts, Look, Sizes
from stepwell.rules.blocks import Block, WholeBlock, rows_of
from stepwell.rules.deltas import Deltas


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes that a change reads, and a recomputation with what it is compared with."""

    change: int = 0
    everything: int = 0

    def is_more(self, limits: Limits) -> bool:
        return self.change > max(limits.reading_bytes, limits.reading_factor * self.everything)

    def __str__(self) -> str:
        return f"{self.change / 2**20:.0f} MB, all of it is {self.everything / 2**20:.0f} MB"


NOTHING = Reading()


def reading_of(block: Block, sizes: Sizes, stored: int, limits: Limits) -> Reading:
    """What a block would read of its inputs; `stored` is what is kept of it, which a recomputation is compared with."""
    if isinstance(block, WholeBlock) or sum(sizes.bytes.values()) <= limits.reading_bytes:
        return NOTHING
    tree = rows_of(block).tree
    everything = sum(sizes.bytes.get(scan.relation, 0) for scan in scans_of(tree))
    fresh = Fresh(tree)
    cuts = Cuts(sizes, fresh)
    delta = Deltas(frozenset(sizes.changes), fresh, cuts).of(tree)
    if delta is None:
        return NOTHING
    return Reading(_bytes(delta.tree, cuts, sizes), everything + 2 * stored)


def _bytes(tree: Node, cuts: Cuts, sizes: Sizes) -> int:
    """The bytes of each reading of a relation; one that is looked into is read once for all that ask the same."""
    read = [scan for scan in scans_of(tree) if scan.moment != Moment.DELTA and scan.cut is None]
    looked = {(look.relation, look.columns) for look in cuts.steps if isinstance(look, Look)}
    return sum(sizes.bytes.get(scan.relation, 0) for scan in read) + sum(sizes.bytes[each] for each, _ in looked)

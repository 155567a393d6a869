"""Reading: how much a change has to look at, beside computing everything anew.

A change that cannot be cut to what it meets reads its sources once a term, and a partner whose rows may change others
is read as it was and as it is. Then the way around a view is longer than the way through it, however small the change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stepwell.plan.blocks import Block, Group, Partitioned, Rows, Select, Source, UnionAll, Whole, inputs_of
from stepwell.plan.cuts import Sizes, changed_terms, reached, worthwhile
from stepwell.plan.render import Mode, Term

WORTHWHILE = 32 * 2**20
"""Bytes below which the choice is not worth a thought."""

MORE = 1.5
"""A change that reads this many times what there is reads too much; what it reads, it joins less of."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes that a change reads, and a recomputation with what it is compared with."""

    change: int = 0
    everything: int = 0

    @property
    def is_more(self) -> bool:
        return self.change > max(WORTHWHILE, MORE * self.everything)

    def __str__(self) -> str:
        return f"{self.change / 2**20:.0f} MB, all of it is {self.everything / 2**20:.0f} MB"


NOTHING = Reading()


def reading_of(block: Block, sizes: Sizes, stored: int) -> Reading:
    """What a block would read of its inputs; `stored` is what is kept of it, which a recomputation is compared with."""
    if isinstance(block, Whole):
        return NOTHING
    rows = block.rows if isinstance(block, Group | Partitioned) else block
    everything = sum(sizes.bytes[relation] for relation in inputs_of(rows))
    return Reading(sum(_change(rows, sizes)), everything + 2 * stored)


def _change(rows: Rows, sizes: Sizes) -> Iterator[int]:
    """The bytes of each reading of a relation in the change of some rows; one that is cut is read once for all."""
    cut: dict[tuple[int, tuple[str, ...]], int] = {}
    for select, term in changed_terms(rows, frozenset(sizes.changes)):
        cuts = {each.source: each for each in worthwhile(select, term, sizes)}
        for index, (source, state) in enumerate(zip(select.sources, term.states, strict=True)):
            reach = reached(select, index, cuts[index].columns) if index in cuts else None
            if reach is not None:
                cut[reach.relation, reach.columns] = sizes.bytes[reach.relation]
            elif state != Mode.DELTA:
                yield from (sizes.bytes[relation] for relation in inputs_of(source))
        if term.touched_by is not None:
            yield from _asked(select, term, sizes)
    yield from cut.values()


def _asked(select: Select, term: Term, sizes: Sizes) -> Iterator[int]:
    """What is read to know which rows a partner touches: its change, where it is more than a relation."""
    assert term.touched_by is not None
    source: Source = select.sources[term.touched_by]
    if isinstance(source.input, Select | UnionAll):
        yield from _change(source.input, sizes)

"""Upkeep: the blocks of a view, followed through an epoch as they are maintained.

A group or a partition that a change has touched is computed anew from the rows that are there after it; what was kept
of it goes. The rest stays as it was kept. A hidden block hands its change on to those that read it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from oracle.blocks import groups_over, windows_over
from oracle.meaning import Leaves, meaning
from oracle.values import Id, Stored, Value, exact, key
from stepwell.algebra.nodes import Fresh, Moment
from stepwell.plan.blocks import LEAF, Block, GroupBlock, RowBlock, WindowBlock, rows_of
from stepwell.rules.deltas import Deltas
from stepwell.rules.identity import Identified, at

Kept = dict[tuple[object, ...], Stored]
"""The rows of a block, by their identity."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A block before and after an epoch: as it is computed anew, and as it was brought up to date."""

    before: Kept
    anew: Kept
    upheld: Kept

    @property
    def is_right(self) -> bool:
        return _facts(self.anew) == _facts(self.upheld)


def followed(block: Block, leaves: Leaves, changed: Collection[int]) -> Followed:
    """A block through an epoch in which these relations have changed."""
    rows = rows_of(block)
    fresh = Fresh(rows.tree)
    before, after = (_stored(rows, at(rows.tree, each, fresh), leaves) for each in (Moment.BEFORE, Moment.AFTER))
    then, anew = computed(block, before), computed(block, after)
    change = Deltas(frozenset(changed), fresh).of(rows.tree)
    if change is None:
        return Followed(then, anew, then)
    moved = _stored(rows, change, leaves)
    if isinstance(block, RowBlock):
        return Followed(then, anew, _added(then, moved))
    assert isinstance(block, GroupBlock | WindowBlock)
    touched = {_keys(block, row) for row in moved}
    stays = computed(block, [row for row in before if _keys(block, row) in touched])
    comes = computed(block, [row for row in after if _keys(block, row) in touched])
    kept = {id_: row for id_, row in then.items() if id_ not in stays}
    assert not kept.keys() & comes.keys(), "a row that stays comes once more"
    return Followed(then, anew, {**kept, **comes} if block.keys else anew)


def computed(block: Block, rows: Sequence[Stored]) -> Kept:
    """The rows of a block, given those that it reads."""
    match block:
        case RowBlock():
            return {key(row.id): row for row in rows}
        case GroupBlock():
            found, columns, id_ = groups_over(block)
        case WindowBlock():
            found, columns, id_ = windows_over(block)
        case _:
            raise AssertionError("a whole is not maintained")
    kept: Kept = {}
    for row in meaning(found, {(LEAF, Moment.AFTER): sorted(rows, key=lambda each: key(each.id))}):
        values = {name: row[column.id] for name, column in zip(block.names, columns, strict=True)}
        own = Id(tuple(row[each.id] for each in id_))
        assert key(own) not in kept, "an identity is there twice"
        kept[key(own)] = Stored(values, own)
    return kept


def change_of(block: Followed) -> list[Stored]:
    """What a block hands on: the rows that went and those that came."""
    old, new = _facts(block.before), _facts(block.anew)
    gone = [Stored(row.values, row.id, -1) for id_, row in block.before.items() if old[id_] != new.get(id_)]
    return gone + [row for id_, row in block.anew.items() if new[id_] != old.get(id_)]


def _stored(rows: RowBlock, found: Identified, leaves: Leaves) -> list[Stored]:
    made = []
    for row in meaning(found.tree, leaves):
        sign = row[found.sign.id] if found.sign is not None else 1
        assert isinstance(sign, int)
        values: dict[str, Value] = {name: row[c.id] for name, c in zip(rows.names, rows.columns, strict=True)}
        made.append(Stored(values, row[found.id.id], sign))
    return made


def _keys(block: GroupBlock | WindowBlock, row: Stored) -> tuple[object, ...]:
    return tuple(key(row.values[f"_sw_g{index}"]) for index in range(block.keys))


def _added(kept: Kept, change: Sequence[Stored]) -> Kept:
    """Rows and their change, added up: each is there once or not at all."""
    counts: dict[tuple[object, ...], int] = {}
    rows: dict[tuple[object, ...], Stored] = {}
    for row in (*kept.values(), *change):
        fact = (key(row.id), *map(exact, row.values.values()))
        counts[fact], rows[fact] = counts.get(fact, 0) + row.sign, row
    assert set(counts.values()) <= {0, 1}, "a row is there twice, or less than never"
    return {key(rows[fact].id): rows[fact] for fact, count in counts.items() if count}


def _facts(kept: Kept) -> dict[tuple[object, ...], list[object]]:
    return {id_: [*map(exact, row.values.values())] for id_, row in kept.items()}

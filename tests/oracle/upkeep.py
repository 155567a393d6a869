"""Upkeep: the blocks of a view, followed through a history by the programs of their rules.

What a block holds, its rows and its states, is carried from epoch to epoch as the programs have left it, and compared
after each with what is computed anew. A hidden block hands its change on to those that read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from oracle.expressions import value_of
from oracle.meaning import Leaves, meaning
from oracle.states import RuleError
from oracle.values import Stored, Value, exact, key
from stepwell.algebra.aggregates import REFOLD
from stepwell.algebra.nodes import Fresh, Moment
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.limits import Limits
from stepwell.model.relations import Column
from stepwell.model.types import parse_type
from stepwell.plan.cuts import Change, Cuts, Look, Sizes
from stepwell.plan.programs import programs_for
from stepwell.plan.steps import Rule, Step
from stepwell.rules.blocks import Block, GroupBlock, RowBlock, ViewPlan, WholeBlock, WindowBlock, inputs_of, rows_of
from stepwell.rules.deltas import only_adds
from stepwell.rules.groups import COUNT, has_states, is_invertible, partials
from stepwell.rules.programs import (
    OWN,
    PARTIAL,
    STATE,
    Cutting,
    NoCutting,
    Occasion,
    Output,
    Program,
    Target,
    key_names,
)
from stepwell.rules.recompute import build
from stepwell.rules.row_changes import rows_at

Held = dict[tuple[object, ...], Stored]
"""Rows by their identity."""

Rows = list[tuple[Output, dict[str, Value]]]


class NotUpheldError(Exception):
    """A block that is not what it is anew."""


@dataclass
class Upkeep:
    """One block: what it is read from by its rules, and what it holds."""

    block: Block
    relation: int
    rows: Held = field(default_factory=dict)
    states: Held = field(default_factory=dict)

    @property
    def keeps_states(self) -> bool:
        return isinstance(self.block, GroupBlock) and has_states(self.block)

    def follow(self, leaves: Leaves, changed: frozenset[int], step: Step, *, cut: bool, brings: bool) -> list[Stored]:
        """Bring the block up to date by a step, and hold it to what it is anew; its change."""
        try:
            made = self._run(leaves, changed, step, exact_=False, cut=cut, brings=brings)
        except RuleError as error:
            if str(error) != REFOLD:
                raise NotUpheldError(str(error)) from None
            made = self._run(leaves, changed, step, exact_=True, cut=cut, brings=brings)
        change = [
            Stored(values, values[ROW_ID], _sign(values)) for output, values in made if output.target == Target.ROWS
        ]
        _apply(self.rows, change)
        _apply(self.states, [Stored(v, v[ROW_ID], _sign(v)) for output, v in made if output.target == Target.STATE])
        self._compare(leaves)
        return change

    def _run(
        self, leaves: Leaves, changed: frozenset[int], step: Step, *, exact_: bool, cut: bool, brings: bool
    ) -> Rows:
        fresh = _fresh(self.block)
        cutting: Cutting = NoCutting()
        if cut:
            few = dict.fromkeys(changed, Change(1, 1, 10))
            cutting = Cuts(Sizes(dict.fromkeys(inputs_of(self.block), 1), few, Limits(whole_relation_bytes=0)), fresh)
        occasion = Occasion(columns_of(self.block), changed, fresh, cutting, None, brings, cut, cut, bool(self.states))
        programs = programs_for(self.block, step, occasion, exact=exact_)
        known: dict[tuple[int, Moment] | str, list[Stored]] = {name: list(rows) for name, rows in leaves.items()}
        known |= {OWN: list(self.rows.values()), STATE: list(self.states.values())}
        if cut:
            assert isinstance(cutting, Cuts)
            self._take(cutting, known)
        return [each for program in programs for each in outputs_of(program, known)]

    def _take(self, cuts: Cuts, known: dict[tuple[int, Moment] | str, list[Stored]]) -> None:
        for each in cuts.steps:
            if isinstance(each, Look):
                known[each.name] = looked_up(each, known)
                continue
            pairs = list(zip(each.names, each.tree.output, strict=True))
            found = meaning(each.tree, known)
            known[each.name] = [Stored({name: row[c.id] for name, c in pairs}, 0) for row in found]
            if each.name == PARTIAL:
                assert isinstance(self.block, GroupBlock)
                names = key_names(self.block)
                wanted = {tuple(key(row.values[name]) for name in names) for row in known[each.name]}
                known[STATE] = [row for row in known[STATE] if tuple(key(row.values[name]) for name in names) in wanted]

    def _compare(self, leaves: Leaves) -> None:
        occasion = Occasion(columns_of(self.block), frozenset(), _fresh(self.block))
        anew: Held = {}
        for _, values in outputs_of(build(self.block, occasion), leaves):
            if key(values[ROW_ID]) in anew:
                raise NotUpheldError("an identity is there twice")
            anew[key(values[ROW_ID])] = Stored(values, values[ROW_ID])
        if _facts(anew) != _facts(self.rows):
            raise NotUpheldError(f"a {type(self.block).__name__} is not what it is anew")
        if self.keeps_states:
            assert isinstance(self.block, GroupBlock)
            self._compare_states(self.block, leaves, occasion)

    def _compare_states(self, group: GroupBlock, leaves: Leaves, occasion: Occasion) -> None:
        found = partials(group, rows_at(group.rows, Moment.AFTER, occasion), occasion.fresh, exact=True)
        columns = (*found.keys, found.count, *found.states)
        names = (*key_names(group), COUNT, *(f"_sw_p{index}" for index in range(len(found.states))))
        anew = sorted(repr([exact(row[each.id]) for each in columns]) for row in meaning(found.tree, leaves))
        kept = sorted(repr([exact(row.values[name]) for name in names]) for row in self.states.values())
        if anew != kept:
            raise NotUpheldError("a state is not what it is anew")


def columns_of(block: Block) -> tuple[Column, ...]:
    """The columns of a block that is a view."""
    assert not isinstance(block, WholeBlock)
    values = block.items if isinstance(block, GroupBlock) else block.columns
    return tuple(Column(name, parse_type(each.type)) for name, each in zip(block.names, values, strict=True))


def looked_up(look: Look, leaves: Leaves) -> list[Stored]:
    """What a look finds: the rows that have one of its keys, and not one more."""
    numbers = [each.id for each in look.keys.output]
    keys = {tuple(key(row[number]) for number in numbers) for row in meaning(look.keys, leaves)}
    keys = {each for each in keys if look.nulls or key(None) not in each}
    rows = leaves[look.relation, look.moment]
    return [row for row in rows if tuple(key(row.values[name]) for name in look.columns) in keys]


class Pipeline:
    """The blocks of a query, carried through a history."""

    def __init__(self, plan: ViewPlan, random: Random) -> None:
        blocks = (*plan.hidden, plan.root)
        self._blocks = [Upkeep(block, -1 - index) for index, block in enumerate(blocks)]
        self._random = random
        self.rules: list[str] = []

    def build(self, leaves: Leaves) -> None:
        """Compute all blocks for the first time."""
        self._go(leaves, frozenset(), first=True, only_inserts=False)

    def follow(self, leaves: Leaves, changed: frozenset[int], *, only_inserts: bool) -> None:
        """Bring all blocks through an epoch, each by one of the rules that may follow it."""
        self._go(leaves, changed, first=False, only_inserts=only_inserts)

    def _go(self, leaves: Leaves, changed: frozenset[int], *, first: bool, only_inserts: bool) -> None:
        known = dict(leaves)
        moved = set(changed)
        for each in self._blocks:
            before = [replace(row, sign=1) for row in each.rows.values()]
            inputs = frozenset(inputs_of(each.block))
            change: list[Stored] = []
            if first or not inputs.isdisjoint(moved):
                brings = only_inserts and all(relation > 0 for relation in inputs & moved)
                gone = any(row.sign < 0 for relation in inputs & moved for row in known[relation, Moment.DELTA])
                step = Step(Rule.BUILD) if first else self._step(each.block, frozenset(inputs & moved), gone)
                self.rules.append(step.rule)
                cut = not first and self._random.random() < 0.5
                change = each.follow(known, frozenset(inputs & moved), step, cut=cut, brings=brings)
            known[each.relation, Moment.BEFORE] = before
            known[each.relation, Moment.AFTER] = known[each.relation, Moment.NOW] = list(each.rows.values())
            known[each.relation, Moment.DELTA] = change
            moved |= {each.relation} if change else set()

    def _step(self, block: Block, changed: frozenset[int], gone: bool) -> Step:
        """One of the steps that are right for a change."""
        match block:
            case RowBlock():
                found = [Step(Rule.APPLY)]
            case WindowBlock():
                found = [Step(Rule.TOUCHED_PARTITIONS)] if block.keys else []
            case GroupBlock() if not has_states(block):
                found = [Step(Rule.TOUCHED_GROUPS)]
            case GroupBlock():
                plain = is_invertible(block) or (not gone and _only_adds(block, changed))
                found = [Step(Rule.FOLD, loses=not plain), Step(Rule.TOUCHED_GROUPS)]
                found.append(Step(Rule.RECOMPUTE, is_detached=True))
            case _:
                raise AssertionError("a whole is not maintained")
        return self._random.choice([*found, *found, Step(Rule.RECOMPUTE)])


def _only_adds(block: GroupBlock, changed: frozenset[int]) -> bool:
    return only_adds(block.rows.tree, changed)


def _fresh(block: Block) -> Fresh:
    trees = [rows_of(block).tree, *([block.top] if isinstance(block, WindowBlock) else [])]
    return Fresh(*trees)


def outputs_of(program: Program, leaves: Leaves) -> Iterator[tuple[Output, dict[str, Value]]]:
    for row in meaning(program.tree, leaves):
        for output in program.outputs:
            if output.when is None or row[output.when.id] is True:
                yield output, {name: value_of(each, row) for each, name in output.columns}


def _sign(values: dict[str, Value]) -> int:
    sign = values[DIFF]
    assert isinstance(sign, int)
    return sign


def _apply(held: Held, change: list[Stored]) -> None:
    """Take the rows away that go, which must be there, and add those that come, which must not."""
    for row in change:
        if row.sign < 0:
            old = held.pop(key(row.id), None)
            if old is None or key(old.values[ROW_VERSION]) != key(row.values[ROW_VERSION]):
                raise NotUpheldError("a version goes that is not there")
    for row in change:
        if row.sign > 0:
            if key(row.id) in held:
                raise NotUpheldError("a row comes that is there")
            held[key(row.id)] = replace(row, sign=1)


def _facts(held: Held) -> dict[tuple[object, ...], list[object]]:
    return {
        id_: [exact(value) for name, value in sorted(row.values.items()) if name not in (DIFF,)]
        for id_, row in held.items()
    }

"""Judging: rows that come too late, kept in a ledger by the rule, and beside it left out one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from oracle.expressions import value_of
from oracle.histories import Step
from oracle.meaning import Leaves, meaning
from oracle.upkeep import NotUpheldError
from oracle.values import Stored, exact, key
from stepwell.algebra.nodes import Fresh, Moment, Node
from stepwell.model.relations import Column
from stepwell.model.types import parse_type
from stepwell.model.watermarks import NEVER
from stepwell.rules.blocks import RowBlock
from stepwell.rules.deltas import Deltas
from stepwell.rules.identity import Identified, at
from stepwell.rules.lateness import ENTRY, SOURCE, Ledger, entries
from stepwell.rules.programs import LATE, LEDGER

Facts = Counter[tuple[object, ...]]


def judged(tree: Node, random: Random) -> Callable[[Step], None]:
    """The rows that count are those that were there, and all changes of them that were not late when they came."""
    columns = tuple(dict.fromkeys(tree.output))
    times = [index for index, each in enumerate(columns) if each.type == "INT"]
    rows = RowBlock(tree, columns, tuple(f"_sw_x{index}" for index in range(len(columns))))
    if not times:
        return lambda step: None
    time = random.choice(times)
    ledger: list[Stored] = []
    shown = [Column(name, parse_type(each.type)) for name, each in zip(rows.names, columns, strict=True)]
    expected: Facts = Counter()
    bound, epoch, started = NEVER, 0, False

    def follow(step: Step) -> None:
        nonlocal bound, epoch, started
        if not started:
            expected.update(_facts(rows, at(tree, Moment.AFTER, Fresh(tree)), step.at_start))
            started = True
        epoch += 1
        judge = Ledger(rows.names[time], bound, bool(ledger), has_new=False)
        leaves: dict[tuple[int, Moment] | str, list[Stored]] = {name: list(each) for name, each in step.leaves.items()}
        leaves[LEDGER] = ledger
        delta = Deltas(step.changed, Fresh(tree)).of(tree)
        new: list[Stored] = []
        if delta is not None:
            program = entries([*shown, *ENTRY], rows, rows, judge, step.changed, epoch)
            (output,) = program.outputs
            for row in meaning(program.tree, leaves):
                values = {name: value_of(each, row) for each, name in output.columns}
                new.append(Stored(values, values[SOURCE]))
            for fact, sign in _facts(rows, delta, leaves).items():
                value = dict(fact_values(fact))[time]
                if not (isinstance(value, int) and value < bound):
                    expected[fact] += sign
        leaves[LATE] = new
        judge = Ledger(rows.names[time], bound, bool(ledger), has_new=bool(new))
        fresh = Fresh(tree)
        found = judge.counted(rows, at(tree, Moment.AFTER, fresh), after=True, fresh=fresh)
        if {f: n for f, n in _facts(rows, found, leaves).items() if n} != {f: n for f, n in expected.items() if n}:
            raise NotUpheldError("the rows that count are not those that came in time")
        ledger.extend(new)
        bound = max(bound, random.choice([NEVER, 0, 1, 2, 3]))

    return follow


def fact_values(fact: tuple[object, ...]) -> list[tuple[int, object]]:
    """The values of a fact by their places."""
    return [
        (index, each[1] if len(each) > 1 else None) for index, each in enumerate(fact[1:]) if isinstance(each, tuple)
    ]


def _facts(rows: RowBlock, found: Identified, leaves: Leaves) -> Facts:
    facts: Facts = Counter()
    for row in meaning(found.tree, leaves):
        sign = row[found.sign.id] if found.sign is not None else 1
        assert isinstance(sign, int)
        facts[(key(row[found.id.id]), *(exact(row[each.id]) for each in rows.columns))] += sign
    return facts

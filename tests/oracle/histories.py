"""Histories: random tables, and random changes of several of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from oracle.meaning import Leaves
from oracle.values import Stored, Value, exact
from stepwell.algebra.nodes import Moment

TYPES = {
    "k": "INT",
    "g": "INT",
    "s": "STRING",
    "f": "DOUBLE",
    "b": "BOOLEAN",
    "xs": "ARRAY<INT>",
}
"""The columns that a table may have; `k` is always there."""
MOST_TABLES = 4

Values = dict[str, Value]
Tables = dict[int, dict[int, Values]]
"""The rows of each relation by their own identity."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one epoch does to all tables: how they were, how they are, and which of them it says have changed."""

    before: Tables
    after: Tables
    changed: frozenset[int]

    @property
    def leaves(self) -> Leaves:
        """The rows of every relation before, after and in between; `NOW` is after."""
        found: dict[tuple[int, Moment] | str, list[Stored]] = {}
        for relation in self.before:
            before, after = self.before[relation], self.after[relation]
            found[relation, Moment.BEFORE] = [Stored(row, id_) for id_, row in before.items()]
            found[relation, Moment.AFTER] = [Stored(row, id_) for id_, row in after.items()]
            found[relation, Moment.NOW] = found[relation, Moment.AFTER]
            found[relation, Moment.DELTA] = list(_difference(before, after))
        return found

    @property
    def at_start(self) -> Leaves:
        """The rows of every relation as they were, with nothing that has changed."""
        found: dict[tuple[int, Moment] | str, list[Stored]] = {}
        for relation, before in self.before.items():
            rows = [Stored(row, id_) for id_, row in before.items()]
            found.update({(relation, moment): rows for moment in (Moment.BEFORE, Moment.AFTER, Moment.NOW)})
            found[relation, Moment.DELTA] = []
        return found

    @property
    def only_inserts(self) -> bool:
        leaves = self.leaves
        return all(each.sign == 1 for relation in self.before for each in leaves[relation, Moment.DELTA])


def _difference(before: Mapping[int, Values], after: Mapping[int, Values]) -> Iterator[Stored]:
    """What went and what came; an update is both, under one identity."""
    for id_ in sorted(before.keys() | after.keys()):
        old, new = before.get(id_), after.get(id_)
        if old is not None and new is not None and same(old, new):
            continue
        if old is not None:
            yield Stored(old, id_, -1)
        if new is not None:
            yield Stored(new, id_, 1)


def same(one: Values, other: Values) -> bool:
    return [*map(exact, one.values())] == [*map(exact, other.values())]


def random_value(random: Random, type_: str) -> Value:
    """A value out of few, so that rows meet; often NULL."""
    match type_:
        case "INT":
            return random.choice([None, 0, 1, 2, 3])
        case "STRING":
            return random.choice([None, "", "x", "y"])
        case "DOUBLE":
            return random.choice([None, 0.0, -0.0, 0.5, 1.0, float("nan")])
        case "BOOLEAN":
            return random.choice([None, True, False])
        case _:
            return random.choice([None, (), (1,), (1, 1), (2, None, 0)])


def random_schemas(random: Random) -> dict[int, list[str]]:
    """Two to four tables with some of the columns."""
    others = [name for name in TYPES if name != "k"]
    return {
        relation: ["k", *sorted(random.sample(others, random.randint(1, 3)))]
        for relation in range(1, random.randint(2, MOST_TABLES) + 1)
    }


def random_history(random: Random, schemas: Mapping[int, list[str]], steps: int, rows: int = 4) -> Iterator[Step]:
    """Tables that start with some rows, and what a few epochs do to them."""

    def row(relation: int) -> Values:
        return {name: random_value(random, TYPES[name]) for name in schemas[relation]}

    last = 0
    tables: Tables = {}
    for relation in schemas:
        tables[relation] = {(last := last + 1): row(relation) for _ in range(random.randint(0, rows))}
        last = random.choice([last, 0])  # two tables may well have rows of the same number
    last = 100
    for _ in range(steps):
        before = {relation: dict(table) for relation, table in tables.items()}
        moving = random.sample(sorted(tables), random.randint(1, len(tables)))
        inserts_only = random.random() < 0.3
        for relation in moving:
            table = tables[relation]
            for _ in range(random.choice([0, 1, 1, 2, 3])):
                what = "insert" if inserts_only or not table else random.choice(["insert", "delete", "update", "touch"])
                match what:
                    case "insert" if len(table) < 2 * rows:
                        table[(last := last + 1)] = row(relation)
                    case "delete":
                        del table[random.choice(sorted(table))]
                    case "update":
                        table[random.choice(sorted(table))] = row(relation)
                    case "touch":
                        id_, name = random.choice(sorted(table)), random.choice(schemas[relation])
                        table[id_] = {**table[id_], name: random_value(random, TYPES[name])}
                    case _:
                        pass
        after = {relation: dict(table) for relation, table in tables.items()}
        yield Step(before, after, frozenset(moving))

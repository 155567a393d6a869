"""GROUP BY in every spelling: by expressions, aliases, ordinals, ALL, and sets of keys."""

from __future__ import annotations

from dataclasses import dataclass

from querygen.dice import Dice
from querygen.nodes import Node, node
from querygen.types import BIGINT, INT


@dataclass(frozen=True, slots=True)
class Grouping:
    """A GROUP BY, and what may be asked about it beside aggregates: text and type."""

    tree: Node
    grouping: tuple[tuple[str, str], ...] = ()


def group_clause(rng: Dice, keys: list[Node], items: list[Node]) -> Grouping:
    """A GROUP BY of `keys`; `items` are those of them that stand in front of the SELECT list, with their names."""
    written = [key.text for key in keys]
    if rng.chance(0.2):
        return _sets(rng, written)
    if len(items) == len(keys):  # all of them are there: ALL, ordinals and aliases mean the same
        way = rng.random()
        if way < 0.1:
            return Grouping(node("clause", " GROUP BY ALL"))
        if way < 0.2:
            return Grouping(node("clause", " GROUP BY ", ", ".join(str(number + 1) for number in range(len(keys)))))
        if way < 0.35:
            names = [item.pieces[-1] for item in items]
            aliases = [str(name).removeprefix(" AS ") for name in names]
            return Grouping(node("clause", " GROUP BY ", ", ".join(aliases)))
    return Grouping(node("clause", " GROUP BY ", Node("list", tuple(keys), separator=", ")))


def _sets(rng: Dice, keys: list[str]) -> Grouping:
    every = ", ".join(keys)
    first, rest = keys[0], ", ".join(keys[1:])
    sets = [f"({every})", f"({first})", "()"][: rng.randint(2, 3)]
    if rng.chance(0.15):
        sets.append(sets[0])
    forms = [
        f"GROUPING SETS ({', '.join(sets)})",
        f"{every} GROUPING SETS ({', '.join(sets)})",
        f"ROLLUP ({every})",
        f"CUBE ({every})",
        f"{every} WITH ROLLUP",
        f"{every} WITH CUBE",
    ]
    if rest:
        forms += [
            f"{first}, ROLLUP ({rest})",
            f"CUBE ({first}), ROLLUP ({rest})",
            f"{first}, GROUPING SETS (({rest}), ())",
        ]
    asked = [(f"grouping({key})", INT) for key in keys if rng.chance(0.3)]
    if rng.chance(0.3):
        asked.append(("grouping_id()", BIGINT))
    return Grouping(node("clause", f" GROUP BY {rng.choice(forms)}"), tuple(asked))

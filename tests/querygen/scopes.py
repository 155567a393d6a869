"""What a query can name: columns of its sources, each by the text that means it."""

from __future__ import annotations

from dataclasses import dataclass

from querygen.dice import Dice
from querygen.expressions import Leaf
from querygen.nodes import Node
from querygen.schema import quoted
from querygen.types import DOUBLE, ORDERED, ROUGH


@dataclass(frozen=True, slots=True)
class Column:
    """A column in scope: its name, its type, and the alias of its source if it must or may be named with it."""

    name: str
    type: str
    source: str | None = None

    @property
    def text(self) -> str:
        return f"{self.source}.{quoted(self.name)}" if self.source else quoted(self.name)


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that a SELECT may use."""

    columns: tuple[Column, ...]

    def leaf(self, rng: Dice) -> Leaf:
        """Columns, with their source or, where only one is called so, sometimes without."""
        names = [column.name.lower() for column in self.columns]

        def found(type_: str) -> Node | None:
            fitting = [
                column for column in self.columns if column.type == type_ or (type_, column.type) == (ROUGH, DOUBLE)
            ]
            if not fitting:
                return None
            column = rng.choice(fitting)
            alone = names.count(column.name.lower()) == 1
            return Node(type_, (quoted(column.name) if alone and rng.chance(0.3) else column.text,))

        return found

    def of(self, types: tuple[str, ...]) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.type in types)

    def without_maps(self) -> Scope:
        return Scope(self.of(ORDERED))

    def total_order(self) -> str:
        """An order in which only equal rows are equal; -0.0 and 0.0 are told apart by how they are written."""
        return ", ".join(
            f"CAST({column.text} AS STRING)" if column.type == ROUGH else column.text for column in self.of(ORDERED)
        )

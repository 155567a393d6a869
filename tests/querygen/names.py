"""Names for outputs: new ones, such as shadow a column that is read, and odd ones."""

from __future__ import annotations

from querygen.dice import Dice
from querygen.scopes import Scope

ODD = ("a b", "select", "x.y", "ü", "a-b", "Order", "#1", "a`b")


class Names:
    """Names for the outputs of one SELECT, each once; in Spark, names that differ in case are the same."""

    def __init__(self, rng: Dice, scope: Scope) -> None:
        self.rng = rng
        self.scope = scope
        self.used: set[str] = set()

    def next(self) -> str:
        rng = self.rng
        if rng.chance(0.25) and self.scope.columns:
            wanted = rng.choice(self.scope.columns).name
        elif rng.chance(0.06):
            wanted = rng.choice(ODD)
        else:
            wanted = rng.choice(("c", "z", "y", "total")) + str(len(self.used))
        return self.taken(wanted)

    def taken(self, wanted: str) -> str:
        """`wanted`, or something like it that is still free."""
        name = wanted
        while name.lower() in self.used:
            name = f"{wanted}{len(self.used)}"
            wanted += "_"
        self.used.add(name.lower())
        return name

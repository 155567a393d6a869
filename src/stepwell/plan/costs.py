"""Costs: what the ways to bring a view up to date have cost, and so what they are expected to.

A change that touches most of a view makes the way around it longer than the way through all of it. How much of a view a
change touches is not known before, but what the last one took is; it is taken to grow with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepwell.model.limits import Limits


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took, and over how many rows: of the change, or of the inputs for a recomputation."""

    rows: int
    microseconds: int

    def expected(self, rows: int, limits: Limits) -> int:
        """What it would take over so many rows; never less than it took, for there is work that no row causes."""
        by_rows = max(0, self.microseconds - limits.fixed_microseconds)
        return round(self.microseconds + by_rows * max(0.0, rows / max(1, self.rows) - 1))


@dataclass(frozen=True, slots=True)
class Costs:
    """What a view has cost: its last update by a rule, and its last build or recomputation."""

    update: Cost | None = None
    recompute: Cost | None = None
    updates: int = 0
    since: int = 0
    """Recomputations since the last update."""

    def updated(self, cost: Cost) -> Costs:
        return Costs(cost, self.recompute, self.updates + 1, 0)

    def recomputed(self, cost: Cost) -> Costs:
        return Costs(self.update, cost, self.updates, self.since + 1)

    def expect(self, changed: int, there: int, limits: Limits) -> Expected:
        """What both ways would take for a change of so many rows, over inputs of so many."""
        update = self.update.expected(changed, limits) if self.update else None
        if self.update and changed * 2 < self.update.rows:
            update = None  # a much smaller change is another matter
        if self.updates < limits.warm_updates or self.since >= limits.update_back_off:
            update = None
        return Expected(update, self.recompute.expected(there, limits) if self.recompute else None)


@dataclass(frozen=True, slots=True)
class Expected:
    """Microseconds that an update and a recomputation would take, as far as is known."""

    update: int | None = None
    recompute: int | None = None

    def is_dearer(self, limits: Limits) -> bool:
        """Whether the update would take longer than computing everything."""
        if self.update is None or self.recompute is None or self.recompute < limits.cost_microseconds:
            return False
        return self.update > limits.cost_factor * self.recompute


UNKNOWN = Expected()

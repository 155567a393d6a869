"""Random numbers for one query, and how plain its expressions are."""

from __future__ import annotations

import random


class Dice(random.Random):
    """Random numbers from a seed.

    A query is either about its structure, and then its expressions are `plain`: columns, comparisons, sums; or about its
    expressions, which may then be anything. Both at once would leave no rows to be wrong about.
    """

    plain: bool = False

    def chance(self, probability: float) -> bool:
        return self.random() < probability

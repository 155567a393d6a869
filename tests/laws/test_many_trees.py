"""The laws of `tests/unit/test_rules.py`, by the hundred; under torture by the ten thousand."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracle import laws

TIMES = 10 if os.environ.get("STEPWELL_TORTURE") else 1
LAWS = {
    "delta": (laws.DELTA, 1_000),
    "changes that are cut": (laws.CUT_CHANGES, 750),
    "rows that are cut": (laws.CUT_ROWS, 750),
    "lowering": (laws.LOWERING, 1_000),
    "lowering of windows": (laws.WINDOWS, 500),
    "pruning": (laws.PRUNING, 500),
    "decomposition": (laws.BLOCKS, 500),
    "upkeep": (laws.UPKEEP, 500),
    "upkeep of groups": (laws.GROUP_UPKEEP, 500),
    "groups by chunk": (laws.CHUNKS, 500),
    "lateness": (laws.LATENESS, 500),
    "upkeep of windows": (laws.WINDOW_UPKEEP, 500),
}
"""The laws, and how many trees are held to each."""


@pytest.mark.parametrize("name", LAWS)
def test_a_law_holds_for_thousands_of_trees(name: str, record_property: Callable[[str, object], None]) -> None:
    law, trees = LAWS[name]
    record_property(f"{name} held to its law", str(law.play(range(10_000, 10_000 + TIMES * trees))))

"""The laws of `tests/unit/test_rules.py`, by the hundred; under torture by the ten thousand."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracle import laws

TIMES = 20 if os.environ.get("STEPWELL_TORTURE") else 1
LAWS = {
    "delta": (laws.DELTA, 500),
    "changes that are cut": (laws.CUT_CHANGES, 400),
    "rows that are cut": (laws.CUT_ROWS, 400),
    "lowering": (laws.LOWERING, 500),
    "lowering of windows": (laws.WINDOWS, 250),
    "pruning": (laws.PRUNING, 250),
    "decomposition": (laws.BLOCKS, 250),
    "upkeep": (laws.UPKEEP, 300),
    "upkeep of groups": (laws.GROUP_UPKEEP, 300),
    "groups by chunk": (laws.CHUNKS, 250),
    "lateness": (laws.LATENESS, 250),
    "upkeep of windows": (laws.WINDOW_UPKEEP, 300),
}
"""The laws, and how many trees are held to each."""


@pytest.mark.parametrize("name", LAWS)
def test_a_law_holds_for_thousands_of_trees(name: str, record_property: Callable[[str, object], None]) -> None:
    law, trees = LAWS[name]
    record_property(f"{name} held to its law", str(law.play(range(10_000, 10_000 + TIMES * trees))))

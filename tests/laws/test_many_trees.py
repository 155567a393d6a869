"""The laws of `tests/unit/test_rules.py`, by the thousand; under torture by the ten thousand."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracle import laws

TREES = 20_000 if os.environ.get("STEPWELL_TORTURE") else 2_500
LAWS = {
    "delta": laws.DELTA,
    "changes that are cut": laws.CUT_CHANGES,
    "rows that are cut": laws.CUT_ROWS,
    "lowering": laws.LOWERING,
    "lowering of windows": laws.WINDOWS,
    "pruning": laws.PRUNING,
    "decomposition": laws.BLOCKS,
}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_holds_for_thousands_of_trees(name: str, record_property: Callable[[str, object], None]) -> None:
    record_property(f"{name} held to its law", LAWS[name].play(range(10_000, 10_000 + TREES)))

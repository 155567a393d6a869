"""Samples: cases of fixed seeds that are played in every run of the tests, and what they must have gone through."""

from __future__ import annotations

from collections.abc import Iterable

from querygen.counts import RULES, Counts
from querygen.runs import Runs

VIEWS = 21
EPOCHS = 3

HALVES = ((2024, 2025, 2028), (2026, 2027, 2029))
"""The seeds, in two halves of which each is a file of tests, so that two workers share them.

`python -m querygen --seed <seed> --batch 21 --epochs 3 --queries 21` plays one of them and shrinks what fails.
"""


def play_sample(runs: Runs, seeds: Iterable[int]) -> tuple[Counts, list[str]]:
    """What the cases of some seeds have gone through, and a text for each view that was wrong."""
    counts = Counts()
    wrong: list[str] = []
    for seed in seeds:
        case, outcome = runs.run(seed, VIEWS, EPOCHS)
        counts.add(outcome.counts)
        texts = {"tables": "", **{view.name: view.text for view in case.views}}
        wrong += [
            f"seed {seed}, {each.view}, epoch {each.epoch}: {each.what}\n    {texts[each.view]}"
            for each in outcome.failures
        ]
    return counts, wrong


def too_little(counts: Counts) -> list[str]:
    """What half of the sample has to go through and has not: together they are 120 queries, and 20 epochs a rule."""
    found = [f"{rule}: {counts.changes[rule]} epochs" for rule in RULES if counts.changes[rule] < 10]
    if counts.views < 60:
        found.append(f"{counts.views} views")
    if counts.share_of_wholes > 0.15:
        found.append(f"{counts.share_of_wholes:.0%} wholes")
    return found

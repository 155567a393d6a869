"""Random queries, end to end: a fixed sample of them, and tests of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from querygen import RULES, Case, Counts, Runs, View
from querygen.dice import Dice
from querygen.histories import first_rows, history
from querygen.nodes import node
from querygen.plain import Bag

SEEDS = range(2024, 2030)
VIEWS = 22
EPOCHS = 3


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with Runs() as running:
        yield running


def test_random_views_equal_their_queries(
    runs: Runs, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m querygen --seed <seed> --batch 22 --epochs 3 --queries 22` plays one of these and shrinks what fails."""
    counts = Counts()
    wrong: list[str] = []
    for seed in SEEDS:
        case, outcome = runs.run(seed, VIEWS, EPOCHS)
        counts.add(outcome.counts)
        texts = {view.name: view.text for view in case.views}
        wrong += [
            f"seed {seed}, {each.view}, epoch {each.epoch}: {each.what}\n    {texts[each.view]}"
            for each in outcome.failures
        ]
    for line in counts.lines():
        record_property("random queries", line)
    with capsys.disabled():
        print("", *counts.lines(), sep="\n")
    assert not wrong, "\n".join(wrong)
    assert counts.views >= 120
    assert {rule: counts.changes[rule] for rule in RULES if counts.changes[rule] < 20} == {}
    assert counts.share_of_wholes <= 0.15


FEW = Case(
    first_rows(Dice(7)),
    (
        View("v0", node("query", "SELECT k, s, f FROM t")),
        View("v1", node("query", "SELECT k, count(*) AS n FROM t GROUP BY k")),
        View("v2", node("query", "SELECT k, n FROM v1 WHERE n > 0"), ("v1",)),
    ),
    tuple(history(Dice(8), 3)),
)


def test_a_case_without_a_fault_passes(runs: Runs) -> None:
    outcome = runs.play(FEW)
    assert outcome.failures == []
    assert outcome.counts.views == 3


def _lost(rows: Bag) -> Bag:
    """Without one of its rows."""
    return rows - type(rows)(dict.fromkeys(islice(rows, 1), 1))


def _twice(rows: Bag) -> Bag:
    return rows + type(rows)(dict.fromkeys(islice(rows, 1), 1))


@pytest.mark.parametrize("fault", [_lost, _twice])
@pytest.mark.parametrize("name", ["v0", "v1", "v2"])
def test_a_fault_in_a_view_is_reported(runs: Runs, name: str, fault: Callable[[Bag], Bag]) -> None:
    outcome = runs.play(FEW, lambda view, rows: fault(rows) if view == name else rows)
    assert [each.view for each in outcome.failures] == [name]
    assert outcome.failures[0].kind == "wrong rows"


def test_a_fault_is_shrunken(runs: Runs) -> None:
    """Whatever view reads from p is made wrong: what is left of a random query is little more than that."""
    case, _ = runs.run(5, 8, 1)
    guilty = next(view for view in case.views if " p AS " in view.text and not view.parents)

    def answer(view: str, rows: Bag) -> Bag:
        return rows + type(rows)({("wrong",): 1}) if view == guilty.name else rows

    (failure,) = runs.play(case, answer, verify=False).failures
    less = runs.shrink(case, failure, 60, answer)
    assert [view.name for view in less.views] == [guilty.name]
    assert len(less.views[0].text) < len(guilty.text)
    assert less.epochs == ()
    assert less.first.statements == ()

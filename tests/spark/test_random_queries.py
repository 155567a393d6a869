"""Random queries, end to end: the first half of a fixed sample of them, and tests of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from plain import Bag
from querygen import Case, Failure, Runs, View
from querygen.dice import Dice
from querygen.histories import first_rows, history
from querygen.nodes import node
from querygen.samples import HALVES, play_sample, too_little


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with Runs() as running:
        yield running


def test_random_views_equal_their_queries(
    runs: Runs, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    counts, wrong = play_sample(runs, HALVES[0])
    for line in counts.lines():
        record_property("random queries", line)
    with capsys.disabled():
        print("", *counts.lines(), sep="\n")
    assert not wrong, "\n".join(wrong)
    assert too_little(counts) == []


PLAIN = View("v0", node("query", "SELECT k, s, f FROM t"))
GROUPS = View("v1", node("query", "SELECT k, count(*) AS n FROM t GROUP BY k"))
ABOVE = View("v2", node("query", "SELECT k, n FROM v1 WHERE n > 0"), ("v1",))
JOINED = View("v3", node("query", "SELECT t.k, u.w FROM t LEFT JOIN u ON t.k = u.k"))
FEW = Case(first_rows(Dice(7)), (PLAIN, GROUPS, ABOVE, JOINED), tuple(history(Dice(8), 2)))


def test_a_case_without_a_fault_passes(runs: Runs) -> None:
    outcome = runs.play(FEW)
    assert outcome.failures == []
    assert outcome.counts.views == 4
    assert outcome.counts.verified > 0


def _one_of(rows: Bag) -> Bag:
    return Bag(dict.fromkeys(islice(rows, 1), 1))


FAULTS: dict[str, Callable[[Bag], Bag]] = {
    "v0": lambda rows: rows - _one_of(rows),
    "v1": lambda rows: rows + _one_of(rows),
    "v3": lambda rows: Bag({tuple("0.0" if value == "-0.0" else value for value in row): n for row, n in rows.items()}),
}
"""What may become of the rows of a view: one is lost, one is there twice, -0.0 has become 0.0."""


def test_faults_in_views_are_reported(runs: Runs) -> None:
    outcome = runs.play(FEW, lambda view, rows: FAULTS[view](rows) if view in FAULTS else rows)
    assert {each.view: each.kind for each in outcome.failures} == dict.fromkeys(FAULTS, "wrong rows")


def test_a_fault_is_shrunken(runs: Runs) -> None:
    """A view that is always wrong becomes a smaller query that Spark still takes, over nothing."""
    case, _ = runs.run(5, 3, 1)
    guilty = max((view for view in case.views if not view.parents), key=lambda view: len(view.text))

    def answer(view: str, rows: Bag) -> Bag:
        return rows + Bag({("wrong",): 1}) if view == guilty.name else rows

    failure = Failure(guilty.name, 0, "wrong rows: one")
    less = runs.shrink(case, failure, 5, answer)
    assert [view.name for view in less.views] == [guilty.name]
    assert len(less.views[0].text) < len(guilty.text)
    assert less.epochs == ()

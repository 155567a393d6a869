"""Random queries, end to end: the other half of the sample, in a file of its own for another worker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from querygen import Runs
from querygen.samples import HALVES, play_sample, too_little


def test_more_random_views_equal_their_queries(
    record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with Runs() as runs:
        counts, wrong = play_sample(runs, HALVES[1])
    for line in counts.lines():
        record_property("more random queries", line)
    with capsys.disabled():
        print("", *counts.lines(), sep="\n")
    assert not wrong, "\n".join(wrong)
    assert too_little(counts) == []

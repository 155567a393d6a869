"""Where wanted keys lie: ranges that hold all of them, and little else. No Spark."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.engine.maintain.keys import Ranges, ranges_of, united


def of(values: list[object]) -> Ranges | None:
    return ranges_of(pa.table({"k": values}), "k", 4)


def test_ranges_are_cut_at_the_widest_gaps() -> None:
    assert of([7, 5, 6, 900, 905, 10_000]) == ((5, 7), (900, 900), (905, 905), (10_000, 10_000))
    day = datetime.date(2026, 1, 1)
    assert of([day]) == ((day, day),)
    assert of(["b", "a", "z"]) == (("a", "z"),)


@pytest.mark.parametrize("values", [[], [1, None], [1.5], [b"x"]])
def test_what_is_not_plain_has_no_ranges(values: list[object]) -> None:
    assert of(values) is None


@given(st.lists(st.lists(st.integers(-50, 50), min_size=1), min_size=1, max_size=4))
def test_ranges_hold_every_value_and_do_not_overlap(several: list[list[int]]) -> None:
    found = [of(list(values)) for values in several]
    assert all(each is not None and len(each) <= 4 for each in found)
    both: Any = united(found)
    assert both is not None
    for values in several:
        assert all(any(low <= value <= high for low, high in both) for value in values)
    assert all(first[1] < second[0] for first, second in itertools.pairwise(both))


def test_one_that_is_unknown_makes_all_unknown() -> None:
    assert united([((1, 2),), None]) is None
    assert united([((1, 2),), (("a", "b"),)]) is None
    assert united([]) is None

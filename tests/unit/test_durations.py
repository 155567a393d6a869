from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.model.durations import format_duration, parse_duration
from stepwell.model.errors import InvalidSettingError


@given(st.integers(-(10**15), 10**15))
def test_a_duration_reads_back_as_it_is_written(microseconds: int) -> None:
    assert parse_duration(format_duration(microseconds)) == microseconds


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("5 seconds", 5_000_000), ("1 day 12 hours", 129_600_000_000), ("250ms", 250_000), ("1.5 min", 90_000_000)],
)
def test_durations_are_words(text: str, microseconds: int) -> None:
    assert parse_duration(text) == microseconds


@pytest.mark.parametrize("text", ["", "5", "soon", "1 month", "1 fortnight", "5 seconds ago!"])
def test_what_is_no_fixed_length_is_refused(text: str) -> None:
    with pytest.raises(InvalidSettingError):
        parse_duration(text)

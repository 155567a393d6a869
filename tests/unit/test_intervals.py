"""Ranges of time, logs of invalidations and buckets against brute force."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from stepwell.model.buckets import Buckets
from stepwell.model.epochs import Epoch
from stepwell.model.intervals import ALWAYS, Interval, Intervals, clusters, common, united, without
from stepwell.model.invalidations import Invalidation, InvalidationLog, cut, merged, shortened, touched, within
from stepwell.model.watermarks import FOREVER, NEVER, Transfer

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR

intervals = st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda pair: Interval(pair[0], pair[0] + pair[1]))
sets = st.lists(intervals, max_size=6).map(united)
entries = st.builds(lambda range_, epoch: Invalidation(range_, Epoch(epoch)), intervals, st.integers(0, 5))


def moments(ranges: Intervals) -> set[int]:
    return {moment for each in ranges for moment in range(each.start, each.end)}


def epochs(log: InvalidationLog) -> dict[int, int]:
    """The step function of a log."""
    found: dict[int, int] = {}
    for each in log:
        for moment in range(each.range.start, each.range.end):
            assert moment not in found, "no two entries meet"
            found[moment] = each.epoch
    return found


@given(sets, sets)
def test_sets_of_ranges_are_sets_of_moments(some: Intervals, others: Intervals) -> None:
    assert moments(common(some, others)) == moments(some) & moments(others)
    assert moments(without(some, others)) == moments(some) - moments(others)
    assert moments(united((*some, *others))) == moments(some) | moments(others)


@given(st.lists(entries, max_size=8))
def test_a_log_knows_the_last_epoch_of_each_moment(given_entries: list[Invalidation]) -> None:
    expected: dict[int, int] = {}
    for each in given_entries:
        for moment in range(each.range.start, each.range.end):
            expected[moment] = max(expected.get(moment, 0), each.epoch)
    assert epochs(merged(given_entries)) == expected


@given(st.lists(entries, max_size=8), sets, st.integers(0, 5), st.integers(1, 3))
def test_cutting_and_shortening_never_forget_a_later_epoch(
    given_entries: list[Invalidation], ranges: Intervals, upto: int, most: int
) -> None:
    log = merged(given_entries)
    left = epochs(cut(log, ranges, Epoch(upto)))
    assert left == {at: epoch for at, epoch in epochs(log).items() if epoch > upto or at not in moments(ranges)}
    short = shortened(log, most)
    assert len(short) <= max(most, 1)
    assert all(epochs(short).get(at, -1) >= epoch for at, epoch in epochs(log).items())
    assert epochs(within(log, ranges)) == {at: e for at, e in epochs(log).items() if at in moments(ranges)}
    assert moments(touched(log)) == set(epochs(log))


def _instant(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    return round(moment.timestamp()) * 1_000_000


def _day_of(zone: str) -> Callable[[int], int]:
    def label(moment: int) -> int:
        local = datetime.datetime.fromtimestamp(moment // 1_000_000, ZoneInfo(zone))
        return round(local.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()) * 1_000_000

    return label


def _month_of(moment: int) -> int:
    at = datetime.datetime.fromtimestamp(moment // 1_000_000, datetime.UTC)
    return round(at.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()) * 1_000_000


KINDS: list[tuple[Buckets, Callable[[int], int]]] = [
    (Buckets(Transfer(_HOUR, _HOUR)), lambda moment: moment // _HOUR * _HOUR),
    (Buckets(Transfer(_DAY, _DAY, origin=5 * _HOUR)), lambda moment: (moment - 5 * _HOUR) // _DAY * _DAY + 5 * _HOUR),
    (Buckets(Transfer(months=1)), _month_of),
    (Buckets(Transfer(_DAY, _DAY, zone="Europe/Vienna")), _day_of("Europe/Vienna")),
]

instants = st.one_of(
    st.integers(_instant("2026-01-01") // 1_000_000, _instant("2026-12-31") // 1_000_000),
    st.integers(_instant("2026-03-28") // 1_000_000, _instant("2026-03-30") // 1_000_000),  # a day of 23 hours
    st.integers(_instant("2026-10-24") // 1_000_000, _instant("2026-10-26") // 1_000_000),  # and one of 25
).map(lambda seconds: seconds * 1_000_000)


@given(st.sampled_from(KINDS), instants, st.integers(1, 100 * 3600), st.lists(instants, max_size=20))
def test_labels_around_a_range_are_those_of_its_moments(
    kind: tuple[Buckets, Callable[[int], int]], start: int, seconds: int, others: list[int]
) -> None:
    buckets, label = kind
    wanted = Interval(start, start + seconds * 1_000_000)
    around = buckets.around((wanted,))
    within_range = [wanted.start, wanted.end - 1_000_000, *(at for at in others if wanted.start <= at < wanted.end)]
    assert all(any(each.start <= label(at) < each.end for each in around) for at in within_range)
    if not buckets.transfer.zone:
        (only,) = around
        assert only == Interval(label(wanted.start), max(label(wanted.end - 1) + 1, only.end))
        assert label(only.end - 1_000_000) == label(wanted.end - 1_000_000)


@given(st.sampled_from(KINDS), instants, st.integers(1, 5000 * 3600), st.lists(instants, max_size=20))
def test_times_of_labels_have_all_rows_of_their_buckets(
    kind: tuple[Buckets, Callable[[int], int]], start: int, seconds: int, others: list[int]
) -> None:
    buckets, label = kind
    wanted = Interval(start, start + seconds * 1_000_000)
    inside = buckets.inside(wanted)
    if inside is None:
        return
    assert wanted.start <= inside.start
    assert inside.end <= wanted.end
    times = buckets.times((inside,))
    for at in others:
        if inside.start <= label(at) < inside.end:
            assert any(each.start <= at < each.end for each in times)
    pieces = buckets.newest_first((inside,), 3)
    assert united(pieces) == (inside,)
    assert pieces == sorted(pieces, reverse=True)


def test_an_invalidation_that_ends_on_a_bucket_leaves_the_next_one_alone() -> None:
    buckets = Buckets(Transfer(_DAY, _DAY))
    day = _instant("2026-03-01")
    assert buckets.around((Interval(day, day + _DAY),)) == (Interval(day, day + _DAY),)
    assert buckets.around((Interval(day, day + _DAY + 1),)) == (Interval(day, day + 2 * _DAY),)


def test_the_ends_of_time_are_in_no_bucket_that_is_stored() -> None:
    for transfer, integer in ((Transfer(_DAY, _DAY), False), (Transfer(months=1), False), (Transfer(10, 10), True)):
        buckets = Buckets(transfer, integer)
        low, high = buckets.storable.start, buckets.storable.end
        assert NEVER < low < high < FOREVER
        assert buckets.around((ALWAYS,)) == (ALWAYS,)
        assert buckets.around((Interval(NEVER, NEVER + 1),)) == (Interval(NEVER, low),)
        assert buckets.around((Interval(FOREVER - 1, FOREVER),)) == (Interval(high, FOREVER),)


@given(st.lists(st.integers(0, 10_000), min_size=1, unique=True), st.integers(1, 500) | st.none(), st.integers(1, 9))
def test_clusters_hold_every_time_and_no_wide_gap_unless_they_would_be_too_many(
    times: list[int], width: int | None, most: int
) -> None:
    times = sorted(times)
    found = clusters(times, width, most)
    assert all(any(each.start <= time < each.end for each in found) for time in times)
    assert all({each.start, each.end - 1} <= set(times) for each in found)
    assert len(found) <= most
    if width is not None and len(found) < most:
        held = [[time for time in times if each.start <= time < each.end] for each in found]
        assert all(after - before <= max(width, 1) for some in held for before, after in itertools.pairwise(some))


@given(st.lists(intervals, max_size=5), st.integers(1, 50))
def test_chunks_are_the_least_that_hold_some_ranges(ranges: list[Interval], width: int) -> None:
    found = Buckets(Transfer(every=10 * width, size=10 * width), integer=True, chunk=width).chunks(ranges)
    for chunk in range(-200 // width - 2, 200 // width + 2):
        own = Interval(chunk * width, (chunk + 1) * width)
        assert any(each.meets(own) for each in found) == any(each.meets(own) for each in ranges)

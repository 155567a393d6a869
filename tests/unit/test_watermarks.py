"""Watermarks without Spark: what views make of them, how they flow through a graph, and the clauses about them."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.graph import WatermarkTracker
from stepwell.model.errors import StepwellError
from stepwell.model.views import Emission, EmitMode, Judge, RelationId
from stepwell.model.watermarks import FOREVER, NEVER, Transfer, moment_of, written
from stepwell.sql import parse
from stepwell.sql.statements import CreateTable, CreateView, ShowWatermarks

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000


# -- the tracker ------------------------------------------------------------------------------------------------------


def test_what_moves_is_told_in_dependency_order() -> None:
    tracker = WatermarkTracker(
        ["trades", "ohlc_1s", "ohlc_1m", "ohlc_1h"],
        {"ohlc_1s": ["trades"], "ohlc_1m": ["ohlc_1s"], "ohlc_1h": ["ohlc_1m"]},
        {
            "ohlc_1s": Transfer(1000, 1000),
            "ohlc_1m": Transfer(60_000, 60_000),
            "ohlc_1h": Transfer(3_600_000, 3_600_000),
        },
    )
    moved = tracker.update("trades", 60_000)
    assert list(moved.items()) == [("trades", 60_000), ("ohlc_1s", 60_000), ("ohlc_1m", 60_000), ("ohlc_1h", 0)]
    assert tracker.update("trades", 60_500) == {"trades": 60_500}
    assert tracker.update("trades", 60_000) == {}


def test_the_least_of_the_parents_counts_and_one_that_says_nothing_holds_all() -> None:
    tracker = WatermarkTracker(["a", "b", "combined"], {"combined": ["a", "b"]})
    assert tracker.update("a", 100) == {"a": 100}
    assert tracker["combined"] == NEVER
    assert tracker.update("b", 80) == {"b": 80, "combined": 80}
    assert tracker.update("b", 120) == {"b": 120, "combined": 100}
    assert tracker.incoming("combined") == 100


def test_a_diamond_moves_once() -> None:
    tracker = WatermarkTracker([1, 2, 3, 4], {2: [1], 3: [1], 4: [2, 3]}, {2: Transfer(10, 10), 3: Transfer(7, 7)})
    assert tracker.update(1, 23) == {1: 23, 2: 20, 3: 21, 4: 20}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(-1000, 1000)), max_size=40), st.randoms())
def test_the_tracker_equals_the_definition(updates: list[tuple[int, int]], random: object) -> None:
    size = 30
    parents = {node: sorted({random.randrange(node) for _ in range(random.randrange(3))}) for node in range(1, size)}  # type: ignore[attr-defined]  # hypothesis types its random as an object
    parents = {node: known for node, known in parents.items() if known}
    through = {node: Transfer(node % 4 * 5, node % 4 * 5, shift=node % 3) for node in parents}
    tracker = WatermarkTracker(range(size), parents, through)
    marks = dict.fromkeys(range(size), NEVER)
    for node, mark in updates:
        if node in parents or node >= size:
            continue
        tracker.update(node, mark)
        marks[node] = max(marks[node], mark)
        for other in range(size):
            if other in parents:
                marks[other] = max(marks[other], through[other](min(marks[each] for each in parents[other])))
        assert {each: tracker[each] for each in range(size)} == marks


def test_a_hop_costs_what_is_said(record_property: Callable[[str, object], None]) -> None:
    """No clock is asserted; `stepwell bench ohlc` measures. Here only: a thousand views, and all of them move."""
    tracker = WatermarkTracker(
        range(1000), {node: [node - 1] for node in range(1, 1000)}, {node: Transfer(10, 10) for node in range(1, 1000)}
    )
    began = time.perf_counter()
    assert len(tracker.update(0, 1000)) == 1000
    record_property("microseconds a view, first time", round((time.perf_counter() - began) * 1000, 2))


# -- windows ----------------------------------------------------------------------------------------------------------


@given(st.integers(-(10**6), 10**6), st.integers(1, 50), st.integers(1, 50), st.integers(-20, 20))
def test_the_first_open_window(mark: int, every: int, size: int, origin: int) -> None:
    found = Transfer(every, size, origin)(mark)
    assert (found - origin) % every == 0
    assert found + size > mark >= found + size - every


@given(
    st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2040, 1, 1)),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
    st.sampled_from([Transfer(DAY, DAY), Transfer(HOUR, HOUR), Transfer(15 * MINUTE, 15 * MINUTE), Transfer(months=1)]),
    st.integers(0, 3 * 86_400),
)
def test_in_a_zone_no_later_row_falls_before_the_watermark(
    at: datetime.datetime, zone: str, width: Transfer, later: int
) -> None:
    """Also where clocks are set back, and local times come twice."""
    mark = moment_of(at)
    transfer = Transfer(width.every, width.size, width.origin, 0, width.months, zone)
    assert transfer(mark) <= _bucket(mark + later * SECOND, width, ZoneInfo(zone))


def _bucket(moment: int, width: Transfer, zone: ZoneInfo) -> int:
    """The bucket of a moment, as Spark computes it: to local time, down, and back."""
    utc = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=moment)
    local = utc.astimezone(zone).replace(tzinfo=None)
    if width.months:
        start = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    else:
        since = (local - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
        start = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=since // width.every * width.every)
    return moment_of(start.replace(tzinfo=zone))


def test_the_ends_of_the_type_stay_where_they_are() -> None:
    for transfer in (Transfer(), Transfer(10, 10), Transfer(months=1, zone="Europe/Berlin"), Transfer(shift=5)):
        assert transfer(NEVER) == NEVER
        assert transfer(FOREVER) == FOREVER
    assert Transfer(shift=10)(FOREVER - 5) == FOREVER
    assert Transfer(shift=-10)(NEVER + 5) == NEVER
    assert Transfer(months=1)(FOREVER - 1) < FOREVER
    assert [written(each, integer=False) for each in (NEVER, FOREVER, 0)] == [
        "-infinity",
        "infinity",
        "1970-01-01 00:00:00",
    ]
    assert written(FOREVER - 1, integer=False).endswith("microseconds")
    assert written(5, integer=True) == "5"


def test_a_window_is_final_after_the_lateness() -> None:
    judge = Judge("_sw_g0", Transfer(MINUTE, MINUTE), 30 * SECOND, RelationId(1))
    assert judge.final(NEVER) == NEVER
    assert judge.final(MINUTE + 29 * SECOND) == 0
    assert judge.final(MINUTE + 30 * SECOND) == MINUTE
    assert judge.final(NEVER + 3) <= 0
    assert Emission(EmitMode.WATERMARK).tolerance == 0
    assert Emission().tolerance is None
    assert Emission(lateness=5).tolerance == 5


@pytest.mark.parametrize(
    ("inner", "outer", "nests"),
    [
        (Transfer(SECOND, SECOND), Transfer(MINUTE, MINUTE), True),
        (Transfer(7 * SECOND, 7 * SECOND), Transfer(MINUTE, MINUTE), False),
        (Transfer(SECOND, SECOND, 500_000), Transfer(MINUTE, MINUTE), False),
        (Transfer(months=1), Transfer(months=3), True),
        (Transfer(months=1), Transfer(DAY, DAY), False),
        (Transfer(DAY, DAY), Transfer(), True),
    ],
)
def test_windows_nest_or_do_not(inner: Transfer, outer: Transfer, nests: bool) -> None:
    assert inner.nests(outer) == nests


# -- clauses ----------------------------------------------------------------------------------------------------------

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT a FROM t"


@pytest.mark.parametrize(
    ("clauses", "mode", "every", "lateness"),
    [
        ("", None, 0, None),
        ("EMIT ON UPDATE", EmitMode.UPDATE, 0, None),
        ("EMIT AFTER WATERMARK", EmitMode.WATERMARK, 0, None),
        ("EMIT ON WINDOW CLOSE", EmitMode.WATERMARK, 0, None),
        ("EMIT PERIODICALLY INTERVAL '10 seconds'", EmitMode.PERIODICALLY, 10 * SECOND, None),
        ("ALLOW LATENESS INTERVAL '1 minute' EMIT AFTER WATERMARK", EmitMode.WATERMARK, 0, (None, "1 minute")),
        ("EMIT AFTER WATERMARK ALLOW LATENESS INTERVAL 5 SECONDS", EmitMode.WATERMARK, 0, (None, "5 SECONDS")),
        ("ALLOW LATENESS 100", None, 0, (100, None)),
    ],
)
def test_clauses(clauses: str, mode: EmitMode | None, every: int, lateness: object) -> None:
    body = parse(f"{VIEW} {clauses}")[0].body
    assert isinstance(body, CreateView)
    assert body.query.text == "SELECT a FROM t"
    assert (body.emit.mode, body.emit.every, body.emit.lateness) == (mode, every, lateness)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"{VIEW} EMIT AFTER NOON", "expected ON UPDATE, AFTER WATERMARK"),
        (f"{VIEW} EMIT PERIODICALLY", "expected INTERVAL"),
        (f"{VIEW} EMIT PERIODICALLY 10", "takes an interval"),
        (f"{VIEW} EMIT PERIODICALLY INTERVAL '0 seconds'", "more than nothing"),
        (f"{VIEW} EMIT PERIODICALLY INTERVAL '1 month'", "is not a duration"),
        (f"{VIEW} ALLOW LATENESS INTERVAL '-1 second'", "cannot be negative"),
        (f"{VIEW} ALLOW LATENESS -5", "cannot be negative"),
        (f"{VIEW} EMIT ON UPDATE EMIT ON UPDATE", "expected EMIT, ALLOW LATENESS or the end"),
        ("CREATE VIEW v AS SELECT a FROM t EMIT AFTER WATERMARK", "a plain view"),
        ("CREATE TABLE t (a INT) WITH (idle_timeout = INTERVAL '1 second')", "the table has none"),
        ("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (idle = INTERVAL '1 second')", 'no option "idle"'),
        ("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (max_future = 5)", "more than nothing"),
        ("CREATE TABLE t (k INT, WATERMARK FOR k AS k) WITH (max_future = INTERVAL '1 day')", "compares with the clock"),
        ("CREATE TABLE t (s STRING, WATERMARK FOR s AS s - INTERVAL '1 second')", "needs a time column"),
        ("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR tz AS tz)", 'column "tz" does not exist'),
        ("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '-1 second')", "cannot be negative"),
    ],
)  # fmt: skip
def test_clauses_that_are_refused(text: str, error: str) -> None:
    with pytest.raises(StepwellError, match=error):
        parse(text)


def test_a_table_says_what_is_idle_and_what_is_too_far_ahead() -> None:
    text = "CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') WITH (idle_timeout = INTERVAL '1 minute', max_future = INTERVAL '1 hour')"
    body = parse(text)[0].body
    assert isinstance(body, CreateTable)
    assert body.watermark is not None
    assert (body.watermark.delay, body.watermark.idle_timeout, body.watermark.max_future) == (5 * SECOND, MINUTE, HOUR)
    assert isinstance(parse("SHOW WATERMARKS")[0].body, ShowWatermarks)


@pytest.mark.parametrize("value", ["soon", 1.5, None, True])
def test_what_is_no_moment(value: object) -> None:
    with pytest.raises(TypeError):
        moment_of(value)


def test_moments() -> None:
    assert moment_of(5) == 5
    assert moment_of(datetime.date(1970, 1, 2)) == DAY
    berlin = datetime.datetime(1970, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    assert moment_of(berlin) == 0

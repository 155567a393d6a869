"""Windows of time as groups: every form equals its query over random trades, late, corrected and taken back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import stepwell
from stepwell.model.errors import StepwellError
from views import STRICT, answer, creates, wrong_views

EXAMPLES = 100 if os.environ.get("STEPWELL_TORTURE") else 2

SECOND = "INTERVAL '1 second'"
BARS = {
    "ohlc_1s": f"""
        SELECT symbol, TUMBLE_START(event_time, {SECOND}) AS bar_time,
               FIRST_VALUE(price) AS open, MAX(price) AS high, MIN(price) AS low, LAST_VALUE(price) AS close,
               SUM(quantity) AS volume
        FROM trades GROUP BY symbol, TUMBLE(event_time, {SECOND})""",
    "ohlc_1m": """
        SELECT symbol, TUMBLE_START(bar_time, INTERVAL '1 minute') AS bar_time,
               FIRST_VALUE(open) AS open, MAX(high) AS high, MIN(low) AS low, LAST_VALUE(close) AS close,
               SUM(volume) AS volume
        FROM ohlc_1s GROUP BY symbol, TUMBLE(bar_time, INTERVAL '1 minute')""",
    "ohlc_1h": """
        SELECT symbol, TUMBLE_START(bar_time, INTERVAL '1 hour') AS bar_time,
               FIRST_VALUE(open) AS open, MAX(high) AS high, MIN(low) AS low, LAST_VALUE(close) AS close,
               SUM(volume) AS volume
        FROM ohlc_1m GROUP BY symbol, TUMBLE(bar_time, INTERVAL '1 hour')""",
}
WIDTHS = {"ohlc_1s": "1 second", "ohlc_1m": "1 minute", "ohlc_1h": "1 hour"}
EXPECTED = {
    name: f"""
        SELECT symbol, window(event_time, '{width}').start AS bar_time, min_by(price, named_struct('t', event_time, 'i', id)) AS open,
               max(price) AS high, min(price) AS low, max_by(price, named_struct('t', event_time, 'i', id)) AS close,
               sum(quantity) AS volume
        FROM trades GROUP BY symbol, window(event_time, '{width}')"""
    for name, width in WIDTHS.items()
}
"""Each level straight from the trades: the numbers of the rows are the order in which they came."""

WINDOWS = {
    "hopping": "SELECT symbol, HOP_START(event_time, INTERVAL '10 seconds', INTERVAL 30 SECONDS) AS since, count(*) AS n FROM trades GROUP BY symbol, HOP(event_time, INTERVAL '10 seconds', INTERVAL 30 SECONDS)",
    "sessions": "SELECT symbol, SESSION_START(event_time, INTERVAL '20 seconds') AS since, SESSION_END(event_time, INTERVAL '20 seconds') AS until, count(*) AS n, sum(quantity) AS q FROM trades GROUP BY symbol, SESSION(event_time, INTERVAL '20 seconds')",
    "spark_sessions": "SELECT symbol, session_window.start AS since, max(price) AS top FROM trades WHERE quantity > 1 GROUP BY symbol, session_window(event_time, '7 seconds') HAVING count(*) > 1",
    "sessions_of_all": "SELECT SESSION_START(event_time, INTERVAL '5 seconds') AS since, count(*) AS n FROM trades GROUP BY SESSION(event_time, INTERVAL '5 seconds')",
    "spark_window": "SELECT window.start AS since, window.end AS until, window, avg(price) AS p FROM trades GROUP BY window(event_time, '1 minute')",
    "in_from": "SELECT symbol, window_start, window_end, sum(quantity) AS q FROM TUMBLE(trades, event_time, INTERVAL '30 seconds') GROUP BY symbol, window_start, window_end",
    "sessions_in_from": "SELECT symbol, window_start, window_end, count(*) AS n FROM SESSION(trades, event_time, INTERVAL '20 seconds', symbol) GROUP BY symbol, window_start, window_end",
    "rows_in_from": "SELECT id, window_start FROM HOP(trades, event_time, INTERVAL '1 minute', INTERVAL '2 minutes') AS h WHERE price > 1",
    "bucketed": "SELECT time_bucket(INTERVAL '5 minutes', event_time) AS b, count(*) AS n FROM trades GROUP BY time_bucket(INTERVAL '5 minutes', event_time)",
    "by_month": "SELECT time_bucket(INTERVAL '1 month', event_time, 'Europe/Berlin') AS b, count(*) AS n FROM trades GROUP BY 1",
    "with_origin": "SELECT time_bucket(INTERVAL '7 days', event_time, TIMESTAMP '2024-01-02 00:00:00') AS b, max(price) AS top FROM trades GROUP BY 1",
    "numbered": "SELECT TUMBLE_START(id, 10) AS since, TUMBLE_END(id, 10) AS until, count(*) AS n FROM trades GROUP BY TUMBLE(id, 10)",
}

START = datetime(
    2024, 3, 31, 0, 59, 50
)  # summer time begins in Berlin ten seconds later, and the month ends soon after
instants = st.integers(0, 90).map(lambda seconds: START + timedelta(seconds=seconds)) | st.sampled_from(
    [START + timedelta(hours=1, milliseconds=500), START + timedelta(days=1), None]
)
trades = st.lists(
    st.tuples(st.sampled_from("AB"), instants, st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=6
)
changes = st.one_of(
    trades.map(lambda rows: ("insert", rows)),
    trades.map(lambda rows: ("insert", rows)),
    st.integers(0, 60).map(lambda n: ("sql", f"DELETE FROM trades WHERE id % 7 = {n % 7}")),
    st.integers(0, 60).map(lambda n: ("sql", f"UPDATE trades SET price = price + 1 WHERE id % 5 = {n % 5}")),
    st.integers(0, 60).map(lambda n: ("sql", f"UPDATE trades SET event_time = event_time + INTERVAL '13 seconds' WHERE id % 6 = {n % 6}")),
)  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path_factory.mktemp("windows")) as db:
        db.sql(
            "CREATE TABLE trades (id BIGINT, symbol STRING, event_time TIMESTAMP, price INT, quantity BIGINT,"
            " WATERMARK FOR event_time AS event_time - INTERVAL '5 seconds')"
        )
        anew = ("sessions_of_all", "sessions_in_from")
        db.sql(creates({name: query for name, query in (BARS | WINDOWS).items() if name not in anew}, STRICT))
        db.sql(creates({name: WINDOWS[name] for name in anew}))
        yield db


def test_maintained_equals_recomputed(
    shared: stepwell.Database, record_property: Callable[[str, object], None]
) -> None:
    played, number = 0, 0

    @settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.generate], database=None)
    @given(st.lists(changes, min_size=1, max_size=3))
    def epoch(batch: list[tuple[str, Any]]) -> None:
        nonlocal played, number
        if shared.in_transaction:
            shared.sql("ROLLBACK")  # of an example that failed
        shared.sql("BEGIN")
        for what, value in batch:
            if what == "insert":
                shared.insert("trades", [(number := number + 1, *row) for row in value])
            else:
                shared.sql(value)
        shared.sql("COMMIT")
        assert wrong_views(shared, EXPECTED | WINDOWS) == []
        played += 1

    epoch()
    record_property("epochs compared", played)
    print(f"{played} epochs, {len(EXPECTED | WINDOWS)} views compared after each")
    assert played >= EXAMPLES
    for name in BARS | WINDOWS:
        assert answer(shared, f"VERIFY {name}")[0][2] is True, name


def test_sessions_in_from_are_those_of_group_by(shared: stepwell.Database) -> None:
    named = "SELECT symbol, since, until, n FROM sessions"
    assert sorted(answer(shared, named)) == sorted(answer(shared, "SELECT * FROM sessions_in_from"))


def test_time_passes_through_the_cascade(shared: stepwell.Database) -> None:
    times = dict(answer(shared, "SELECT name, time_column FROM stepwell.tables"))
    assert [times[name] for name in ("trades", *BARS)] == ["event_time", "bar_time", "bar_time", "bar_time"]
    assert times["hopping"] == "since"
    assert times["numbered"] is None


def test_the_bars_of_three_trades(tmp_path_factory: pytest.TempPathFactory) -> None:
    with stepwell.connect(tmp_path_factory.mktemp("bars")) as db:
        db.sql(
            "CREATE TABLE trades (symbol STRING, event_time TIMESTAMP, price DOUBLE, quantity BIGINT,"
            " WATERMARK FOR event_time AS event_time)"
        )
        db.sql(creates(BARS))
        db.sql("""INSERT INTO trades VALUES ('A', timestamp_millis(1500), 105.0, 1), ('A', timestamp_millis(1000), 100.0, 1),
                  ('A', timestamp_millis(2000), 98.0, 1)""")
        bars = "SELECT unix_millis(bar_time), open, high, low, close, volume FROM {} ORDER BY bar_time"
        assert answer(db, bars.format("ohlc_1s")) == [
            (1000, 100.0, 105.0, 100.0, 105.0, 2),
            (2000, 98.0, 98.0, 98.0, 98.0, 1),
        ]
        assert answer(db, bars.format("ohlc_1h")) == [(0, 100.0, 105.0, 98.0, 98.0, 3)]
        assert answer(db, "SHOW DEPENDENCIES FOR ohlc_1h")[0][-1] == "ohlc_1h -> ohlc_1m -> ohlc_1s -> trades"
        db.sql("DROP MATERIALIZED VIEW ohlc_1m CASCADE")
        assert [name for name, *_ in answer(db, "SHOW MATERIALIZED VIEWS")] == ["ohlc_1s"]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT count(*) AS n FROM trades GROUP BY TUMBLE(event_time, INTERVAL '0 seconds')", "more than nothing"),
        ("SELECT count(*) AS n FROM trades GROUP BY TUMBLE(event_time, INTERVAL '-1 minute')", "more than nothing"),
        ("SELECT count(*) AS n FROM trades GROUP BY TUMBLE(event_time, price)", "must be a constant"),
        ("SELECT count(*) AS n FROM trades GROUP BY TUMBLE(event_time, INTERVAL '1 month')", "no fixed length"),
        ("SELECT count(*) AS n FROM trades GROUP BY TUMBLE(event_time)", "a time and a width"),
        ("SELECT count(*) AS n FROM trades GROUP BY TUMBLE(id, 0)", "more than nothing"),
        ("SELECT count(*) AS n FROM trades GROUP BY TUMBLE(symbol, INTERVAL '1 minute')", "STRING|window"),
        ("SELECT time_bucket(INTERVAL '1 day') AS b FROM trades", "time_bucket takes"),
    ],
)
def test_bad_windows_are_refused(shared: stepwell.Database, query: str, why: str) -> None:
    with pytest.raises(StepwellError, match=why):
        shared.sql(f"CREATE MATERIALIZED VIEW bad AS {query}")

"""Event time: views in every mode against the model in `times`, over random trades that are late and corrected."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import stepwell
from stepwell import StepwellWarning
from times import SECOND, Content, Level, first_open, grouped, hopping, sessions, tumbling
from views import answer

EXAMPLES = 60 if os.environ.get("STEPWELL_TORTURE") else 2
BASE = datetime(2024, 5, 1)

TRADES = """
CREATE TABLE trades (id BIGINT, symbol STRING, price INT, quantity BIGINT, event_time TIMESTAMP,
  WATERMARK FOR event_time AS event_time - INTERVAL '5 seconds')"""


def bars(source: str, time: str, width: str, columns: str, clauses: str = "") -> str:
    return f"""
        SELECT symbol, TUMBLE_START({time}, INTERVAL '{width}') AS bar_time, {columns}
        FROM {source} GROUP BY symbol, TUMBLE({time}, INTERVAL '{width}') {clauses}"""


OF_TRADES = "FIRST_VALUE(price) AS open, MAX(price) AS high, MIN(price) AS low, LAST_VALUE(price) AS close, SUM(quantity) AS volume"
OF_BARS = (
    "FIRST_VALUE(open) AS open, MAX(high) AS high, MIN(low) AS low, LAST_VALUE(close) AS close, SUM(volume) AS volume"
)


@dataclass
class Case:
    """A view: what it reads, its query, and the model of it."""

    parent: str
    query: str
    level: Level


def cases() -> dict[str, Case]:
    def bar(symbol: Any, start: int, rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        prices = [row[2] for row in rows]
        return symbol, start, prices[0], max(prices), min(prices), prices[-1], sum(row[3] for row in rows)

    def bar_of_bars(symbol: Any, start: int, rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        opened, closed = rows[0][2], rows[-1][5]
        highest, lowest = max(row[3] for row in rows), min(row[4] for row in rows)
        return symbol, start, opened, highest, lowest, closed, sum(row[6] for row in rows)

    def of_trades(size: int, **more: Any) -> Level:
        rows = grouped(lambda row: row[1], lambda identity, row: (row[4], identity), bar, size)
        return Level(tumbling(4, size), rows, first_open(size, size), **more)

    def of_bars(size: int, **more: Any) -> Level:
        rows = grouped(lambda row: row[0], lambda identity, row: row[1], bar_of_bars, size)
        return Level(tumbling(1, size), rows, first_open(size, size), **more)

    minute, gap = 60 * SECOND, 4 * SECOND
    hops = grouped(lambda row: row[1], lambda i, row: (row[4], i), lambda s, at, rows: (s, at, len(rows)), 20 * SECOND)

    def each(counted: dict[tuple[Hashable, int], tuple[Any, ...]]) -> dict[Hashable, tuple[tuple[Any, ...], int]]:
        return {identity: ((row[0], row[4], row[2]), row[4] + 1) for (identity, _), row in counted.items()}

    late = "ALLOW LATENESS INTERVAL"
    return {
        "seconds": Case(
            "trades", bars("trades", "event_time", "1 second", OF_TRADES), of_trades(SECOND)
        ),
        "tens": Case(
            "trades",
            bars("trades", "event_time", "10 seconds", OF_TRADES, f"{late} '7 seconds'"),
            of_trades(10 * SECOND, lateness=7 * SECOND),
        ),
        "minutes": Case(
            "seconds",
            bars("seconds", "bar_time", "1 minute", OF_BARS, "EMIT AFTER WATERMARK"),
            of_bars(minute, after_watermark=True),
        ),
        "corrected": Case(
            "seconds",
            bars("seconds", "bar_time", "1 minute", OF_BARS, f"EMIT AFTER WATERMARK {late} '2 minutes'"),
            of_bars(minute, after_watermark=True, lateness=2 * minute),
        ),
        "fives": Case(
            "corrected",
            bars("corrected", "bar_time", "5 minutes", OF_BARS, f"{late} '1 minute' EMIT ON WINDOW CLOSE"),
            of_bars(5 * minute, after_watermark=True, lateness=minute),
        ),
        "hops": Case(
            "trades",
            "SELECT symbol, HOP_START(event_time, INTERVAL '10 seconds', INTERVAL '20 seconds') AS since, count(*) AS n"
            " FROM trades GROUP BY symbol, HOP(event_time, INTERVAL '10 seconds', INTERVAL '20 seconds')"
            f" EMIT AFTER WATERMARK {late} '3 seconds'",
            Level(
                hopping(4, 10 * SECOND, 20 * SECOND), hops, first_open(10 * SECOND, 20 * SECOND),
                after_watermark=True, lateness=3 * SECOND, needs=lambda row: (row[1], row[4]),
            ),
        ),
        "single": Case(
            "trades",
            "SELECT id, event_time, price FROM trades WHERE symbol = 'A' EMIT AFTER WATERMARK",
            Level(
                lambda row: [(row[4], row[4] + 1)] if row[1] == "A" and row[4] is not None else [],
                each, lambda incoming: incoming, after_watermark=True, needs=lambda row: (row[0], row[1], row[2], row[4]),
            ),
        ),
        "visits": Case(
            "trades",
            "SELECT symbol, SESSION_START(event_time, INTERVAL '4 seconds') AS since,"
            " SESSION_END(event_time, INTERVAL '4 seconds') AS until, count(*) AS n"
            " FROM trades GROUP BY symbol, SESSION(event_time, INTERVAL '4 seconds')"
            f" EMIT AFTER WATERMARK {late} '10 seconds'",
            Level(
                lambda row: [(row[4], row[4] + gap + 1)] if row[4] is not None else [],
                sessions(gap), lambda incoming: incoming, after_watermark=True, lateness=10 * SECOND,
                needs=lambda row: (row[1], row[4]),
            ),
        ),
    }  # fmt: skip


LATE = {
    "tens": "id, symbol, price, quantity, event_time", "hops": "id, symbol, price, quantity, event_time",
    "minutes": "symbol, bar_time, open, high, low, close, volume", "fives": "symbol, bar_time, open, high, low, close, volume",
    "corrected": "symbol, bar_time, open, high, low, close, volume", "single": "id, symbol, price, quantity, event_time",
    "visits": "symbol, event_time",
}  # fmt: skip
"""The columns of what was late, as far as the model knows them."""


def micros(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - BASE) // timedelta(microseconds=1)
    return value


def rows_of(db: stepwell.Database, query: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(micros(value) for value in row) for row in answer(db, query))


class Market:
    """The trades, and every view of them beside its model."""

    def __init__(self, db: stepwell.Database) -> None:
        self.db = db
        self.cases = cases()
        self.trades: Content = {}
        self.now = 0
        self.mark = -(2**63)
        self._next = 1
        db.sql(TRADES)
        for name, case in self.cases.items():
            text = f"CREATE MATERIALIZED VIEW {name} AS {case.query}"
            if name == "fives":
                with pytest.warns(StepwellWarning, match='"fives" allows less lateness than "corrected"'):
                    db.sql(text)
            else:
                db.sql(text)

    def change(self, actions: list[tuple[Any, ...]]) -> None:
        """One epoch of these, in both."""
        before = dict(self.trades)
        self.db.sql("BEGIN")
        for kind, *values in actions:
            if kind == "insert":
                self._insert(values[0])
            elif kind == "delete":
                self.db.sql(f"DELETE FROM trades WHERE id % 7 = {values[0]}")
                self.trades = {i: row for i, row in self.trades.items() if row[0] % 7 != values[0]}
            else:
                number, price, seconds = values
                move = f"event_time + INTERVAL '{seconds}' SECOND"
                self.db.sql(f"UPDATE trades SET price = {price}, event_time = {move} WHERE id % 7 = {number}")
                for i, row in self.trades.items():
                    if row[0] % 7 == number:
                        moved = None if row[4] is None else row[4] + seconds * SECOND
                        self.trades[i] = (row[0], row[1], price, row[3], moved)
        self.db.sql("COMMIT")
        came = [row[4] for i, row in self.trades.items() if before.get(i) != row and row[4] is not None]
        self.mark = max([self.mark, *(time - 5 * SECOND for time in came)])
        self._follow(before)

    def advance(self, upto: int) -> None:
        if upto > self.mark:
            self.db.advance_watermark("trades", BASE + upto * timedelta(microseconds=1))
            self.mark = upto
            self._follow(dict(self.trades))

    def _insert(self, rows: list[tuple[str, int, int, float | None]]) -> None:
        new = []
        for symbol, price, quantity, offset in rows:
            time = None if offset is None else self.now + round(offset * SECOND)
            self.trades[self._next] = (self._next, symbol, price, quantity, time)
            at = None if time is None else BASE + time * timedelta(microseconds=1)
            new.append((self._next, symbol, price, quantity, at))
            self._next += 1
        self.db.insert("trades", new)

    def _follow(self, before: Content) -> None:
        shown: dict[str, tuple[Content, Content]] = {"trades": (before, dict(self.trades))}
        marks = {"trades": self.mark}
        for name, case in self.cases.items():
            shown[name] = case.level.follow(*shown[case.parent], marks[case.parent])
            marks[name] = case.level.mark

    def wrong(self) -> dict[str, str]:
        """The views that are not what the model says, each with the difference."""
        found = {}
        for name, case in self.cases.items():
            held, expected = rows_of(self.db, f"SELECT * FROM {name}"), Counter(case.level.shown.values())
            if held != expected:
                found[name] = f"missing {expected - held}, unexpected {held - expected}"
            if name in LATE:
                late = rows_of(self.db, f"SELECT {LATE[name]}, _diff FROM {name}$late")
                ledger = case.level.ledger
                if name == "visits":
                    ledger = Counter()
                    for row, n in case.level.ledger.items():
                        ledger[row[1], row[4], row[5]] += n
                if late != ledger:
                    found[f"{name}$late"] = f"missing {ledger - late}, unexpected {late - ledger}"
        return found


moments = st.one_of(st.floats(-2, 20), st.floats(-90, 20), st.integers(-10, 20), st.sampled_from([0, 1, 1, 10, 60]))
trades = st.tuples(
    st.sampled_from("AAB"),
    st.integers(1, 9),
    st.integers(1, 3),
    moments.map(lambda at: round(float(at), 3)) | st.none(),
)
actions = st.one_of(
    st.builds(lambda rows: ("insert", rows), st.lists(trades, min_size=1, max_size=8)),
    st.builds(lambda rows: ("insert", rows), st.lists(trades, min_size=1, max_size=8)),
    st.builds(lambda n: ("delete", n), st.integers(0, 6)),
    st.builds(lambda n, price, by: ("update", n, price, by), st.integers(0, 6), st.integers(1, 9), st.sampled_from([0, 0, 1, -30])),
)  # fmt: skip


def play(market: Market, examples: int) -> int:
    played = 0

    @settings(max_examples=examples, phases=[Phase.generate], database=None)
    @given(st.lists(actions, min_size=1, max_size=3), st.sampled_from([1, 15, 40, 100]), st.booleans())
    def epoch(batch: list[tuple[Any, ...]], seconds: int, claims: bool) -> None:
        nonlocal played
        if market.db.in_transaction:
            market.db.sql("ROLLBACK")
        market.change(batch)
        if claims:
            market.advance(market.now - 3 * SECOND)
        market.now += seconds * SECOND
        assert market.wrong() == {}
        played += 1

    epoch()
    return played


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    with stepwell.connect(tmp_path_factory.mktemp("times") / "warehouse") as db:
        yield Market(db)


def test_every_level_equals_what_counted_and_the_ledger_holds_the_rest(
    market: Market, record_property: Callable[[str, object], None]
) -> None:
    played = play(market, EXAMPLES)
    # late and corrected for certain, whatever was drawn
    market.change([("insert", [("A", 5, 1, 0.5), ("A", 7, 1, 200.0)])])
    market.now += 200 * SECOND
    market.change([("insert", [("A", 9, 1, -60.0), ("A", 1, 2, -900.0)])])
    market.now = -(-market.now // (300 * SECOND)) * 300 * SECOND  # the last minute of five, corrected after these
    market.change([("insert", [("A", 3, 1, -10.0), ("A", 4, 1, 95.0)])])
    market.change([("insert", [("A", 8, 1, -5.0)])])
    assert market.wrong() == {}
    late = {name: case.level.ledger.total() for name, case in market.cases.items()}
    corrected = {name: case.level.corrected for name, case in market.cases.items()}
    record_property("epochs of event time compared", played + 4)
    record_property("late rows", late)
    record_property("published windows corrected", corrected)
    assert all(late[name] for name in LATE), late
    assert corrected["corrected"], corrected
    for name in market.cases:
        assert market.db.sql(f"VERIFY {name}").collect()[0]["ok"], name
    totals = Counter[str]()
    for name, _, inserted, retracted in answer(market.db, "SELECT * FROM stepwell.late_rows"):
        totals[name] += inserted + retracted
    assert totals == Counter({name: case.level.ledger.total() for name, case in market.cases.items()})


def test_watermarks_of_all_levels_are_those_of_the_model(market: Market) -> None:
    marks = {row[0]: row[4] for row in answer(market.db, "SHOW WATERMARKS")}
    origin = (BASE - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    assert marks["trades"] == market.mark + origin
    assert {name: marks[name] - origin for name in market.cases} == {
        name: case.level.mark for name, case in market.cases.items()
    }


def test_a_seeded_bug_is_seen(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging by where the watermark ends up, instead of where it was, is what a careless hand would do."""
    from stepwell.engine.maintain.event_time import Marks

    true = Marks.record
    monkeypatch.setattr(
        Marks,
        "record",
        lambda self, id_: (
            true(self, id_) if id_ not in self.after else _hasty(true(self, id_), self.after.incoming(id_))
        ),
    )
    market.now += 500 * SECOND
    market.change([("insert", [("A", 5, 1, 0.0), ("A", 6, 1, -20.0), ("A", 6, 1, 100.0)])])
    assert market.wrong() != {}


def _hasty(record: Any, incoming: int) -> Any:
    import dataclasses

    return dataclasses.replace(record, incoming=incoming)

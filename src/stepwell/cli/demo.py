"""`stepwell demo`: a market's trades become bars of a second, a minute and an hour, live, late and corrected."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from stepwell.cli import fail
from stepwell.cli.market import Market, Trade, to_arrow
from stepwell.cli.output import render
from stepwell.cli.report import write_report
from stepwell.cli.screen import Screen, Shown
from stepwell.database import Database, connect
from stepwell.graph import draw_text
from stepwell.model.errors import StepwellError
from stepwell.model.rows import Rows

LEVELS = ("ohlc_1s", "ohlc_1m", "ohlc_1h")

TABLE = """
CREATE TABLE trades (
  id BIGINT, symbol STRING, price DOUBLE, quantity BIGINT, event_time TIMESTAMP,
  WATERMARK FOR event_time AS event_time - INTERVAL '2 seconds'
)"""

VIEWS = """
CREATE MATERIALIZED VIEW ohlc_1s AS
SELECT symbol, TUMBLE_START(event_time, INTERVAL '1 second') AS bar_time, FIRST_VALUE(price) AS open,
       MAX(price) AS high, MIN(price) AS low, LAST_VALUE(price) AS close, SUM(quantity) AS volume
FROM trades GROUP BY symbol, TUMBLE(event_time, INTERVAL '1 second');

CREATE MATERIALIZED VIEW ohlc_1m AS
SELECT symbol, TUMBLE_START(bar_time, INTERVAL '1 minute') AS bar_time, FIRST_VALUE(open) AS open,
       MAX(high) AS high, MIN(low) AS low, LAST_VALUE(close) AS close, SUM(volume) AS volume
FROM ohlc_1s GROUP BY symbol, TUMBLE(bar_time, INTERVAL '1 minute')
EMIT AFTER WATERMARK ALLOW LATENESS INTERVAL '1 hour';

CREATE MATERIALIZED VIEW ohlc_1h AS
SELECT symbol, TUMBLE_START(bar_time, INTERVAL '1 hour') AS bar_time, FIRST_VALUE(open) AS open,
       MAX(high) AS high, MIN(low) AS low, LAST_VALUE(close) AS close, SUM(volume) AS volume
FROM ohlc_1m GROUP BY symbol, TUMBLE(bar_time, INTERVAL '1 hour')
EMIT AFTER WATERMARK ALLOW LATENESS INTERVAL '1 day';
"""

DEFERRED = """
CREATE MATERIALIZED VIEW traded WITH (refresh = 'deferred', lag = INTERVAL 1 HOUR) AS
SELECT time_bucket(INTERVAL 1 MINUTE, event_time) AS minute, symbol, count(*) AS trades, avg(price) AS mean
FROM trades GROUP BY 1, 2
"""


@click.command(short_help="See bars appear live, and late trades correct them.")
@click.option("-w", "--warehouse", default="stepwell-demo", show_default=True, metavar="FOLDER", help="Where it lies.")
@click.option("--out", default="stepwell-demo.html", show_default=True, metavar="FILE", help="The page to write.")
@click.option("--symbols", default=12, show_default=True, type=click.IntRange(1, 200), help="How many are traded.")
@click.option("--rate", default=4.0, show_default=True, type=click.FloatRange(0.1, 1000), help="Trades a second.")
@click.option("--hours", default=2.6, show_default=True, type=click.FloatRange(1.1, 24), help="Hours of the market.")
@click.option(
    "--epochs", default=4, show_default=True, type=click.IntRange(1, 500), help="How many batches they come in."
)
@click.option("--pause", default=0.0, show_default=True, help="Seconds to wait between two batches.")
@click.option("--seed", default=7, show_default=True, help="The same seed gives the same trades.")
def command(
    warehouse: str, out: str, symbols: int, rate: float, hours: float, epochs: int, pause: float, seed: int
) -> None:
    """A morning of trades as bars of 1 second, 1 minute and 1 hour: as they come, late, and corrected.

    Takes about a minute on two cores. The warehouse stays, to be looked at with `stepwell sql -w stepwell-demo`.
    """
    screen, began = Screen(), time.monotonic()
    try:
        screen.say(f"A warehouse in {warehouse}: Parquet files, Delta logs, a SQLite catalog. Spark is starting.")
        with connect(warehouse) as database:
            demo = Demo(database, screen, Market(symbols, rate, seed))
            demo.play(round(hours * 3600), epochs, pause)
            write_report(database, Path(out), title="stepwell demo: bars of a morning")
        screen.title(f"That was {time.monotonic() - began:.0f} seconds, with Spark starting.")
        _summarize(screen, warehouse, out)
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)


class Demo:
    """One run: what is played, and what is shown of it."""

    def __init__(self, database: Database, screen: Screen, market: Market) -> None:
        self.db = database
        self.screen = screen
        self.market = market

    def play(self, seconds: int, epochs: int, pause: float) -> None:
        self.db.sql("DROP TABLE IF EXISTS trades CASCADE")
        self.screen.title("Trades, and three views: each reads the one above it.")
        self.screen.code(VIEWS.strip())
        self.db.sql(TABLE)
        self.db.sql(VIEWS)
        for line in draw_text(self.db.nodes()):
            self.screen.say(line)
        self._follow(seconds, epochs, pause)
        self._late_burst()
        self._correction()
        self._explain()
        self._verify()
        self._deferred()

    def _follow(self, seconds: int, epochs: int, pause: float) -> None:
        self.screen.title(f"{seconds / 3600:.1f} hours of trades in {epochs} batches: bars appear, level by level.")
        with self.screen.following():
            for number in range(epochs):
                trades = self.market.run(seconds * (number + 1) // epochs - seconds * number // epochs)
                self._insert(f"batch {number + 1}/{epochs}", trades)
                time.sleep(pause)

    def _insert(self, what: str, trades: list[Trade]) -> None:
        began = time.monotonic()
        self.db.insert("trades", to_arrow(trades))
        took = time.monotonic() - began
        volatile = "  (the volatile hour)" if self.market.is_volatile() else ""
        heading = f"{what}: {len(trades)} trades in {took:.1f} s, {len(trades) / took:.0f} a second{volatile}"
        self.screen.show(heading, self._levels())

    def _levels(self) -> list[Shown]:
        marks = {row[0]: row[4] for row in self.db.sql("SHOW WATERMARKS").collect()}
        counts = {row[0]: row[1] for row in self.db.sql("SELECT name, rows FROM stepwell.tables").collect()}
        newest = self._newest()
        found = []
        for name in LEVELS:
            mark = marks.get(name)
            lag = "-" if mark is None else _duration(self.market.now - mark // 1_000_000)
            found.append(Shown(name, counts[name], newest.get(name, "nothing yet"), _clock(mark), lag))
        return found

    def _newest(self) -> dict[str, str]:
        """The newest bar of the busiest symbol at every level."""
        symbol = self.market.busiest
        parts = [
            f"SELECT '{name}' AS name, max_by(struct(bar_time, open, high, low, close), bar_time) AS bar"
            f" FROM {name} WHERE symbol = '{symbol}'"
            for name in LEVELS
        ]
        rows = self.db.sql(" UNION ALL ".join(parts)).collect()
        return {row[0]: f"{symbol} {_bar(row[1])}" for row in rows if row[1] is not None}

    def _late_burst(self) -> None:
        trades = self.market.late(200, 1500)
        symbol = self.market.busiest
        at = min(trade[4] for trade in trades if trade[1] == symbol)
        self.screen.title("A burst of 200 late trades, up to 25 minutes old. What was published is corrected.")
        self._compare(symbol, at, lambda: self.db.insert("trades", to_arrow(trades)))

    def _correction(self) -> None:
        wrong = self.market.wrong()
        self.screen.title(f"A wrong trade, ten times too dear, is in the bars of {wrong[1]}. It is corrected.")
        self.db.insert("trades", to_arrow([wrong]))
        statement = f"UPDATE trades SET price = price / 10 WHERE id = {wrong[0]}"
        self.screen.code(statement)
        self._compare(wrong[1], wrong[4], lambda: self.db.sql(statement))

    def _compare(self, symbol: str, at: int, change: Any) -> None:
        """The bars of a moment at all levels, before a change and after it."""
        before, began = self._bars_at(symbol, at), time.monotonic()
        change()
        took = time.monotonic() - began
        after = self._bars_at(symbol, at)
        self.screen.say(f"{symbol} at {_clock(at)}: open / high / low / close, volume   ({took:.1f} s)")
        for name in LEVELS:
            self.screen.say(f"  {name:<8} before {before.get(name, 'no bar')}")
            changed = "" if before.get(name) != after.get(name) else "   (as before)"
            self.screen.say(f"  {'':<8} after  {after.get(name, 'no bar')}{changed}")

    def _bars_at(self, symbol: str, at: int) -> dict[str, str]:
        parts = []
        for name, width in zip(LEVELS, (1, 60, 3600), strict=True):
            start = at // 1_000_000 // width * width
            parts.append(
                f"SELECT '{name}' AS name, struct(bar_time, open, high, low, close) AS bar, volume FROM {name}"
                f" WHERE symbol = '{symbol}' AND bar_time = timestamp_seconds({start})"
            )
        rows = self.db.sql(" UNION ALL ".join(parts)).collect()
        return {row[0]: f"{_bar(row[1])}, {row[2]}" for row in rows}

    def _explain(self) -> None:
        self.screen.title("How one of them is kept up to date.")
        self._run("EXPLAIN REFRESH ohlc_1m", ["name", "step", "why"])

    def _verify(self) -> None:
        self.screen.title("Every view is computed anew from what it reads, and compared.")
        for name in LEVELS:
            row = self.db.sql(f"VERIFY MATERIALIZED VIEW {name}").collect()[0].asDict()
            verdict = "equal" if row["ok"] else "NOT EQUAL"
            self.screen.say(f"  {name:<8} {row['rows']:>7} rows, {verdict} to its query at epoch {row['epoch']}")

    def _deferred(self) -> None:
        """A continuous aggregate: an hour behind, right all the same, and stored when it suits."""
        self.screen.title("One view more, which is not maintained at every epoch but stored an hour behind.")
        self.screen.code(DEFERRED.strip())
        self.db.sql(DEFERRED)
        self._run("REFRESH MATERIALIZED VIEW traded", ["view", "batches", "inserted", "completed"])
        late = (*self.market.late(1, 11)[0][:4], (self.market.now - 3900) * 1_000_000)  # an hour and five minutes ago
        at = late[4] // 1_000_000 // 60 * 60
        row = f"SELECT * FROM traded WHERE symbol = '{late[1]}' AND minute = timestamp_seconds({at})"
        self.screen.title(f"A late trade of {late[1]} at {_clock(late[4])} is in it at once. The log knows of it.")
        before, stale = self._one(row), self._stale()
        self.db.insert("trades", to_arrow([late]))
        self.screen.say(f"  before {before}")
        self.screen.say(f"  after  {self._one(row)}")
        self.screen.say(f"  stored {self._one(row.replace('FROM traded', 'FROM traded$stored'))}")
        self.screen.say(f"  minutes below the threshold that are not fresh: {stale} before, {self._stale()} now")
        self.screen.title("A refresh computes that minute again, and the log is empty.")
        self._run("REFRESH MATERIALIZED VIEW traded", ["view", "batches", "inserted", "retracted"])
        self.screen.say(f"  stored {self._one(row.replace('FROM traded', 'FROM traded$stored'))}")
        self.screen.say(f"  minutes below the threshold that are not fresh: {self._stale()}")

    def _one(self, text: str) -> str:
        rows = self.db.sql(text).collect()
        return f"{rows[0][0]:%H:%M:%S} {rows[0][1]}: {rows[0][2]} trades, {rows[0][3]:.2f}" if rows else "nothing"

    def _stale(self) -> int:
        rows = self.db.sql("SELECT name, stale_buckets FROM stepwell.views").collect()
        return next(int(row[1]) for row in rows if row[0] == "traded")

    def _run(self, text: str, columns: list[str]) -> None:
        self.screen.code(text)
        result = self.db.sql(text)
        assert isinstance(result, Rows)
        kept = [result.columns.index(name) for name in columns]
        for line in render(Rows(columns, [tuple(row[index] for index in kept) for row in result.tuples()]), "table"):
            self.screen.say(line[:79])


def _bar(bar: Any) -> str:
    return f"{bar[0]:%H:%M:%S} {bar[1]:.2f} / {bar[2]:.2f} / {bar[3]:.2f} / {bar[4]:.2f}"


def _clock(mark: int | None) -> str:
    if mark is None:
        return "-"
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=mark):%H:%M:%S}"


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def _summarize(screen: Screen, warehouse: str, out: str) -> None:
    screen.say("What you saw: each trade was in all three levels of bars when its write returned.")
    screen.say("Minutes and hours appeared when the watermark had passed them, and late and")
    screen.say("corrected trades changed them once more, down the whole cascade.")
    screen.title("What to try next")
    for what, why in (
        (f"open {out}", "bars, graph and epochs as a page"),
        (f"stepwell sql -w {warehouse}", "a shell: try SHOW WATERMARKS;"),
        (f"stepwell status -w {warehouse}", "where everything stands"),
        ("stepwell init", "a pipeline of your own"),
    ):
        screen.say(f"  {what:<38} {why}")

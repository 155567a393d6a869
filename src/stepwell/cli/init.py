"""`stepwell init`: a pipeline to start from, with a few rows to see it work."""

from __future__ import annotations

from pathlib import Path

import click

PIPELINE = """\
-- A pipeline for stepwell: run it with
--     stepwell run pipeline.sql
-- and again after you have changed it: what is there already stays, a view with another query is replaced.

-- A table of events. The watermark says how late a row may come before its window counts as closed.
CREATE TABLE trades (
  id BIGINT,
  symbol STRING,
  price DOUBLE,
  quantity BIGINT,
  event_time TIMESTAMP,
  WATERMARK FOR event_time AS event_time - INTERVAL '5 seconds'
);

-- Bars of a second: every write changes those that it touches, in the same epoch.
CREATE MATERIALIZED VIEW ohlc_1s AS
SELECT symbol, TUMBLE_START(event_time, INTERVAL '1 second') AS bar_time,
       FIRST_VALUE(price) AS open, MAX(price) AS high, MIN(price) AS low, LAST_VALUE(price) AS close,
       SUM(quantity) AS volume
FROM trades
GROUP BY symbol, TUMBLE(event_time, INTERVAL '1 second');

-- Bars of a minute, from those of a second. They appear when the watermark has passed them; trades that come up to ten
-- minutes later still correct them, and what comes after that is in ohlc_1m$late.
CREATE MATERIALIZED VIEW ohlc_1m AS
SELECT symbol, TUMBLE_START(bar_time, INTERVAL '1 minute') AS bar_time,
       FIRST_VALUE(open) AS open, MAX(high) AS high, MIN(low) AS low, LAST_VALUE(close) AS close,
       SUM(volume) AS volume
FROM ohlc_1s
GROUP BY symbol, TUMBLE(bar_time, INTERVAL '1 minute')
EMIT AFTER WATERMARK
ALLOW LATENESS INTERVAL '10 minutes';

-- A view on that view: the last close of each symbol.
CREATE MATERIALIZED VIEW last_close AS
SELECT symbol, max_by(close, bar_time) AS close, max(bar_time) AS bar_time
FROM ohlc_1m
GROUP BY symbol;

-- Rows to begin with. The label makes sure that this file is loaded once, however often the pipeline is run.
COPY trades FROM 'trades.csv' WITH (format = 'csv', header = true, label = 'first trades');

SELECT * FROM ohlc_1m ORDER BY symbol, bar_time;
"""

TRADES = """\
id,symbol,price,quantity,event_time
1,AAPL,189.50,100,2026-01-05 14:30:00.100
2,AAPL,189.70,50,2026-01-05 14:30:00.100
3,MSFT,402.10,20,2026-01-05 14:30:01.250
4,AAPL,189.20,75,2026-01-05 14:30:41.000
5,MSFT,402.60,10,2026-01-05 14:31:02.500
6,AAPL,190.05,200,2026-01-05 14:31:20.000
7,AAPL,189.90,25,2026-01-05 14:30:59.900
8,MSFT,401.95,40,2026-01-05 14:32:30.000
9,AAPL,190.40,60,2026-01-05 14:32:31.000
"""


@click.command(short_help="Write an example pipeline to start from.")
@click.argument("folder", default=".", metavar="[FOLDER]")
def command(folder: str) -> None:
    """Write pipeline.sql and trades.csv into FOLDER, the current one unless another is named. Overwrites nothing."""
    place = Path(folder)
    files = {place / "pipeline.sql": PIPELINE, place / "trades.csv": TRADES}
    there = [str(path) for path in files if path.exists()]
    if there:
        raise click.UsageError(f"{' and '.join(there)} exists already; name another folder")
    try:
        place.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f'cannot write into "{folder}": {error.strerror}') from error
    for path in files:
        click.echo(f"wrote {path}", err=True)
    change = "" if place == Path() else f"cd {folder} && "
    click.echo(f"next: {change}stepwell run pipeline.sql", err=True)

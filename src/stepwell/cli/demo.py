"""`stepwell demo`: tables, epochs, transactions, time travel and the published Delta table, on a small warehouse."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from stepwell.cli import fail
from stepwell.cli.output import render
from stepwell.database import Database, connect
from stepwell.engine import translated
from stepwell.errors import StepwellError


@click.command(short_help="See stepwell at work on a small example.")
@click.option(
    "-w", "--warehouse", metavar="FOLDER", help="Where to keep the example. Default: a folder that is removed."
)
def command(warehouse: str | None) -> None:
    """Create tables, change them, look back, and read them from outside. Takes about half a minute."""
    folder = warehouse or tempfile.mkdtemp(prefix="stepwell-demo-")
    began = time.monotonic()
    try:
        _say(f"A warehouse in {folder}: Parquet files, Delta logs, a SQLite catalog. Spark starts when needed.")
        with connect(folder) as database:
            _play(database, folder)
        _say(f"That was {time.monotonic() - began:.0f} seconds, most of them Spark starting.")
        _say("Try it yourself:")
        click.echo('stepwell sql -c "CREATE TABLE t (a INT)" -c "INSERT INTO t VALUES (1)" -c "SELECT * FROM t"')
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)
    finally:
        if warehouse is None:
            shutil.rmtree(folder, ignore_errors=True)


def _play(database: Database, folder: str) -> None:
    for table in ("trades", "positions"):
        database.sql(f"DROP TABLE IF EXISTS {table}")
    _run(
        database,
        "Trades arrive in order of nothing in particular; positions have a key.",
        """
CREATE TABLE trades (symbol STRING NOT NULL, price DECIMAL(10, 2), quantity INT, traded_at TIMESTAMP,
  WATERMARK FOR traded_at AS traded_at - INTERVAL '5 seconds');
CREATE TABLE positions (symbol STRING PRIMARY KEY, quantity BIGINT)""",
    )
    _run(
        database,
        "A write returns when its epoch can be read.",
        """
INSERT INTO trades VALUES
  ('AAPL', 189.50, 100, TIMESTAMP '2026-03-02 14:30:00'), ('AAPL', 189.70, 50, TIMESTAMP '2026-03-02 14:30:01'),
  ('MSFT', 402.10, 20, TIMESTAMP '2026-03-02 14:30:01'), ('MSFT', 402.10, 20, TIMESTAMP '2026-03-02 14:30:01')""",
    )
    before = database.epoch
    _run(
        database,
        "Two tables in one transaction: one epoch, all or nothing.",
        """
BEGIN;
INSERT INTO positions SELECT symbol, sum(quantity) FROM trades GROUP BY symbol;
UPDATE trades SET price = price - 0.05 WHERE symbol = 'MSFT';
DELETE FROM trades WHERE quantity = 50;
COMMIT""",
    )
    _run(database, "All relations are read at one epoch.", "SELECT * FROM trades ORDER BY symbol, traded_at")
    _run(
        database,
        f"The past is still there: epoch {before}.",
        f"SELECT symbol, sum(quantity) AS quantity FROM trades VERSION AS OF {before} GROUP BY symbol",
    )
    _run(
        database,
        "What the last epoch did, row by row. Two equal trades are two rows.",
        f"SELECT symbol, price, quantity, _diff, _epoch FROM changes(trades, {before}) ORDER BY symbol, _diff",
    )
    _run(database, "A mistake is named, with what to do about it.", "SELECT symbl FROM trades", fails=True)
    _run(
        database,
        "Retractions are folded into plain rows in the background; OPTIMIZE does it now, and publishes.",
        "OPTIMIZE trades; SELECT name, rows, files, bytes, published_epoch FROM stepwell.tables",
    )
    from deltalake import DeltaTable  # as somebody who has never heard of stepwell would

    with _step("Any Delta reader opens it, without stepwell and without Spark.", "DeltaTable(…).to_pyarrow_table()"):
        folders = sorted(Path(folder, "data").iterdir(), key=lambda each: int(each.name))
        table = DeltaTable(str(folders[-2] / "rows")).to_pyarrow_table()
        click.echo(f"{table.num_rows} rows: {', '.join(table.column_names)}")


def _run(database: Database, why: str, text: str, *, fails: bool = False) -> None:
    with _step(why, text.strip()):
        try:
            result = database.sql(text)
        except StepwellError as error:
            if not fails:
                raise
            click.echo(str(error))
            return
        if result.columns:
            with translated():
                for line in render(result, "table"):
                    click.echo(line)


@contextmanager
def _step(why: str, text: str) -> Iterator[None]:
    _say(why)
    click.secho(text, fg="cyan")
    began = time.monotonic()
    yield
    click.secho(f"-- {(time.monotonic() - began) * 1000:.0f} ms", dim=True)


def _say(text: str) -> None:
    click.echo("")
    click.secho(text, bold=True)

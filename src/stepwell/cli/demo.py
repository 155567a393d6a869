"""`stepwell demo`: tables, views on views, epochs, time travel and the published Delta tables, on a small warehouse."""

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
from stepwell.engine import graph_nodes, translated
from stepwell.errors import StepwellError
from stepwell.graph import draw_text


@click.command(short_help="See stepwell at work on a small example.")
@click.option(
    "-w", "--warehouse", metavar="FOLDER", help="Where to keep the example. Default: a folder that is removed."
)
def command(warehouse: str | None) -> None:
    """Create tables and views on them, change rows, look back, verify. Takes about half a minute."""
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
    for kind, name in (("MATERIALIZED VIEW", "volumes"), ("TABLE", "trades"), ("TABLE", "limits")):
        database.sql(f"DROP {kind} IF EXISTS {name} CASCADE")
    _run(
        database,
        "Two tables: trades as they come, and limits by key.",
        """
CREATE TABLE trades (symbol STRING NOT NULL, price DECIMAL(10, 2), quantity INT, cancelled BOOLEAN);
CREATE TABLE limits (symbol STRING PRIMARY KEY, quantity BIGINT);
INSERT INTO limits VALUES ('AAPL', 120), ('MSFT', 100);
INSERT INTO trades VALUES ('AAPL', 189.50, 100, false), ('AAPL', 189.70, 50, true),
  ('MSFT', 402.10, 20, false), ('MSFT', 402.10, 20, false)""",
    )
    _run(
        database,
        "Before a view is made, EXPLAIN says how it will be kept up to date.",
        """
EXPLAIN CREATE MATERIALIZED VIEW volumes AS
SELECT symbol, sum(quantity) AS quantity, max(price) AS high FROM trades WHERE NOT cancelled GROUP BY symbol""",
    )
    _run(
        database,
        "Views on tables, and views on views.",
        """
CREATE MATERIALIZED VIEW volumes AS
SELECT symbol, sum(quantity) AS quantity, max(price) AS high FROM trades WHERE NOT cancelled GROUP BY symbol;
CREATE MATERIALIZED VIEW breaches AS
SELECT v.symbol, v.quantity, l.quantity AS allowed FROM volumes AS v JOIN limits AS l ON v.symbol = l.symbol
WHERE v.quantity > l.quantity;
CREATE MATERIALIZED VIEW alarm AS SELECT count(*) AS breaches FROM breaches""",
    )
    for line in draw_text(graph_nodes(database._runtime)):
        click.echo(line)
    before = database.epoch
    _run(
        database,
        "One epoch goes through the whole graph: a trade is restored, another one is new.",
        """
BEGIN;
UPDATE trades SET cancelled = false WHERE price = 189.70;
INSERT INTO trades VALUES ('MSFT', 403.00, 30, false);
COMMIT""",
    )
    _run(database, "Every view shows it.", "SELECT * FROM breaches CROSS JOIN alarm")
    _run(
        database,
        "What the epoch did to a view, row by row.",
        f"SELECT symbol, quantity, high, _diff FROM changes(volumes, {before}) ORDER BY symbol, _diff",
    )
    _run(
        database,
        "What it cost: each view followed the change, and read no more than it had to.",
        "SELECT name, rule, rows_in, rows_inserted, rows_retracted, jobs FROM stepwell.refreshes"
        f" WHERE epoch > {before} ORDER BY epoch, name",
    )
    _run(database, "The past is still there.", f"SELECT * FROM volumes VERSION AS OF {before} ORDER BY symbol")
    _run(database, "A view equals its query, and VERIFY checks exactly that.", "VERIFY MATERIALIZED VIEW volumes")
    _run(database, "What others read cannot be dropped.", "DROP MATERIALIZED VIEW volumes", fails=True)
    _run(database, "A mistake is named, with what to do about it.", "SELECT symbl FROM trades", fails=True)
    from deltalake import DeltaTable  # as somebody who has never heard of stepwell would

    database.sql("OPTIMIZE volumes")
    with _step(
        "Any Delta reader opens a view, without stepwell and without Spark.", "DeltaTable(…).to_pyarrow_table()"
    ):
        number = next(
            row[1] for row in database.sql("SELECT name, id FROM stepwell.views").collect() if row[0] == "volumes"
        )
        table = DeltaTable(str(Path(folder, "data", str(number), "rows"))).to_pyarrow_table()
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

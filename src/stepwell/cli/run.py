"""`stepwell run`: a pipeline, statement by statement; what is there already as the file says stays as it is."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from stepwell.cli import fail, warehouse_options
from stepwell.cli.pipelines import Doing, doing, replacing
from stepwell.cli.sql import run as run_statement
from stepwell.cli.waiting import wait_for
from stepwell.database import Database, connect
from stepwell.model.errors import StepwellError
from stepwell.model.relations import Relation
from stepwell.sql import Dialect, parse
from stepwell.sql.statements import CreateTable, CreateView, Statement


@click.command(short_help="Run a pipeline, and again when it has changed.")
@click.argument("file", metavar="FILE")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--follow", is_flag=True, help="Stay afterwards and keep the views up to date until Ctrl-C.")
@click.option("--dialect", type=click.Choice(["spark", "postgres"]), default="spark", show_default=True)
@warehouse_options
def command(
    file: str, dry_run: bool, follow: bool, dialect: str, warehouse: str, catalog: str | None, spark: str | None
) -> None:
    """Run the statements of FILE in order, and stop at the first that fails.

    A table that is there as the file says, and a view with the same query, are left alone; a view with another query is
    replaced, and those that read it follow. Everything else, such as COPY and INSERT, is done each time: give COPY a
    label, and a file is loaded once.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except OSError as error:
        raise click.UsageError(f'cannot read "{file}": {error.strerror}') from error
    began = time.monotonic()
    try:
        statements = parse(text, Dialect(dialect))  # all of them, before the first is run
        with connect(warehouse, catalog=catalog, spark=spark, dialect=dialect) as database:
            counts = dict.fromkeys(Doing, 0)
            for number, statement in enumerate(statements):
                what = _do(database, statement, f"{number + 1}/{len(statements)}", dry_run=dry_run)
                counts[what] += 1
            if not dry_run:
                database.flush()
            done = ", ".join(f"{count} {what.value}" for what, count in counts.items() if count) or "nothing to do"
            click.echo(f"{done} in {time.monotonic() - began:.1f} s, epoch {database.epoch}", err=True)
            if follow and not dry_run:
                _follow(database)
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)
    except Exception as error:  # a bug: say so without a traceback, which --debug shows
        fail(error)


def _do(database: Database, statement: Statement, where: str, *, dry_run: bool) -> Doing:
    body = statement.body
    existing = _existing(database, body) if isinstance(body, CreateTable | CreateView) else None
    what = doing(body, existing)
    named = f"{where} {what.value}: {_first_line(statement.slice.text)}"
    click.echo(named, err=True)
    if dry_run or what == Doing.KEEP:
        return what
    if what == Doing.REPLACE and isinstance(body, CreateView):
        statement = Statement(replacing(body), statement.slice)
    wait_for(database, lambda: run_statement(database, [statement], "table"))
    return what


def _existing(database: Database, body: CreateTable | CreateView) -> Relation | None:
    wanted = body.name.last.lower()
    return next((each for each in database.relations() if each.name.lower() == wanted), None)


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _follow(database: Database) -> None:
    click.echo("following; Ctrl-C ends it", err=True)
    database.sql("SET barrier_interval = '1 second'")
    seen = database.epoch
    try:
        while True:
            time.sleep(0.5)
            if database.epoch != seen:
                seen = database.epoch
                click.echo(f"epoch {seen}", err=True)
    except KeyboardInterrupt:
        click.echo("", err=True)

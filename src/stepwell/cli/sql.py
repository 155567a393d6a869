"""`stepwell sql`: statements from the command line, a file or standard input, or typed at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepwell.cli import fail, warehouse_options
from stepwell.cli.output import FORMATS, render
from stepwell.cli.waiting import wait_for
from stepwell.database import Database, connect, translated
from stepwell.model.errors import StepwellError
from stepwell.model.rows import Rows
from stepwell.sql import Dialect, parse, runs_of
from stepwell.sql.statements import Statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@click.command(short_help="Run SQL statements.")
@click.option("-c", "--command", "commands", multiple=True, metavar="SQL", help="Statements to run; may be repeated.")
@click.option("-f", "--file", "files", multiple=True, metavar="FILE", help="A file of statements; - is standard input.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--dialect", type=click.Choice(["spark", "postgres"]), default="spark", show_default=True)
@warehouse_options
def command(
    commands: tuple[str, ...],
    files: tuple[str, ...],
    format_: str,
    dialect: str,
    warehouse: str,
    catalog: str | None,
    spark: str | None,
) -> None:
    """Run SQL statements, one after the other, and stop at the first that fails; without any, open a shell.

    Results go to standard output: a table, CSV with a header, or one JSON object a row.
    """
    texts = list(commands)
    for file in files:
        try:
            texts.append(sys.stdin.read() if file == "-" else Path(file).read_text())
        except OSError as error:
            raise click.UsageError(f'cannot read "{file}": {error.strerror}') from error
    interactive = not texts and sys.stdin.isatty()
    if not texts and not interactive:
        texts.append(sys.stdin.read())
    try:
        statements = [statement for text in texts for statement in parse(text, Dialect(dialect))]
        with connect(warehouse, catalog=catalog, spark=spark, dialect=dialect) as database:
            if interactive:
                from stepwell.cli.shell import Shell, make_reader  # which is nobody else's to wait for

                Shell(database, make_reader(database)).run()
                return
            for together in runs_of(statements):
                wait_for(database, lambda together=together: run(database, together, format_))  # type: ignore[misc]
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)
    except Exception as error:  # a bug: say so without a traceback, which --debug shows
        fail(error)


def run(database: Database, together: Sequence[Statement], format_: str) -> None:
    """Run one statement, or CREATEs that go together; its rows to standard output, what it did to standard error."""
    result, said = answer(database, together)
    if isinstance(result, Rows) and result.columns == ["name", "statement"] and format_ == "table":
        click.echo(result.tuples()[0][1])
    elif result is not None:
        with translated():
            for line in render(result, format_):
                click.echo(line)
    for line in said:
        click.echo(line, err=True)


def answer(database: Database, together: Sequence[Statement]) -> tuple[DataFrame | Rows | None, list[str]]:
    """The rows that a statement answers with, if any, and what else there is to say of it."""
    result = database.execute(*together)
    if not isinstance(result, Rows):
        return result, []
    words = [each.slice.text.split(None, 1)[0].rstrip(";").upper() for each in together]
    if not result.columns:
        return None, [*words, *result.notes]
    if result.columns[:3] != ["inserted", "retracted", "epoch"]:
        return result, result.notes
    inserted, retracted, epoch, *_ = result.tuples()[0]
    where = f", epoch {epoch}" if epoch is not None else ""
    return None, [f"{words[0]}: {inserted} inserted, {retracted} retracted{where}", *result.notes]

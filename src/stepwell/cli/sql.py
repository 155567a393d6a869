"""`stepwell sql`: statements from the command line, a file or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stepwell.cli import fail, warehouse_options
from stepwell.cli.output import FORMATS, render
from stepwell.database import Database, connect
from stepwell.engine import translated
from stepwell.errors import StepwellError
from stepwell.rows import Rows
from stepwell.sql import parse
from stepwell.sql.statements import Statement


@click.command(short_help="Run SQL statements.")
@click.option("-c", "--command", "commands", multiple=True, metavar="SQL", help="Statements to run; may be repeated.")
@click.option("-f", "--file", "files", multiple=True, metavar="FILE", help="A file of statements; - is standard input.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@warehouse_options
def command(
    commands: tuple[str, ...],
    files: tuple[str, ...],
    format_: str,
    warehouse: str,
    catalog: str | None,
    spark: str | None,
) -> None:
    """Run SQL statements, one after the other, and stop at the first that fails.

    Results go to standard output: a table, CSV with a header, or one JSON object a row.
    """
    texts = list(commands)
    for file in files:
        try:
            texts.append(sys.stdin.read() if file == "-" else Path(file).read_text())
        except OSError as error:
            raise click.UsageError(f'cannot read "{file}": {error.strerror}') from error
    if not texts:
        if sys.stdin.isatty():
            raise click.UsageError("give statements with -c, or a file with -f")
        texts.append(sys.stdin.read())
    try:
        statements = [statement for text in texts for statement in parse(text)]
        with connect(warehouse, catalog=catalog, spark=spark) as database:
            for statement in statements:
                run(database, statement, format_)
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)
    except Exception as error:  # a bug: say so without a traceback, which --debug shows
        fail(error)


def run(database: Database, statement: Statement, format_: str) -> None:
    """Run one statement; its rows to standard output, what it did to standard error."""
    result = database.execute(statement)
    if isinstance(result, Rows) and result.columns == ["inserted", "retracted", "epoch"]:
        inserted, retracted, epoch = result.tuples()[0]
        where = f", epoch {epoch}" if epoch is not None else ""
        click.echo(f"{_word(statement)}: {inserted} inserted, {retracted} retracted{where}", err=True)
    elif isinstance(result, Rows) and result.columns == ["name", "statement"] and format_ == "table":
        click.echo(result.tuples()[0][1])
    elif isinstance(result, Rows) and not result.columns:
        click.echo(_word(statement), err=True)
    else:
        with translated():
            for line in render(result, format_):
                click.echo(line)
        for note in result.notes if isinstance(result, Rows) else ():
            click.echo(note, err=True)


def _word(statement: Statement) -> str:
    return statement.slice.text.split(None, 1)[0].rstrip(";").upper()

"""`stepwell checkpoint`: the whole database, copied at one epoch."""

from __future__ import annotations

import click

from stepwell.cli import fail, warehouse_options
from stepwell.cli.output import FORMATS, render
from stepwell.cli.waiting import wait_for
from stepwell.database import connect, look_at
from stepwell.model.errors import StepwellError


@click.command(short_help="Copy the whole database, at one epoch.")
@click.argument("path", metavar="PATH")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@warehouse_options
def command(path: str, format_: str, warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Copy the catalog and all data files of the newest readable epoch to PATH, a folder or a URL.

    Files that an earlier checkpoint has copied there are not copied again. Whoever works in the warehouse goes on.
    """
    try:
        look_at(warehouse, catalog=catalog).close()
        with connect(warehouse, catalog=catalog, spark=spark) as database:
            done = wait_for(database, lambda: database.checkpoint(path))
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)
    for line in render(done, format_):
        click.echo(line)

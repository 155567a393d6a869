"""`stepwell restore`: a checkpoint becomes a warehouse."""

from __future__ import annotations

import click

from stepwell.cli import fail, warehouse_options
from stepwell.cli.output import FORMATS, render
from stepwell.cli.waiting import wait_for
from stepwell.database import connect
from stepwell.model.errors import StepwellError


@click.command(short_help="Fill an empty warehouse from a checkpoint.")
@click.argument("path", metavar="PATH")
@click.option("--epoch", type=int, help="The epoch whose checkpoint is wanted. Default: the newest.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@warehouse_options
def command(path: str, epoch: int | None, format_: str, warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Fill a warehouse, which must be empty or not there yet, from the checkpoints at PATH.

    The catalog may be of another kind than the one that was copied. If anything fails, the warehouse stays empty.
    """
    try:
        with connect(warehouse, catalog=catalog, spark=spark) as database:
            done = wait_for(database, lambda: database.restore(path, epoch))
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)
    for line in render(done, format_):
        click.echo(line)

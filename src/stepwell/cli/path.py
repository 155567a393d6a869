"""`stepwell path`: where a table or view lies as a Delta table, by the catalog alone."""

from __future__ import annotations

import click

from stepwell.cli import fail, warehouse_options
from stepwell.database import look_at
from stepwell.model.errors import StepwellError


@click.command(short_help="Say where a table or view lies as a Delta table.")
@click.argument("name")
@warehouse_options
def command(name: str, warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Print the folder or URL at which any reader of Delta tables can open the table or view NAME. Starts no Spark.

    How far it is behind, if it is, is said on standard error.
    """
    try:
        onlooker = look_at(warehouse, catalog=catalog)
        found = onlooker.published(name)
        onlooker.close()
    except StepwellError as error:
        fail(error)
        return
    click.echo(found.path)
    if found.behind:
        click.echo(f"it is {found.said_behind}; FLUSH PUBLISH brings it up to date", err=True)

"""`stepwell status`: where a warehouse stands, by its catalog alone."""

from __future__ import annotations

import click

from stepwell.catalog import barriers, control, leases
from stepwell.cli import fail, open_existing, warehouse_options
from stepwell.cli.output import FORMATS, render
from stepwell.engine import SYSTEM_NAMESPACE, graph_nodes, read_system_table
from stepwell.errors import StepwellError
from stepwell.rows import Rows
from stepwell.sql.statements import Name, Slice
from stepwell.views import ViewState


@click.command(short_help="Show where a warehouse stands.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@warehouse_options
def command(format_: str, warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Show the epochs, the leader and the tables of a warehouse. Starts no Spark."""
    try:
        runtime = open_existing(warehouse, catalog)
        with runtime.catalog.read() as tx:
            at = control.look(tx)
            unfinished = barriers.unfinished(tx)
            holder = leases.look(tx).holder
        text = f"{SYSTEM_NAMESPACE}.tables"
        table, rows = read_system_table(runtime, Name((SYSTEM_NAMESPACE, "tables"), Slice(text, 0, len(text))))
        stopped = [each for each in graph_nodes(runtime) if each.label.endswith((ViewState.ERROR, ViewState.PAUSED))]
        runtime.catalog.close()
    except StepwellError as error:
        fail(error)
        return
    if format_ == "table":
        click.echo(f"warehouse  {runtime.warehouse.url}")
        click.echo(f"catalog    {runtime.catalog.url}")
        click.echo(f"readable   epoch {at.readable_epoch}")
        click.echo(f"open       epoch {at.open_epoch}" + (f", {len(unfinished)} being closed" if unfinished else ""))
        click.echo(f"leader     {holder or 'nobody'}")
        for each in stopped:
            click.echo(f"stopped    {each.name}: {each.label}")
        click.echo("")
    for line in render(Rows([column.name for column in table.columns], rows), format_):
        click.echo(line)

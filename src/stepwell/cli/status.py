"""`stepwell status`: where a warehouse stands, by its catalog alone."""

from __future__ import annotations

import sys
import time

import click

from stepwell.catalog import barriers, control, leases
from stepwell.cli import fail, open_existing, warehouse_options
from stepwell.cli.output import FORMATS, render
from stepwell.engine import SYSTEM_NAMESPACE, Runtime, graph_nodes, read_system_table
from stepwell.model.errors import StepwellError
from stepwell.model.rows import Rows
from stepwell.model.views import ViewState
from stepwell.sql.statements import Name, Slice


@click.command(short_help="Show where a warehouse stands.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option("--every", default=2.0, show_default=True, metavar="SECONDS", help="How often, with --watch.")
@warehouse_options
def command(format_: str, watch: bool, every: float, warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Show the epochs, the leader and the tables of a warehouse. Starts no Spark."""
    try:
        runtime = open_existing(warehouse, catalog)
        while True:
            lines = _lines(runtime, format_)
            if watch and sys.stdout.isatty():
                click.clear()
            for line in lines:
                click.echo(line)
            if not watch:
                break
            if format_ == "table":
                click.echo("")
            time.sleep(every)
        runtime.catalog.close()
    except KeyboardInterrupt:
        return
    except StepwellError as error:
        fail(error)


def _lines(runtime: Runtime, format_: str) -> list[str]:
    with runtime.catalog.read() as tx:
        at = control.look(tx)
        unfinished = barriers.unfinished(tx)
        holder = leases.look(tx).holder
    text = f"{SYSTEM_NAMESPACE}.tables"
    table, rows = read_system_table(runtime, Name((SYSTEM_NAMESPACE, "tables"), Slice(text, 0, len(text))))
    stopped = [each for each in graph_nodes(runtime) if each.label.endswith((ViewState.ERROR, ViewState.PAUSED))]
    lines = list(render(Rows([column.name for column in table.columns], rows), format_))
    if format_ != "table":
        return lines
    closing = f", {len(unfinished)} being closed" if unfinished else ""
    return [
        f"warehouse  {runtime.warehouse.url}",
        f"catalog    {runtime.catalog.url}",
        f"readable   epoch {at.readable_epoch}",
        f"open       epoch {at.open_epoch}{closing}",
        f"leader     {holder or 'nobody'}",
        *(f"stopped    {each.name}: {each.label}" for each in stopped),
        "",
        *lines,
    ]

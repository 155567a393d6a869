"""`stepwell status`: where a warehouse stands, by its catalog alone."""

from __future__ import annotations

import sys
import time

import click

from stepwell.cli import fail, warehouse_options
from stepwell.cli.output import FORMATS, render
from stepwell.database import Standing, look_at
from stepwell.model.errors import StepwellError


@click.command(short_help="Show where a warehouse stands.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option("--every", default=2.0, show_default=True, metavar="SECONDS", help="How often, with --watch.")
@warehouse_options
def command(format_: str, watch: bool, every: float, warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Show the epochs, the leader and the tables of a warehouse. Starts no Spark."""
    try:
        onlooker = look_at(warehouse, catalog=catalog)
        while True:
            lines = _lines(onlooker.standing(), format_)
            if watch and sys.stdout.isatty():
                click.clear()
            for line in lines:
                click.echo(line)
            if not watch:
                break
            if format_ == "table":
                click.echo("")
            time.sleep(every)
        onlooker.close()
    except KeyboardInterrupt:
        return
    except StepwellError as error:
        fail(error)


def _lines(standing: Standing, format_: str) -> list[str]:
    lines = list(render(standing.tables, format_))
    if format_ != "table":
        return lines
    closing = f", {standing.unfinished} being closed" if standing.unfinished else ""
    return [
        f"warehouse  {standing.warehouse}",
        f"catalog    {standing.catalog}",
        f"readable   epoch {standing.readable}",
        f"open       epoch {standing.open}{closing}",
        f"leader     {standing.holder or 'nobody'}",
        *(f"delta      {each.name}: {each.said_behind}" for each in standing.behind),
        *(f"stopped    {each.name}: {each.label}" for each in standing.stopped),
        "",
        *lines,
    ]

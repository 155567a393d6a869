"""`stepwell verify`: every view against its query."""

from __future__ import annotations

import sys

import click

from stepwell.cli import fail, warehouse_options
from stepwell.cli.output import FORMATS, render
from stepwell.database import connect, look_at
from stepwell.model.errors import StepwellError
from stepwell.model.rows import Rows
from stepwell.model.types import quote


@click.command(short_help="Compare views with their queries.")
@click.argument("views", nargs=-1)
@click.option("--repair", is_flag=True, help="Write the views that differ anew, and all that read them.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
@warehouse_options
def command(
    views: tuple[str, ...], repair: bool, format_: str, warehouse: str, catalog: str | None, spark: str | None
) -> None:
    """Recompute views from their parents, all of them unless some are named, and compare.

    Exit 1 if any of them differs, even if it was repaired.
    """
    rows: list[tuple[object, ...]] = []
    columns = ["view", "epoch", "ok", "rows", "missing", "unexpected", "states"]
    try:
        look_at(warehouse, catalog=catalog).close()
        with connect(warehouse, catalog=catalog, spark=spark) as database:
            names = list(views) or [row[0] for row in database.sql("SHOW MATERIALIZED VIEWS").collect()]
            for number, name in enumerate(names):
                if sys.stderr.isatty():
                    click.echo(f"\r\x1b[Kverifying {name} ({number + 1} of {len(names)})", nl=False, err=True)
                result = database.sql(f"VERIFY MATERIALIZED VIEW {quote(name)}{' REPAIR' * repair}")
                assert isinstance(result, Rows)
                rows.extend(result.tuples())
                for note in result.notes:
                    click.echo(f"{name}: {note}", err=True)
            if sys.stderr.isatty():
                click.echo("\r\x1b[K", nl=False, err=True)
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)
    for line in render(Rows(columns, rows), format_):
        click.echo(line)
    if not all(row[2] for row in rows):
        sys.exit(1)

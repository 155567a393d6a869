"""`stepwell dag`: the graph of relations, by the catalog alone."""

from __future__ import annotations

from pathlib import Path

import click

from stepwell.cli import fail, warehouse_options
from stepwell.database import look_at
from stepwell.graph import draw_svg, draw_text
from stepwell.model.errors import StepwellError


@click.command(short_help="Draw the graph of tables and views.")
@click.option("--svg", metavar="FILE", help="Write an SVG picture to a file; - is standard output.")
@warehouse_options
def command(svg: str | None, warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Draw the graph of tables and views: each below what it reads. Starts no Spark."""
    try:
        onlooker = look_at(warehouse, catalog=catalog)
        nodes = onlooker.nodes()
        onlooker.close()
    except StepwellError as error:
        fail(error)
        return
    if svg is None:
        for line in draw_text(nodes) or ["there are no relations yet"]:
            click.echo(line)
    elif svg == "-":
        click.echo(draw_svg(nodes), nl=False)
    else:
        try:
            Path(svg).write_text(draw_svg(nodes))
        except OSError as error:
            raise click.UsageError(f'cannot write "{svg}": {error.strerror}') from error
        click.echo(f"wrote {svg}", err=True)

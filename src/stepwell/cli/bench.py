"""`stepwell bench`: measure on this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from stepwell.bench import (
    BENCHMARKS,
    BenchReport,
    own_settings,
    run_aggregates,
    run_checkpoints,
    run_ingest,
    run_load,
    run_ohlc,
    run_tpch,
    run_views,
)
from stepwell.cli import fail
from stepwell.model.errors import StepwellError


@click.command(short_help="Measure, as ratios within one run.")
@click.argument("name", type=click.Choice(sorted(BENCHMARKS)))
@click.option("--epochs", default=1000, show_default=True, help="ingest: how many epochs the long run has.")
@click.option("--keyed-rows", default=1_000_000, show_default=True, help="ingest: how many rows the keyed table has.")
@click.option("--rows", type=int, help="Rows: views [1000000], aggregates, checkpoint, load and ohlc [10000000].")
@click.option(
    "--times", default=30, show_default=True, help="views, ohlc: how many times as large the large history is."
)
@click.option("--writers", default=8, show_default=True, help="load: how many processes insert at once.")
@click.option("--queries", default="", help="tpch: the queries to measure, such as q1,q3 [all 22].")
@click.option("--neighbours", is_flag=True, help="tpch: change orders that lie together, not such as lie everywhere.")
@click.option("--scale", default=1.0, show_default=True, help="tpch: the scale factor, 1 for 6 million order lines.")
def command(
    name: str,
    epochs: int,
    keyed_rows: int,
    rows: int | None,
    times: int,
    writers: int,
    scale: float,
    queries: str,
    neighbours: bool,
) -> None:
    """Measure, as ratios within one run: a null job of Spark is the unit of small things, plain Spark of large ones."""
    click.echo(f"{os.cpu_count()} cores; our session: {own_settings()}")
    report = BenchReport(click.echo)
    with tempfile.TemporaryDirectory(prefix="stepwell-bench-") as folder:
        try:
            if name == "aggregates":
                run_aggregates(report, Path(folder), rows=rows or 10_000_000)
            elif name == "checkpoint":
                run_checkpoints(report, Path(folder), rows=rows or 10_000_000)
            elif name == "ingest":
                run_ingest(report, Path(folder), epochs=epochs, keyed_rows=keyed_rows)
            elif name == "load":
                run_load(report, Path(folder), rows=rows or 10_000_000, writers=writers)
            elif name == "ohlc":
                run_ohlc(report, Path(folder), rows=rows or 10_000_000, times=times)
            elif name == "tpch":
                names = [each for each in queries.split(",") if each]
                run_tpch(report, Path(folder), scale=scale, names=names, spread=not neighbours)
            else:
                run_views(report, Path(folder), rows=rows or 1_000_000, times=times)
        except (StepwellError, KeyboardInterrupt) as error:
            fail(error)
    click.echo("all within reach" if not report.short else f"short of reach: {', '.join(report.short)}")

"""The command line: `stepwell sql`, `run`, `status` and the other commands of `_BEHIND`.

Data goes to standard output, talk to standard error. Exit 0 for success, 1 if a statement failed, 2 for wrong usage.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import click

from stepwell.model.errors import StepwellError, StepwellWarning
from stepwell.version import __version__

_BEHIND = {
    "sql": ("stepwell.cli.sql", "Run SQL statements."),
    "run": ("stepwell.cli.run", "Run a pipeline, and again when it has changed."),
    "init": ("stepwell.cli.init", "Write an example pipeline to start from."),
    "status": ("stepwell.cli.status", "Show where a warehouse stands."),
    "dag": ("stepwell.cli.dag", "Draw the graph of tables and views."),
    "path": ("stepwell.cli.path", "Say where a table or view lies as a Delta table."),
    "verify": ("stepwell.cli.verify", "Compare views with their queries."),
    "doctor": ("stepwell.cli.doctor", "Say what was found and what is missing."),
    "checkpoint": ("stepwell.cli.checkpoint", "Copy the whole database, at one epoch."),
    "restore": ("stepwell.cli.restore", "Fill an empty warehouse from a checkpoint."),
    "report": ("stepwell.cli.report", "Write a page about a warehouse."),
    "demo": ("stepwell.cli.demo", "See bars appear live, and late trades correct them."),
    "bench": ("stepwell.cli.bench", "Measure, as ratios within one run."),
}


class _Commands(click.Group):
    """Commands that are loaded when they are called: `--help` should not wait for Spark's modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_BEHIND)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _BEHIND:
            return None
        module = __import__(_BEHIND[name][0], fromlist=["command"])
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in _BEHIND.items()])


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stepwell", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """Cascading materialized views for Apache Spark."""
    ctx.obj = {"debug": debug}
    warnings.simplefilter("always", StepwellWarning)
    warnings.showwarning = _say_warning


def _say_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    click.echo(f"warning: {message}", err=True)


def warehouse_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that opens a warehouse."""
    for option in (
        click.option("--spark", metavar="URL", help="Master of a Spark cluster. Default: local, inside this process."),
        click.option("--catalog", metavar="URL", help="Database of the catalog. Default: SQLite inside the warehouse."),
        click.option(
            "-w", "--warehouse", default="warehouse", show_default=True, envvar="STEPWELL_WAREHOUSE", metavar="URL"
        ),
    ):
        function = option(function)
    return function


def tell(error: BaseException) -> None:
    """Say on standard error what went wrong; with --debug, also where."""
    context = click.get_current_context(silent=True)
    root = context.find_root() if context else None
    if root and root.obj and root.obj.get("debug"):
        raise error
    if isinstance(error, KeyboardInterrupt):
        click.echo("cancelled", err=True)
    elif isinstance(error, StepwellError):
        click.echo(f"error: {error}", err=True)
    else:
        click.echo(f"error: {type(error).__name__}: {error}", err=True)
        click.echo("HINT: this is a bug in stepwell; run again with stepwell --debug and report it.", err=True)


def fail(error: BaseException) -> None:
    """Report, and end with exit code 1."""
    tell(error)
    sys.exit(1)

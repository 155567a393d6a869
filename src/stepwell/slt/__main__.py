"""`python -m stepwell.slt FILE… [--dialect postgres] [--rewrite]`: a line for each failure, totals, exit 1 if any."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from stepwell.database import connect
from stepwell.model.errors import StepwellError
from stepwell.slt.runner import rewrite, run_file


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--rewrite", "rewriting", is_flag=True, help="Write what came out in the place of what was expected.")
@click.option("--dialect", type=click.Choice(["spark", "postgres"]), default="spark", show_default=True)
@click.option("--label", "labels", multiple=True, help="Labels for onlyif and skipif, besides stepwell.")
def main(files: tuple[Path, ...], rewriting: bool, labels: tuple[str, ...], dialect: str) -> None:
    """Run scenario files, each in a warehouse of its own."""
    ran = failed = 0
    for path in files:
        with (
            tempfile.TemporaryDirectory(prefix="stepwell-slt-") as folder,
            connect(Path(folder) / "w", dialect=dialect) as database,
        ):
            try:
                outcome = run_file(path, database, labels=frozenset({"stepwell", dialect, *labels}))
            except StepwellError as error:
                click.echo(error.message if error.message.startswith(str(path)) else f"{path}: {error.message}")
                ran += 1
                failed += 1
                continue
        ran += outcome.ran
        failed += len(outcome.failures)
        for failure in outcome.failures:
            click.echo(failure)
        if rewriting:
            rewrite(outcome)
    click.echo(f"{ran - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()

"""`stepwell run`: a pipeline is rehearsed as a whole, then done; what is there as the file says stays as it is."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from stepwell.cli import fail, warehouse_options
from stepwell.cli.sql import run as run_statement
from stepwell.cli.waiting import wait_for
from stepwell.database import Database, Deed, RunStep, connect, look_at, not_in_file
from stepwell.model.errors import DependentsError, NoWarehouseError, StepwellError
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.sql import Dialect, parse
from stepwell.sql.statements import Statement


@click.command(short_help="Run a pipeline, and again when it has changed.")
@click.argument("file", metavar="FILE")
@click.option("--dry-run", is_flag=True, help="Say what would be done or would fail, and do nothing.")
@click.option("--prune", is_flag=True, help="Drop the tables and views that are not in the file.")
@click.option("--replace-closed", is_flag=True, help="Replace views also if that computes closed windows anew.")
@click.option("--follow", is_flag=True, help="Stay afterwards and keep the views up to date until Ctrl-C.")
@click.option("--dialect", type=click.Choice(["spark", "postgres"]), default="spark", show_default=True)
@warehouse_options
def command(
    file: str,
    dry_run: bool,
    prune: bool,
    replace_closed: bool,
    follow: bool,
    dialect: str,
    warehouse: str,
    catalog: str | None,
    spark: str | None,
) -> None:
    """Run the statements of FILE in order, and stop at the first that fails.

    All of it is rehearsed first: if a name or column in it is not there, nothing is done. A table that is there as the
    file says, and a view whose query means the same, are left alone; a table is given the columns that are new at its
    end; a view with another query is replaced, and those that read it follow. Everything else, such as COPY and INSERT,
    is done each time: give COPY a label, and a file is loaded once. Paths in COPY are looked up from the file's folder.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except OSError as error:
        raise click.UsageError(f'cannot read "{file}": {error.strerror}') from error
    folder = "." if file == "-" else os.path.dirname(file) or "."
    began = time.monotonic()
    try:
        statements = parse(text, Dialect(dialect))  # all of them, before the first is run
        with _opened(warehouse, catalog, spark, dialect, dry_run=dry_run) as database:
            steps = _rehearse(database, statements, folder)
            others = not_in_file(database.relations(), statements)
            _say_plan(steps, others, prune=prune)
            _require_open_windows(steps, replace_closed=replace_closed)
            if not dry_run:
                _do_all(database, steps)
                if prune:
                    _drop(database, others)
                database.flush()
            counts = Counter(step.deed for step in steps)
            done = ", ".join(f"{counts[deed]} {deed.value}" for deed in Deed if counts[deed]) or "nothing to do"
            click.echo(f"{done} in {time.monotonic() - began:.1f} s, epoch {database.epoch}", err=True)
            if follow and not dry_run:
                _follow(database)
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)
    except Exception as error:  # a bug: say so without a traceback, which --debug shows
        fail(error)


@contextmanager
def _opened(
    warehouse: str, catalog: str | None, spark: str | None, dialect: str, *, dry_run: bool
) -> Iterator[Database]:
    """The warehouse; for a rehearsal where there is none yet an empty one elsewhere, that goes again."""
    with ExitStack() as stack:
        if dry_run:
            try:
                look_at(warehouse, catalog=catalog).close()
            except NoWarehouseError:
                warehouse, catalog = stack.enter_context(TemporaryDirectory(prefix="stepwell-")), None
        yield stack.enter_context(connect(warehouse, catalog=catalog, spark=spark, dialect=dialect))


def _rehearse(database: Database, statements: Sequence[Statement], folder: str) -> list[RunStep]:
    found: list[list[RunStep]] = []
    try:
        wait_for(database, lambda: found.append(database.rehearse(statements, folder)))
    except StepwellError:
        click.echo("nothing was done: the rehearsal failed", err=True)
        raise
    return found[0]


def _say_plan(steps: Sequence[RunStep], others: Sequence[Relation], *, prune: bool) -> None:
    for number, step in enumerate(steps, 1):
        click.echo(f"{number}/{len(steps)} {step.deed.value}: {_first_line(step.statement.slice.text)}", err=True)
    for each in others:
        said = "dropped" if prune else "left alone; --prune drops it"
        click.echo(f'not in the file: {each.kind} "{each.name}", {said}', err=True)


def _require_open_windows(steps: Sequence[RunStep], *, replace_closed: bool) -> None:
    """Refuse to write anew what was final, unless that is wanted."""
    said = [step.rewrites for step in steps if step.rewrites]
    for each in said:
        click.echo(f"closed windows: {each}", err=True)
    if said and not replace_closed:
        raise DependentsError(
            "closed windows would be computed anew", detail="Nothing was done.", hint="With --replace-closed they are."
        )


def _do_all(database: Database, steps: Sequence[RunStep]) -> None:
    done = 0
    for together in _runs(steps):
        try:
            if together[0].deed != Deed.KEEP:
                statements = [step.statement for step in together]
                wait_for(database, lambda statements=statements: run_statement(database, statements, "table"))  # type: ignore[misc]
        except BaseException:
            click.echo(f"{done} of {len(steps)} statements are done, and stay", err=True)
            raise
        done += len(together)


def _runs(steps: Sequence[RunStep]) -> Iterator[list[RunStep]]:
    """Consecutive CREATEs together, since one epoch builds them; everything else by itself."""
    for deed, group in groupby(steps, key=lambda step: step.deed):
        found = list(group)
        yield from [found] if deed == Deed.CREATE else [[step] for step in found]


def _drop(database: Database, others: Sequence[Relation]) -> None:
    for each in others:
        database.execute(*parse(f"DROP {each.kind.value.upper()} {quote(each.name)}"))


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _follow(database: Database) -> None:
    """Run the barriers that others ask for; no setting of the database is changed by it."""
    click.echo("following; Ctrl-C ends it", err=True)
    seen = database.epoch
    try:
        while True:
            database.lead()
            time.sleep(0.5)
            if database.epoch != seen:
                seen = database.epoch
                click.echo(f"epoch {seen}", err=True)
    except KeyboardInterrupt:
        click.echo("", err=True)

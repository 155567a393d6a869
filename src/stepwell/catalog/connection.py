"""The way into a catalog: a URL to transactions.

SQLite: write-ahead log, full synchronisation, write transactions begin IMMEDIATE so that they queue instead of failing.
PostgreSQL: write transactions lock the rows they decide by; reads see one snapshot. A process that is stopped or cut
off amid a transaction would keep its locks, and with the lease's row nobody could take over: the server ends a
transaction that stands still for half a lease, and its owner, awake again, repeats what it was at.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import StaticPool

from stepwell.catalog.migrate import migrate
from stepwell.model.errors import ConflictError, WarehouseError, mask

Transaction = sa.Connection
"""What the functions of this package work on."""

_BUSY_SECONDS = 30
_IDLE_SECONDS = 5


class Catalog:
    """An open catalog. `read()` and `write()` give transactions; everything else is a function on one."""

    def __init__(self, engine: sa.Engine, url: str) -> None:
        self._engine = engine
        self.url = mask(url)
        self._file = _file_of(engine)
        # A catalog in memory is one connection: its transactions take turns.
        self._turn: AbstractContextManager[Any] = (
            threading.Lock() if isinstance(engine.pool, StaticPool) else nullcontext()
        )

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A transaction that sees one state of the catalog and changes nothing."""
        with self._turn, self._engine.connect() as connection:
            if self._engine.dialect.name == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with _translated(), connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction that commits when the block ends and leaves nothing behind when it raises."""
        with self._turn, self._engine.connect() as connection:
            connection = connection.execution_options(stepwell_write=True)
            with _translated(), connection.begin(), _before_commit():
                yield connection
                self._require_there()

    def close(self) -> None:
        self._engine.dispose()

    def _require_there(self) -> None:
        """Fail if the file of the catalog is gone, or another: what is written to it would be lost."""
        if self._file is not None and _file_of(self._engine) != self._file:
            raise WarehouseError(
                "the catalog is gone",
                detail=f'Somebody has removed or replaced "{self._engine.url.database}". Nothing was applied.',
                hint="Bring it back, and open the warehouse again.",
                sqlstate="XX001",
            )


@contextmanager
def _before_commit() -> Iterator[None]:
    """A connection that is lost before COMMIT was said has changed nothing for certain: it can be done again."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if error.connection_invalidated or "idle-in-transaction" in str(error.orig):
            raise ConflictError(
                "the catalog ended a transaction that stood still", detail=str(error.orig).strip()
            ) from error
        raise


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        said = str(error.orig).strip()
        if "disk is full" in said or "No space left" in said:  # SQLite's words, and PostgreSQL's
            raise WarehouseError(
                "the disk of the catalog is full",
                detail=said,
                hint="Free some space and run it again; VACUUM removes files that nobody needs any more.",
                sqlstate="53100",
            ) from error
        if _is_damage(error):
            raise catalog_damaged(said) from error
        raise WarehouseError("the catalog is busy or out of reach", detail=said, hint="Try again.") from error
    except DatabaseError as error:
        if _is_damage(error):
            raise catalog_damaged(str(error.orig).strip()) from error
        raise


_DAMAGED = ("no such table", "no such column", "malformed", "not a database")
"""What SQLite says of tables that somebody has taken away, and of files that are none of its own."""
_UNDEFINED = ("42P01", "42703")
"""The same in PostgreSQL's SQLSTATEs."""


def _is_damage(error: DatabaseError) -> bool:
    """Whether a database says that something is missing or cannot be read."""
    return getattr(error.orig, "sqlstate", None) in _UNDEFINED or any(each in str(error.orig) for each in _DAMAGED)


def the_one(tx: Transaction, query: sa.Select[Any], what: str) -> Any:
    """The one row that a table of the catalog always has."""
    found = tx.execute(query).all()
    if len(found) != 1:
        raise catalog_damaged(f"It has {len(found)} rows that say {what}, instead of one.")
    return found[0]


def catalog_damaged(said: str) -> WarehouseError:
    """The error for a catalog in which something is missing or cannot be read."""
    return WarehouseError(
        "the catalog is damaged",
        detail=said,
        hint="Bring it back from a copy, or RESTORE a checkpoint into an empty warehouse.",
        sqlstate="XX001",
    )


def _file_of(engine: sa.Engine) -> tuple[int, int] | None:
    """What tells the file of a catalog from any other; None where it is in no file of ours."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return None
    try:
        found = os.stat(engine.url.database)
    except FileNotFoundError:
        return (0, 0)
    return found.st_dev, found.st_ino


def open_catalog(url: str) -> Catalog:
    """Open the catalog at `url`, `memory:` for one that lives as long as this object, and bring it up to date."""
    try:
        engine = _engine(url)
    except (NoSuchModuleError, ImportError, OSError, sa.exc.ArgumentError) as error:
        raise WarehouseError(
            f'"{mask(url)}" is not a catalog that can be opened',
            detail=str(error),
            hint="Use sqlite:///path/catalog.db, or postgresql+psycopg://… with stepwell[postgres] installed.",
        ) from error
    try:
        migrate(engine, mask(url))
    except DatabaseError as error:
        engine.dispose()
        raise WarehouseError(f'cannot open the catalog "{mask(url)}"', detail=str(error.orig).strip()) from error
    except BaseException:
        engine.dispose()
        raise
    return Catalog(engine, url)


def sqlite_url(path: str) -> str:
    """The URL of a SQLite catalog in the file `path`, whatever signs are in it."""
    return sa.URL.create("sqlite", database=path).render_as_string()


def _engine(url: str) -> sa.Engine:
    if url == "memory:":
        engine = sa.create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        return _prepare_sqlite(engine)
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if parsed.database:
            _make_folder(Path(parsed.database).absolute().parent)
        return _prepare_sqlite(sa.create_engine(url, connect_args={"timeout": _BUSY_SECONDS}))
    options = f"-c lock_timeout={_BUSY_SECONDS}s -c idle_in_transaction_session_timeout={_IDLE_SECONDS}s"
    return sa.create_engine(url, pool_pre_ping=True, connect_args={"options": options})


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, and make them survive a power cut; what is in it, SQLite sees to."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    above = os.open(folder.parent, os.O_RDONLY)
    try:
        os.fsync(above)
    finally:
        os.close(above)


def _prepare_sqlite(engine: sa.Engine) -> sa.Engine:
    @sa.event.listens_for(engine, "connect")
    def connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say, not where the driver thinks
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA busy_timeout={_BUSY_SECONDS * 1000}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        is_write = connection.get_execution_options().get("stepwell_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")

    return engine

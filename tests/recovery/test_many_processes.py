"""Several processes on one warehouse: one leads, all write, and a leader that dies or sleeps is followed by another."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import stepwell
import writing
from servers import PostgresServer
from stepwell.catalog import leases
from stepwell.database import open_runtime
from stepwell.engine import Runtime
from stepwell.storage import Warehouse

COUNT = 15


@pytest.fixture(params=["sqlite", "postgresql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/warehouse/catalog.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@contextmanager
def writers(warehouse: Path, catalog: str, firsts: Sequence[int], count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that write numbers; they end with the block, whatever happens in it."""
    with ExitStack() as stack:
        processes = []
        for first in firsts:
            process = subprocess.Popen(
                [sys.executable, writing.__file__, str(warehouse), catalog, str(first), str(count)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        yield processes


def finish(process: subprocess.Popen[str]) -> list[int]:
    """The numbers that a writer was told are safe."""
    printed, talk = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), talk
    return [int(line) for line in printed.split()]


def leader_pid(runtime: Runtime) -> int | None:
    with runtime.catalog.read() as tx:
        holder = leases.look(tx).holder
    return int(holder.split(":")[-2]) if holder else None


def is_locked(catalog: str) -> bool:
    """Whether a process that stands still holds the lock of a SQLite catalog; PostgreSQL ends such transactions."""
    if not catalog.startswith("sqlite:///"):
        return False
    connection = sqlite3.connect(catalog.removeprefix("sqlite:///"), timeout=3, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE").connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return True
    finally:
        connection.close()
    return False


def prepare(warehouse: Path, catalog: str) -> None:
    with stepwell.connect(warehouse, catalog=catalog) as db:
        writing.table(db)


def test_writers_in_many_processes_lose_and_double_nothing(tmp_path: Path, catalog: str) -> None:
    warehouse = tmp_path / "warehouse"
    prepare(warehouse, catalog)
    with writers(warehouse, catalog, [0, 1000, 2000, 3000], COUNT) as started:
        safe = [value for writer in started for value in finish(writer)]
    assert len(safe) == 4 * COUNT
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.flush()
        assert sorted(writing.read(db._runtime)) == sorted(safe)


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_a_leader_that_dies_or_sleeps_is_followed_and_then_refused(
    tmp_path: Path, catalog: str, harm: signal.Signals
) -> None:
    warehouse = tmp_path / "warehouse"
    prepare(warehouse, catalog)
    # To look on: a whole database might lead by itself.
    runtime = open_runtime(Warehouse(str(warehouse)), catalog)
    with writers(warehouse, catalog, [0, 100_000, 200_000], 100) as started:
        pid = None
        while pid not in {writer.pid for writer in started} or len(writing.read(runtime)) < 10:
            assert any(writer.poll() is None for writer in started), "they were done before one could be harmed"
            time.sleep(0.05)
            pid = leader_pid(runtime)
        assert pid is not None
        os.kill(pid, harm)
        while harm == signal.SIGSTOP and is_locked(catalog):
            # A sleeper with SQLite's lock holds up everybody, and no one can take it: let it go on and try again.
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
            os.kill(pid, harm)
        before = len(writing.read(runtime))
        deadline = time.monotonic() + 60  # the lease is ten seconds
        while len(writing.read(runtime)) <= before:
            assert time.monotonic() < deadline, "nobody took over"
            time.sleep(0.2)
        if harm == signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
        safe = [value for writer in started for value in finish(writer)]
    runtime.catalog.close()
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.flush()
        held = writing.read(db._runtime)
        assert len(held) == len(set(held))
        assert set(safe) <= set(held)
        assert len(held) <= len(safe) + 1

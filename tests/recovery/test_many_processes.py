"""Several processes on one warehouse: one leads, all write, and a leader that dies or sleeps is followed by another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
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


def start(warehouse: Path, catalog: str, first: int, count: int = COUNT) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, writing.__file__, str(warehouse), catalog, str(first), str(count)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> list[int]:
    """The numbers that a writer was told are safe."""
    printed, talk = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), talk
    return [int(line) for line in printed.split()]


def leader_pid(runtime: Runtime) -> int | None:
    with runtime.catalog.read() as tx:
        holder = leases.look(tx).holder
    return int(holder.split(":")[-2]) if holder else None


def prepare(warehouse: Path, catalog: str) -> None:
    with stepwell.connect(warehouse, catalog=catalog) as db:
        writing.table(db)


def test_writers_in_many_processes_lose_and_double_nothing(tmp_path: Path, catalog: str) -> None:
    warehouse = tmp_path / "warehouse"
    prepare(warehouse, catalog)
    writers = [start(warehouse, catalog, 1000 * number) for number in range(4)]
    safe = [value for writer in writers for value in finish(writer)]
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
    writers = [start(warehouse, catalog, 100_000 * number, 100) for number in range(3)]
    runtime = open_runtime(Warehouse(str(warehouse)), catalog)  # to look on: a whole database might lead by itself
    pid = None
    while pid not in {writer.pid for writer in writers} or len(writing.read(runtime)) < 10:
        assert any(writer.poll() is None for writer in writers), "they were done before one could be harmed"
        time.sleep(0.05)
        pid = leader_pid(runtime)
    assert pid is not None
    os.kill(pid, harm)
    time.sleep(0.5)
    before = len(writing.read(runtime))
    deadline = time.monotonic() + 60  # the lease is ten seconds
    while len(writing.read(runtime)) <= before:
        assert time.monotonic() < deadline, "nobody took over"
        time.sleep(0.2)
    if harm == signal.SIGSTOP:
        os.kill(pid, signal.SIGCONT)
    runtime.catalog.close()
    safe = [value for writer in writers for value in finish(writer)]
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.flush()
        held = writing.read(db._runtime)
        assert len(held) == len(set(held))
        assert set(safe) <= set(held)
        assert len(held) <= len(safe) + 1

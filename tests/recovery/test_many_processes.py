"""Several processes on one warehouse: one leads, all write, and a leader that dies or sleeps is followed by another."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import stepwell
import writing
from recovery import conflicting
from servers import PostgresServer
from stepwell.catalog import leases
from stepwell.engine import Runtime, open_runtime
from stepwell.model.limits import Limits
from stepwell.storage import Warehouse

TORTURE = bool(os.environ.get("STEPWELL_TORTURE"))
COUNT = 15 if TORTURE else 8
SECONDS = 20 if TORTURE else 5
"""How long statements of every kind run at once."""

CATALOGS = ["sqlite", "postgresql"]


def on(catalog: str) -> pytest.MarkDecorator:
    """The catalog of a test; under torture it is both, one after the other."""
    return pytest.mark.parametrize("catalog", CATALOGS if TORTURE else [catalog], indirect=True)


@pytest.fixture
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


@on("sqlite")
def test_writers_in_many_processes_lose_and_double_nothing(tmp_path: Path, catalog: str) -> None:
    warehouse = tmp_path / "warehouse"
    prepare(warehouse, catalog)
    with writers(warehouse, catalog, [0, 1000, 2000, 3000], COUNT) as started:
        safe = [value for writer in started for value in finish(writer)]
    assert len(safe) == 4 * COUNT
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.flush()
        assert sorted(writing.read(db._runtime)) == sorted(safe)


@pytest.mark.parametrize(
    ("harm", "catalog"),
    [
        (harm, catalog)
        for harm, usual in ((signal.SIGKILL, "postgresql"), (signal.SIGSTOP, "sqlite"))
        for catalog in (CATALOGS if TORTURE else [usual])
    ],
    indirect=["catalog"],
)
def test_a_leader_that_dies_or_sleeps_is_followed_and_then_refused(
    tmp_path: Path, catalog: str, harm: signal.Signals
) -> None:
    warehouse = tmp_path / "warehouse"
    prepare(warehouse, catalog)
    # To look on: a whole database might lead by itself.
    runtime = open_runtime(Warehouse(str(warehouse)), catalog)
    with writers(warehouse, catalog, [0, 100_000, 200_000], 100 if TORTURE else 40) as started:
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


@on("postgresql")
def test_the_same_rows_changed_by_two_processes_in_one_interval_change_once(tmp_path: Path, catalog: str) -> None:
    """Two deletes of a row, two upserts of a key, and updates that must not be lost, all inside one barrier interval."""
    warehouse, go = tmp_path / "warehouse", tmp_path / "go"
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.sql(
            "CREATE TABLE plain (v INT); CREATE TABLE keyed (k INT PRIMARY KEY, who INT); CREATE TABLE counter (n INT)"
        )
        db.sql("INSERT INTO plain VALUES (0), (1), (1), (2), (9)")  # 1 twice: both go, and nothing else
        db.sql("INSERT INTO counter VALUES (0); INSERT INTO keyed VALUES (1, -1)")
        db.sql("CREATE MATERIALIZED VIEW counts AS SELECT v, count(*) AS n FROM plain GROUP BY v")
        db.sql("CREATE MATERIALIZED VIEW whose AS SELECT who, count(*) AS n FROM keyed GROUP BY who")
        db.sql("SET barrier_interval = '3 seconds'")
    with ExitStack() as stack:
        started = []
        for number in (1, 2):
            process = subprocess.Popen(
                [sys.executable, conflicting.__file__, str(warehouse), catalog, str(number), str(go)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.enter_context(process)
            stack.callback(process.kill)
            started.append(process)
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
        go.touch()
        for process in started:
            printed, talk = process.communicate(timeout=240)
            assert process.returncode == 0, talk
            assert printed.split() == [str(number) for number in range(conflicting.ROUNDS)]
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.flush()
        assert [tuple(row) for row in db.sql("SELECT v FROM plain").collect()] == [(9,)]
        assert [tuple(row) for row in db.sql("SELECT * FROM counts").collect()] == [(9, 1)]
        assert [tuple(row) for row in db.sql("SELECT n FROM counter").collect()] == [(2 * conflicting.ROUNDS,)]
        keys = [tuple(row) for row in db.sql("SELECT k, who FROM keyed ORDER BY k").collect()]
        assert [key for key, _ in keys] == list(range(conflicting.ROUNDS))
        assert {who for _, who in keys} <= {1, 2}
        deleted = db.sql("SELECT v, sum(_diff) AS n FROM changes(plain, 0) GROUP BY v ORDER BY v").collect()
        assert [tuple(row) for row in deleted] == [(0, 0), (1, 0), (2, 0), (9, 1)]
        for view in ("counts", "whose"):
            assert db.sql(f"VERIFY {view}").collect()[0]["ok"]


@on("sqlite")
def test_a_lease_that_a_wrong_clock_made_endless_is_taken_all_the_same(tmp_path: Path, catalog: str) -> None:
    """The holder's clock had jumped ahead by a year when it died, on a machine that nobody can look at."""
    warehouse = tmp_path / "warehouse"
    prepare(warehouse, catalog)
    runtime = open_runtime(Warehouse(str(warehouse)), catalog)
    with runtime.catalog.write() as tx:
        leases.take(tx, leases.look(tx), "elsewhere:1:1", runtime.clock.now() + 365 * 86_400_000_000)
    with stepwell.connect(warehouse, catalog=catalog, _limits=Limits(lease_microseconds=2_000_000)) as db:
        writing.write(db, writing.table(db), [1])  # would wait for a year
        assert writing.read(db._runtime) == [1]
    runtime.catalog.close()


@on("postgresql")
def test_a_leader_whose_clock_jumps_goes_on_leading(tmp_path: Path, catalog: str) -> None:
    class Jumping:
        """A clock that somebody sets, forwards and back."""

        offset = 0

        def now(self) -> int:
            return time.time_ns() // 1000 + self.offset

    clock = Jumping()
    with stepwell.connect(tmp_path / "warehouse", catalog=catalog, clock=clock) as db:
        relation = writing.table(db)
        for number, clock.offset in enumerate([0, 86_400_000_000, -86_400_000_000, 0]):
            writing.write(db, relation, [number])
        assert sorted(writing.read(db._runtime)) == [0, 1, 2, 3]
        epochs = [row["epoch"] for row in db.sql("SELECT * FROM stepwell.epochs").collect()]
        assert epochs == sorted(epochs)


@pytest.mark.parametrize("catalog", ["postgresql"], indirect=True)
def test_no_deadlock_under_load(tmp_path: Path, catalog: str) -> None:
    """Every kind of statement at once, by several databases; a deadlock or a lock waited for too long is an error."""
    warehouse = tmp_path / "warehouse"
    failures: list[BaseException] = []
    counts = [0] * 6
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.sql("CREATE TABLE a (v INT); CREATE TABLE k (id INT PRIMARY KEY, v INT)")
        db.sql("CREATE MATERIALIZED VIEW sums AS SELECT count(*) AS n, sum(v) AS s FROM a")
    statements = [
        ["INSERT INTO a VALUES (1)"],
        ["INSERT INTO a VALUES (2)", "OPTIMIZE a"],
        ["INSERT INTO k VALUES (1, 1), (2, 2)", "UPDATE k SET v = v + 1 WHERE id = 1"],
        ["BEGIN; INSERT INTO a VALUES (3); INSERT INTO k VALUES (3, 3); COMMIT", "DELETE FROM k WHERE id = 3"],
        ["CREATE TABLE IF NOT EXISTS extra (x INT)", "DROP TABLE IF EXISTS extra", "VACUUM"],
        ["ALTER MATERIALIZED VIEW sums PAUSE", "ALTER MATERIALIZED VIEW sums RESUME", "VERIFY sums"],
    ]
    until = time.monotonic() + SECONDS

    def work(number: int) -> None:
        try:
            with stepwell.connect(warehouse, catalog=catalog) as db:
                while time.monotonic() < until:
                    for text in statements[number]:
                        try:
                            db.sql(text)
                        except stepwell.ConflictError:
                            continue
                        counts[number] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(statements))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=180)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    assert all(counts), counts
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.flush()
        assert db.sql("VERIFY sums").collect()[0]["ok"]

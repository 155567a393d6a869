"""SIGKILL at every fail point of the commit protocol, on SQLite and on PostgreSQL: nothing lost, nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell
import writing
from servers import PostgresServer
from stepwell.catalog import files, relations
from stepwell.engine import clean_orphans
from stepwell.model.failpoints import FAILPOINTS
from stepwell.storage import log_state

NEED_SPARK = {"maintain.view", "fold.written", "fold.committed"}
OF_CREATES = {"create.withheld", "create.registered"}
OF_JOBS = {each for each in FAILPOINTS if each.startswith(("refresh.", "build."))}
OF_COPIES = {each for each in FAILPOINTS if each.startswith(("checkpoint.", "restore.", "repair.", "publish.copied"))}
CATALOGS = ["sqlite", "postgresql"]
COUNT = 20


def run(warehouse: Path, catalog: str, failpoint: str) -> tuple[int, list[int]]:
    """A writer in a process of its own that is to be killed; its exit code, and the numbers it was told are safe."""
    # Nobody else is at work, so nothing is too young to go.
    environment = {**os.environ, "STEPWELL_FAILPOINT": failpoint, "STEPWELL_TEST_LAZY_READERS": "0"}
    done = subprocess.run(
        [sys.executable, writing.__file__, str(warehouse), catalog, "0", str(COUNT)],
        env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.returncode, [int(line) for line in done.stdout.split()]


KILLS = [
    (failpoint, catalog)
    for number, failpoint in enumerate(
        each for each in FAILPOINTS if each not in NEED_SPARK | OF_CREATES | OF_JOBS | OF_COPIES
    )
    for catalog in (CATALOGS if os.environ.get("STEPWELL_TORTURE") else [CATALOGS[number % 2]])
]
"""Every fail point, on alternating catalogs; under torture on both."""


@pytest.fixture
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/warehouse/catalog.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.mark.parametrize(("failpoint", "catalog"), KILLS, indirect=["catalog"])
def test_a_writer_killed_anywhere_loses_nothing_and_doubles_nothing(
    tmp_path: Path, catalog: str, failpoint: str
) -> None:
    warehouse = tmp_path / "warehouse"
    at_the_third = failpoint if failpoint.startswith(("merge", "vacuum")) else f"{failpoint}:3"
    code, first = run(warehouse, catalog, at_the_third)
    assert code == -signal.SIGKILL, "the fail point was not reached"
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.flush()
        held = writing.read(db._runtime)
        assert set(first) <= set(held)
        assert len(held) == len(set(held))
        assert len(held) <= len(first) + 1
        second = list(range(1000, 1000 + COUNT))
        for value in second:
            writing.write(db, writing.table(db), [value])
    writing.clean(str(warehouse), catalog, lazy_readers=0)
    with stepwell.connect(warehouse, catalog=catalog) as db:
        held = writing.read(db._runtime)
        assert set(first) | set(second) <= set(held)
        assert len(held) == len(set(held))
        check_that_disk_catalog_and_delta_agree(db)


def check_that_disk_catalog_and_delta_agree(db: stepwell.Database) -> None:
    runtime = db._runtime
    clean_orphans(runtime, older_than=0)
    with runtime.catalog.read() as tx:
        known = files.paths(tx)
        published = {each.id: {file.path for file in files.published(tx, each.id)} for each in relations.get_all(tx)}
    on_disk = {
        tuple(path.removeprefix(f"{runtime.warehouse.root}/data/").split("/", 2))
        for path in runtime.warehouse.list(f"{runtime.warehouse.root}/data")
        if "_delta_log" not in path
    }
    assert on_disk == {(str(relation), store, path) for relation, store, path in known}
    for relation, paths in published.items():
        state = log_state(runtime.warehouse, relation)
        assert state is not None
        assert state[0] == paths


def test_a_killed_leader_is_followed_at_once(tmp_path: Path) -> None:
    """Nobody waits for the lease of a process that is known to be dead."""
    warehouse, catalog = tmp_path / "warehouse", f"sqlite:///{tmp_path}/warehouse/catalog.db"
    code, _ = run(warehouse, catalog, "barrier.readable:3")
    assert code == -signal.SIGKILL
    with stepwell.connect(warehouse, catalog=catalog) as db:
        writing.write(db, writing.table(db), [77])
        assert 77 in writing.read(db._runtime)

"""Checkpoints, restores and repairs killed in each of their steps, on SQLite and PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell
from servers import PostgresServer
from stepwell.catalog import pins
from stepwell.database import look_at
from stepwell.model.failpoints import FAILPOINTS
from views import answer

TORTURE = bool(os.environ.get("STEPWELL_TORTURE"))
KEPT = Path(__file__).parents[1] / "checkpoints" / "0012"
ROWS = {(1, 1, 11), (2, 1, 20), (3, 2, 30), (4, 2, 40)}


def kills(*steps: str) -> list[tuple[str, bool]]:
    """Each step on both catalogs, or on one after the other."""
    both = [(step, on_postgres) for step in steps for on_postgres in (False, True)]
    return both if TORTURE else [(step, number % 2 == 1) for number, step in enumerate(steps)]


CHECKPOINT = kills("checkpoint.pinned", "checkpoint.copied:3", "checkpoint.catalog", "checkpoint.published")
RESTORE = kills(
    "restore.marked", "restore.copied:1", "restore.copied:9", "restore.inside", "restore.committed", "restore.unmarked"
)
REPAIR = kills("repair.checked", "repair.marked") if TORTURE else [("repair.marked", False)]


def test_every_step_is_killed() -> None:
    known = {step.partition(":")[0] for step, _ in (*CHECKPOINT, *RESTORE, *kills("repair.checked", "repair.marked"))}
    assert known == {each for each in FAILPOINTS if each.startswith(("checkpoint.", "restore.", "repair."))}


@pytest.fixture
def catalog(on_postgres: bool, request: pytest.FixtureRequest) -> str | None:
    if not on_postgres:
        return None
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


def run_and_die(failpoint: str, warehouse: Path, catalog: str | None, *words: str) -> None:
    place = ["-w", str(warehouse), *(["--catalog", catalog] if catalog else [])]
    done = subprocess.run(
        [sys.executable, "-m", "stepwell.cli", *words, *place],
        env={**os.environ, "STEPWELL_FAILPOINT": failpoint}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(("failpoint", "on_postgres"), CHECKPOINT)
def test_a_killed_checkpoint_is_not_there_and_the_next_leader_takes_it(
    tmp_path: Path, failpoint: str, catalog: str | None
) -> None:
    warehouse, folder = tmp_path / "w", tmp_path / "copies"
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.restore(KEPT)
    run_and_die(failpoint, warehouse, catalog, "checkpoint", str(folder))
    with stepwell.connect(tmp_path / "empty") as db:
        assert len(answer(db, f"SHOW CHECKPOINTS IN '{folder}'")) == (failpoint == "checkpoint.published")
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.sql("WAIT")
        assert answer(db, "SELECT kind, state, attempts FROM stepwell.jobs")[-1] == ("checkpoint", "done", 2)
        with db._runtime.catalog.read() as tx:
            assert pins.pinned(tx) == []
    assert not list(folder.rglob("*.part"))
    require_restorable(folder, tmp_path / "restored")


def require_restorable(folder: Path, warehouse: Path) -> None:
    with stepwell.connect(warehouse) as db:
        db.restore(folder)
        assert answer(db, "SELECT name, rows FROM stepwell.tables") == [("t", 4), ("g", 2)]
    onlooker = look_at(warehouse)
    assert onlooker.damages(deep=True) == []
    onlooker.close()


@pytest.mark.parametrize(("failpoint", "on_postgres"), RESTORE)
def test_a_killed_restore_leaves_all_or_nothing(tmp_path: Path, failpoint: str, catalog: str | None) -> None:
    warehouse = tmp_path / "w"
    run_and_die(failpoint, warehouse, catalog, "restore", str(KEPT))
    is_done = failpoint in ("restore.committed", "restore.unmarked")
    with stepwell.connect(warehouse, catalog=catalog) as db:
        assert not (warehouse / "restoring").exists()
        assert db.epoch == (4 if is_done else 0)
        assert (warehouse / "data").exists() == is_done
        if not is_done:
            db.restore(KEPT)
        assert answer(db, "SELECT name, rows FROM stepwell.tables") == [("t", 4), ("g", 2)]
        assert answer(db, "SELECT label FROM stepwell.loads") == [("four",)]
    onlooker = look_at(warehouse, catalog=catalog)
    assert onlooker.damages(deep=True) == []
    onlooker.close()


@pytest.mark.parametrize(("failpoint", "on_postgres"), REPAIR)
def test_a_killed_repair_leaves_a_view_that_is_repaired(tmp_path: Path, failpoint: str, catalog: str | None) -> None:
    warehouse = tmp_path / "w"
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.restore(KEPT)
        number = dict(answer(db, "SELECT name, id FROM stepwell.tables"))["g"]
    for path in (warehouse / "data" / str(number)).rglob("*.parquet"):
        path.unlink()
    run_and_die(failpoint, warehouse, catalog, "verify", "g", "--repair")
    with stepwell.connect(warehouse, catalog=catalog) as db:
        if failpoint == "repair.checked":
            db.sql("VERIFY g REPAIR")
        db.flush()
        assert set(answer(db, "SELECT * FROM g")) == {(1, 31), (2, 70)}
        assert answer(db, "VERIFY g")[0][2] is True

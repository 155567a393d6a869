"""Runs of CREATEs: registered together or not at all. Tables alone, so that no Spark is needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepwell
from stepwell.catalog import relations
from stepwell.engine import vacuum
from stepwell.model.errors import DuplicateNameError
from stepwell.model.limits import Limits
from stepwell.sql import parse, runs_of

THREE = "CREATE TABLE a (v INT); CREATE TABLE b (v INT); CREATE TABLE c (v INT)"


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path / "warehouse", _limits=Limits(lazy_readers_microseconds=0)) as db:
        yield db


def names(db: stepwell.Database) -> set[str]:
    return {each.name for each in db.relations()}


def known(db: stepwell.Database) -> int:
    """How many relations the catalog remembers, withheld and dropped ones too."""
    with db._runtime.catalog.read() as tx:
        return len(relations.known_ids(tx))


def test_consecutive_creates_are_a_run_and_everything_else_is_by_itself() -> None:
    text = "CREATE TABLE a (v INT); CREATE VIEW b AS SELECT 1 AS x; FLUSH; FLUSH; CREATE TABLE c (v INT); DROP TABLE c"
    assert [len(run) for run in runs_of(parse(text))] == [2, 1, 1, 1, 1]


def test_a_run_is_one_epoch(idle: stepwell.Database) -> None:
    before = idle.epoch
    idle.sql(THREE)
    assert idle.epoch == before + 1
    assert names(idle) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("last", "error"),
    [
        ("CREATE TABLE _sw_x (v INT)", "reserved"),
        ("CREATE TABLE B (w INT)", 'relation "B" exists already'),
        ("CREATE TABLE there (v INT)", 'relation "there" exists already'),
    ],
)
def test_an_error_in_one_of_them_registers_none(idle: stepwell.Database, last: str, error: str) -> None:
    idle.sql("CREATE TABLE there (v INT)")
    before = idle.epoch
    with pytest.raises(stepwell.StepwellError, match=error) as caught:
        idle.sql(f"{THREE}; {last}")
    assert caught.value.place is not None
    assert last.split("(")[0].split()[2] in caught.value.place.draw()
    assert names(idle) == {"there"}
    assert idle.epoch == before
    assert known(idle) == 1
    idle.sql(THREE)  # all names are free
    assert names(idle) == {"there", "a", "b", "c"}


def test_what_is_there_already_is_left_out_of_a_run(idle: stepwell.Database) -> None:
    idle.sql("CREATE TABLE a (v INT)")
    before = idle.epoch
    idle.sql("CREATE TABLE IF NOT EXISTS a (w INT); CREATE TABLE b (v INT); CREATE TABLE IF NOT EXISTS b (w INT)")
    assert idle.epoch == before + 1
    assert {each.name: each.columns[0].name for each in idle.relations()} == {"a": "v", "b": "v"}
    idle.sql("CREATE TABLE IF NOT EXISTS a (w INT); CREATE TABLE IF NOT EXISTS b (w INT)")
    assert idle.epoch == before + 1


def test_two_who_define_at_once_both_succeed_or_hear_why(idle: stepwell.Database) -> None:
    """Somebody takes a name between the drafts of a run: the run is tried anew, and says that it is taken."""
    original = relations.withhold

    def meanwhile(*given: object) -> None:
        original(*given)  # type: ignore[arg-type]  # handed on as it came
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(relations, "withhold", original)
            other.append("CREATE TABLE c (v INT)")

    other: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relations, "withhold", meanwhile)
        patch.setattr("stepwell.engine.define.runs.failpoint", lambda name: [idle.sql(other.pop()) for _ in other[:1]])
        with pytest.raises(DuplicateNameError, match='relation "c" exists already'):
            idle.sql(THREE)
    assert names(idle) == {"c"}


@pytest.mark.parametrize(("failpoint", "made"), [("create.withheld:2", set()), ("create.registered", {"a", "b", "c"})])
def test_a_process_killed_amid_a_run_leaves_all_of_it_or_nothing(
    tmp_path: Path, failpoint: str, made: set[str]
) -> None:
    warehouse = tmp_path / "warehouse"
    code = f"import sys, stepwell; stepwell.connect(sys.argv[1]).sql({THREE!r})"
    done = subprocess.run(
        [sys.executable, "-c", code, str(warehouse)],
        env={**os.environ, "STEPWELL_FAILPOINT": failpoint}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    with stepwell.connect(warehouse, _limits=Limits(lazy_readers_microseconds=0)) as db:
        db.flush()
        assert names(db) == made
        assert known(db) == (3 if made else 2)
        vacuum(db._runtime, 0)
        assert known(db) == len(made)
        if not made:
            db.sql(THREE)
            assert names(db) == {"a", "b", "c"}

"""A process killed amid an epoch of event time: what was late, what is shown, and the watermarks come out the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stepwell
from recovery import time_writer
from views import answer


def outcome(db: stepwell.Database) -> dict[str, Any]:
    found: dict[str, Any] = {name: sorted(answer(db, f"SELECT * FROM {name}")) for name in time_writer.VIEWS}
    for name in time_writer.VIEWS:
        columns = [each for each in db.sql(f"SELECT * FROM {name}$late").columns if each != "_epoch"]
        found[f"{name}$late"] = sorted(answer(db, f"SELECT {', '.join(columns)} FROM {name}$late"), key=str)
    found["marks"] = answer(db, "SELECT name, mark FROM stepwell.watermarks")
    return found


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with stepwell.connect(tmp_path_factory.mktemp("whole") / "warehouse") as db:
        time_writer.prepare(db)
        for step in range(time_writer.STEPS):
            time_writer.write(db, step)
        found = outcome(db)
    assert found["minutes"]
    assert found["minutes$late"]
    assert found["seconds$late"]
    return found


KILLS = ["barrier.commit.inside:6"]
if os.environ.get("STEPWELL_TORTURE"):
    KILLS += ["maintain.view:9", "publish.inside:9"]


@pytest.mark.parametrize("failpoint", KILLS)
def test_it_goes_on_as_if_nothing_had_happened(tmp_path: Path, uninterrupted: dict[str, Any], failpoint: str) -> None:
    warehouse = tmp_path / "warehouse"
    done = subprocess.run(
        [sys.executable, time_writer.__file__, str(warehouse)],
        env={**os.environ, "STEPWELL_FAILPOINT": failpoint}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    with stepwell.connect(warehouse) as db:
        db.flush()
        time_writer.prepare(db)
        written = answer(db, "SELECT count(DISTINCT step) FROM e")[0][0]
        assert written < time_writer.STEPS
        for step in range(written, time_writer.STEPS):
            time_writer.write(db, step)
        assert outcome(db) == uninterrupted
        for name in time_writer.VIEWS:
            assert answer(db, f"VERIFY {name}")[0][2] is True

"""The same kills with Spark in the loop: several changes of one row, consolidated at the barrier and folded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell
from recovery import spark_writer

STATES = [
    {},
    {1: 1, 2: 2, 3: 3},
    {1: 11, 2: 20, 3: 3},
    {1: 11, 2: 20, 4: 4},
    {1: 11, 2: 20, 4: 4},
    {1: 11, 2: 20, 4: 4, 5: 5},
]


FOLDING = ["fold.written", "fold.committed"]
"""The steps that only Spark reaches; the others are killed without it by the commit protocol's tests."""

OTHERS = ["write.after:4", "acknowledge.inside:3", "barrier.commit.inside:3"]


@pytest.mark.parametrize("failpoint", FOLDING + (OTHERS if os.environ.get("STEPWELL_TORTURE") else []))
def test_a_process_killed_amid_its_changes_leaves_a_state_between_two_of_them(tmp_path: Path, failpoint: str) -> None:
    warehouse = tmp_path / "warehouse"
    done = subprocess.run(
        [sys.executable, spark_writer.__file__, str(warehouse)],
        env={**os.environ, "STEPWELL_FAILPOINT": failpoint}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    finished = len(done.stdout.split())
    with stepwell.connect(warehouse) as db:
        db.flush()
        held = {row[0]: row[1] for row in db.sql("SELECT id, v FROM k").collect()}
        assert held in (STATES[finished], STATES[finished + 1])
        spark_writer_again(db)
        assert {row[0]: row[1] for row in db.sql("SELECT id, v FROM k").collect()} == {1: 1, 7: 7}
        negative = db.sql("SELECT id FROM changes(k, 0) GROUP BY id HAVING sum(_diff) < 0")
        assert negative.collect() == []


def spark_writer_again(db: stepwell.Database) -> None:
    db.sql("DELETE FROM k; INSERT INTO k VALUES (1, 1), (7, 7); OPTIMIZE k")

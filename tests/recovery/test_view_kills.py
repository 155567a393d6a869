"""A process killed amid maintenance: every view equals its query at whatever epoch is readable, and goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell
from recovery import view_writer
from views import answer, wrong_views

KILLS = ["maintain.view:5"]
if os.environ.get("STEPWELL_TORTURE"):
    KILLS += ["write.after:9", "barrier.commit.inside:6", "fold.written"]


@pytest.mark.parametrize("failpoint", KILLS)
def test_a_process_killed_amid_maintenance_leaves_views_that_equal_their_queries(
    tmp_path: Path, failpoint: str
) -> None:
    warehouse = tmp_path / "warehouse"
    done = subprocess.run(
        [sys.executable, view_writer.__file__, str(warehouse)],
        env={**os.environ, "STEPWELL_FAILPOINT": failpoint}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    with stepwell.connect(warehouse) as db:
        db.flush()
        made = {name: view_writer.QUERIES[name] for name, *_ in answer(db, "SHOW MATERIALIZED VIEWS")}
        assert wrong_views(db, made) == []
        for name, query in view_writer.QUERIES.items():
            db.sql(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name} AS {query}")
        db.sql("DELETE FROM k WHERE g = 1; INSERT INTO k VALUES (9, 1, 9), (3, 2, 30)")
        assert wrong_views(db, view_writer.QUERIES) == []
        for name in view_writer.QUERIES:
            assert answer(db, f"VERIFY {name}")[0][2] is True

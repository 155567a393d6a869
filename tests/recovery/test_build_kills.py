"""A build killed at each of its steps: the next process goes on with it, and every change counts once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell
from recovery import build_writer
from servers import PostgresServer
from views import answer, wrong_views

STEPS = [
    "build.pinned",
    "build.written",
    "build.inside",
    "build.slice",
    "build.pass",
    "build.join.inside",
    "build.joining",
]
KILLS = [(step, on_postgres) for step in STEPS for on_postgres in (False, True)]
if not os.environ.get("STEPWELL_TORTURE"):  # a step before anything is committed, one between, and the join
    KILLS = [("build.inside", False), ("build.slice", True), ("build.joining", False)]


@pytest.mark.parametrize(("failpoint", "on_postgres"), KILLS)
def test_a_killed_build_is_gone_on_with(
    tmp_path: Path, failpoint: str, on_postgres: bool, request: pytest.FixtureRequest
) -> None:
    catalog = None
    if on_postgres:
        server: PostgresServer = request.getfixturevalue("postgres")
        catalog = server.new_database()
    warehouse = tmp_path / "warehouse"
    done = subprocess.run(
        [sys.executable, build_writer.__file__, str(warehouse), *([catalog] if catalog else [])],
        env={**os.environ, "STEPWELL_FAILPOINT": failpoint}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    with stepwell.connect(warehouse, catalog=catalog, _limits=build_writer.LIMITS) as db:
        db.sql("INSERT INTO t VALUES (500, 1, 500)")
        db.sql("WAIT")
        assert wrong_views(db, build_writer.QUERIES) == []
        db.sql("DELETE FROM t WHERE k = 2")
        assert wrong_views(db, build_writer.QUERIES) == []
        for name in build_writer.QUERIES:
            assert answer(db, f"VERIFY {name}")[0][2] is True
        assert {row[1] for row in answer(db, "SHOW MATERIALIZED VIEWS")} == {"running"}

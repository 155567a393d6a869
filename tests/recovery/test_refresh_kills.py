"""A refresh killed after each of its transactions and inside a batch: reads stay right, and the next one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import stepwell
from recovery import refresh_writer
from servers import PostgresServer
from views import answer

TORTURE = bool(os.environ.get("STEPWELL_TORTURE"))
STEPS = ["refresh.threshold", "refresh.moved", "refresh.written:2", "refresh.enter.inside:2", "refresh.batch:3"]
KILLS = [(step, on_postgres) for step in STEPS for on_postgres in (False, True)]
if not TORTURE:  # one kill for each kind of transaction, on alternating catalogs
    KILLS = [("refresh.moved", False), ("refresh.enter.inside:2", True)]


@pytest.mark.parametrize(("failpoint", "on_postgres"), KILLS)
def test_a_killed_refresh_leaves_a_view_that_is_read_right_and_is_gone_on_with(
    tmp_path: Path, failpoint: str, on_postgres: bool, request: pytest.FixtureRequest
) -> None:
    catalog = None
    if on_postgres:
        server: PostgresServer = request.getfixturevalue("postgres")
        catalog = server.new_database()
    warehouse = tmp_path / "warehouse"
    done = subprocess.run(
        [sys.executable, refresh_writer.__file__, str(warehouse), *([catalog] if catalog else [])],
        env={**os.environ, "STEPWELL_FAILPOINT": failpoint}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.flush()
        expected = Counter(answer(db, refresh_writer.QUERY))
        assert Counter(answer(db, "SELECT * FROM daily")) == expected
        assert answer(db, "VERIFY daily")[0][2] is True
        by_pair = refresh_writer.PAIRS.replace("FROM daily", "FROM daily$stored")
        db.sql("WAIT")  # the refresh goes on by itself
        assert Counter(answer(db, "SELECT * FROM live")) == Counter(answer(db, by_pair))
        db.sql("INSERT INTO t VALUES (50, TIMESTAMP '2026-01-01 03:00:00', 50)")
        expected = Counter(answer(db, refresh_writer.QUERY))
        assert Counter(answer(db, "SELECT * FROM daily")) == expected
        db.sql("REFRESH MATERIALIZED VIEW daily")
        stored = Counter(answer(db, "SELECT * FROM daily$stored"))
        assert stored == Counter({row: n for row, n in expected.items() if row[0].day < 7})
        assert answer(db, "VERIFY daily")[0][2] is True
        left = [each for each in answer(db, "EXPLAIN STALENESS daily") if each[1] != "infinity"]
        assert left == []
        assert Counter(answer(db, "SELECT * FROM live")) == Counter(answer(db, by_pair))
        for name in ("live", "closed"):
            assert answer(db, f"VERIFY {name}")[0][2] is True
        assert len(answer(db, "SELECT * FROM closed")) == 3, "the pairs of days that are over"

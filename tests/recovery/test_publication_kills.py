"""SIGKILL at every step of a publication that writes a copy: the Delta table is whole before, and exact after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

import stepwell
from recovery import replacing_writer
from recovery.test_commit_protocol import check_that_disk_catalog_and_delta_agree
from views import answer


@pytest.mark.parametrize("failpoint", ["publish.copied", "publish.before", "publish.inside", "publish.after"])
def test_a_publication_killed_anywhere_shows_one_epoch_and_then_the_newest(tmp_path: Path, failpoint: str) -> None:
    warehouse = tmp_path / "warehouse"
    done = subprocess.run(
        [sys.executable, replacing_writer.__file__, str(warehouse), "5"],
        env=os.environ | {"STEPWELL_FAILPOINT": f"{failpoint}:4"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    safe = [int(line) for line in done.stdout.split()]
    shown = DeltaTable(str(warehouse / "published" / "t")).to_pyarrow_table()["v"].to_pylist()
    assert shown in ([safe[-1]], [safe[-1] + 1]), "one row at every epoch, never none and never two"
    with stepwell.connect(warehouse) as db:
        db.sql("FLUSH PUBLISH")
        [(rows, behind)] = answer(db, "SELECT rows, behind FROM stepwell.tables")
        assert (rows, behind) == (1, 0)
        assert DeltaTable(str(warehouse / "published" / "t")).to_pyarrow_table().num_rows == 1
        check_that_disk_catalog_and_delta_agree(db)

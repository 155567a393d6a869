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
import writing
from recovery import replacing_writer
from recovery.test_commit_protocol import check_that_disk_catalog_and_delta_agree
from views import answer


@pytest.mark.parametrize("failpoint", ["publish.copied", "publish.before", "publish.inside", "publish.after"])
def test_a_publication_killed_anywhere_shows_one_epoch_and_then_the_newest(tmp_path: Path, failpoint: str) -> None:
    warehouse = tmp_path / "warehouse"
    done = subprocess.run(
        [sys.executable, replacing_writer.__file__, str(warehouse), "5"],
        env=os.environ | {"STEPWELL_FAILPOINT": f"{failpoint}:4", "PYTHONPATH": str(Path(writing.__file__).parent)},
        capture_output=True, text=True, timeout=120,
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


def test_an_epoch_does_not_wait_for_a_copy_that_cannot_be_made(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "warehouse") as db:
        relation = writing.table(db)
        last = replacing_writer.replace(db, relation, 1, None)
        [written] = (tmp_path / "warehouse" / "data" / str(relation.id) / "changes").iterdir()
        aside = written.rename(tmp_path / "aside")
        epoch = db.epoch
        replacing_writer.replace(db, relation, 2, last)
        assert db.epoch == epoch + 1
        assert 'the Delta table of "t" lags' in db.notes[-1]
        assert answer(db, "SELECT behind FROM stepwell.tables") == [(1,)]
        aside.rename(written)
        db.sql("FLUSH t PUBLISH")
        assert answer(db, "SELECT behind FROM stepwell.tables") == [(0,)]
    assert DeltaTable(str(tmp_path / "warehouse" / "published" / "t")).to_pyarrow_table()["v"].to_pylist() == [2]

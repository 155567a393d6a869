"""A stream that is killed between the acknowledgement of a micro-batch and Spark's own note of it: each row is there once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stepwell
from recovery import stream_writer
from stepwell.model.errors import InvalidSettingError, StepwellError, TypeMismatchError


def run(warehouse: Path, files: Path, failpoint: str | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "STEPWELL_FAILPOINT"}
    if failpoint:
        environment["STEPWELL_FAILPOINT"] = failpoint
    return subprocess.run(
        [sys.executable, stream_writer.__file__, str(warehouse), str(files)],
        env=environment, capture_output=True, text=True, timeout=180,
    )  # fmt: skip


def test_each_micro_batch_is_there_once_whatever_is_killed_when(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for number in range(3):
        (files / f"{number}.csv").write_text(f"{2 * number},a\n{2 * number + 1},b\n")
    killed = run(tmp_path / "warehouse", files, "acknowledge.after:2")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    ended = run(tmp_path / "warehouse", files, None)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip().splitlines()[-1] == "[0, 1, 2, 3, 4, 5]"


def test_a_stream_that_does_not_fit_its_table_is_refused_before_it_starts(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (id INT, v STRING); CREATE VIEW w AS SELECT * FROM t")
    rate = db.spark.readStream.format("rate").load()
    for stream, table, said, error in [
        (rate, "t", 'column "timestamp" does not exist', StepwellError),
        (rate.selectExpr("timestamp AS id"), "t", 'column "id" of table "t" is INT', TypeMismatchError),
        (rate.selectExpr("CAST(value AS INT) AS id"), "w", "cannot be written", StepwellError),
        (db.table("t"), "t", "this is no stream", TypeMismatchError),
    ]:
        with pytest.raises(error, match=said):
            db.insert_stream(stream, table, name="s")
    with pytest.raises(InvalidSettingError, match="the name of a stream"):
        db.insert_stream(rate.selectExpr("CAST(value AS INT) AS id"), "t", name="../s")

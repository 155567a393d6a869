"""A Java that died under a database: an error that says so, and the next statement has another one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import stepwell
from pyspark import SparkContext

def rows(text):
    return sorted(tuple(row) for row in db.sql(text).collect())

def kill():
    process = SparkContext._gateway.proc
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

with stepwell.connect(sys.argv[1]) as db:
    db.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t; INSERT INTO t VALUES (1)")
    print(rows("SELECT * FROM v"))
    frame = db.sql("SELECT * FROM t")
    kill()
    print(rows("SELECT * FROM v"))
    db.sql("INSERT INTO t VALUES (2)")
    print(rows("SELECT * FROM v"))
    kill()
    db.sql("DELETE FROM t WHERE a = 1")
    print(rows("SELECT * FROM t"), rows("SELECT * FROM v"))
    kill()
with stepwell.connect(sys.argv[1]) as db:
    print(rows("SELECT * FROM t"), rows("SELECT * FROM v"))
    real = db._runtime.spark.session.sql
    def dying(text, **others):
        kill()
        return real(text, **others)
    db._runtime.spark.session.sql = dying
    try:
        db.sql("SELECT * FROM t")
    except stepwell.StepwellError as error:
        print(error.sqlstate)
    print(rows("SELECT * FROM t"))
"""


def test_a_java_that_died_is_started_anew(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "w")], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[(1,)]", "[(1,)]", "[(3,)]", "[(2,)] [(2,)]", "[(2,)] [(2,)]", "08006", "[(2,)]",
    ]  # fmt: skip

"""An archive of Spark's classes, from which every Java that a test starts begins: loading them takes it half the time.

It is made once, by a process that does a little of everything, and stays beside the installed packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

_QUIET = "-Xlog:disable -Xlog:all=error:stderr"

_SOME_OF_EVERYTHING = """
CREATE TABLE t (a INT, g INT, s STRING); CREATE TABLE k (id INT PRIMARY KEY, v DOUBLE);
CREATE MATERIALIZED VIEW sums AS SELECT g, sum(a) AS total, max(s) AS last FROM t GROUP BY g;
CREATE MATERIALIZED VIEW joined AS SELECT t.a, k.v FROM t LEFT JOIN k ON t.a = k.id;
INSERT INTO t VALUES (1, 2, 'x'), (3, 4, 'y'); INSERT INTO k VALUES (1, 0.5), (3, 1.5);
UPDATE k SET v = 2 WHERE id = 1; DELETE FROM t WHERE a = 3; SELECT * FROM sums; SELECT * FROM joined;
"""


def options(others: str) -> str:
    """Options of Java by which it begins from the archive, which is made if it is not there; `others` come with them."""
    archive = Path(sys.prefix) / f"spark-{metadata.version('pyspark')}-classes.jsa"
    if not archive.exists():
        _make(archive, others)
    return f"{others} {_QUIET} -XX:SharedArchiveFile={archive}"


def _make(archive: Path, others: str) -> None:
    new = archive.with_suffix(f".{os.getpid()}")
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": f"{others} {_QUIET} -XX:ArchiveClassesAtExit={new}"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "stepwell.cli", "sql", "-w", folder, "-c", _SOME_OF_EVERYTHING]
        subprocess.run(command, env=environment, capture_output=True, check=True)
    new.replace(archive)

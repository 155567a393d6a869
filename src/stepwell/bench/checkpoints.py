"""`stepwell bench checkpoint`: copies of a database against plain copies of files, restarts, the cost of checksums."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

from stepwell.bench.measure import BenchReport, best_of_three, megabytes, seconds, stock_session
from stepwell.database import Database, connect
from stepwell.model.rows import Rows
from stepwell.storage.checksums import VERIFIED

_EPOCHS = 15
_VIEWS = 100

_COLUMNS = "id BIGINT, k INT, at TIMESTAMP, x DOUBLE"
_ROWS = (
    "SELECT id, CAST(id * 7919 % 1000 AS INT) AS k, timestamp_micros(1767225600000000 + id * 1000) AS at, "
    "100.0D + id * 104729 % 1000 / 100 AS x FROM range({start}, {end})"
)
_CASCADE = """
    CREATE MATERIALIZED VIEW by_key AS SELECT k, count(*) AS n, sum(x) AS total FROM events GROUP BY k;
    CREATE MATERIALIZED VIEW by_hundred AS
        SELECT k DIV 100 AS h, sum(n) AS n, sum(total) AS total FROM by_key GROUP BY 1;
    CREATE MATERIALIZED VIEW large AS SELECT id, k, x FROM events WHERE x > 105
"""

_KILLED = """
import sys, stepwell
with stepwell.connect(sys.argv[1]) as db:
    while True:
        db.sql("INSERT INTO events VALUES (-1, 1, TIMESTAMP '2026-01-01', 1.0)")
        print("written", flush=True)
"""
_RESTARTED = """
import json, sys, time
began = time.perf_counter()
import stepwell
with stepwell.connect(sys.argv[1]) as db:
    db.sql("SELECT * FROM by_hundred").collect()
    read = time.perf_counter() - began
    db.sql("INSERT INTO events VALUES (-2, 1, TIMESTAMP '2026-01-01', 1.0)")
    print(json.dumps([read, time.perf_counter() - began]), flush=True)
"""


def run_checkpoints(report: BenchReport, folder: Path, *, rows: int = 10_000_000) -> None:
    """Full and incremental checkpoints, a writer beside them, a restore, a restart after SIGKILL, and checksums."""
    warehouse = folder / "warehouse"
    with connect(warehouse) as db:
        db.sql(f"CREATE TABLE events ({_COLUMNS})")
        db.sql(f"INSERT INTO events {_ROWS.format(start=0, end=rows)}")
        db.sql(_CASCADE)
        _copies(report, folder, db, rows)
        _beside_a_writer(report, folder, db)
        _checksums(report, folder, db, rows)
    _restore(report, folder)
    _restart(report, warehouse)


def _copies(report: BenchReport, folder: Path, db: Database, rows: int) -> None:
    plain, size = _plain_copy(Path(db.warehouse) / "data", folder / "plain")
    took = []
    for number in range(3):
        place = folder / f"full-{number}"
        took.append(seconds(lambda place=place: db.checkpoint(place)))  # type: ignore[misc]  # mypy cannot type the default
    full = statistics.median(took)
    copied = _bytes(folder / "full-0")
    report.figure(f"plain copy of the files, {rows} rows and a cascade", f"{plain:.2f} s, {megabytes(size)}")
    report.figure("full checkpoint", f"{full:.2f} s, {megabytes(copied)}")
    report.figure("  time against the plain copy", f"{full / plain:.2f} x", reach="<= 1.2", good=full <= 1.2 * plain)
    report.figure("  bytes against the plain copy", f"{copied / size:.2f} x", reach="<= 1.2", good=copied <= 1.2 * size)
    before = _bytes(Path(db.warehouse) / "data")
    db.sql(f"INSERT INTO events {_ROWS.format(start=rows, end=rows + rows // 100)}")
    changed = _bytes(Path(db.warehouse) / "data") - before
    old = _bytes(folder / "full-0")
    incremental = seconds(lambda: db.checkpoint(folder / "full-0"))
    more = _bytes(folder / "full-0") - old
    report.figure("incremental checkpoint, 1 % changed", f"{incremental:.2f} s, {megabytes(more)}")
    good = more <= 2 * changed
    report.figure("  bytes against what has changed", f"{more / changed:.2f} x", reach="<= 2", good=good)


def _beside_a_writer(report: BenchReport, folder: Path, db: Database) -> None:
    """Epochs of a writer, and the same while one checkpoint after the other is copied."""
    rows = [(-value, value, None, 1.0) for value in range(100)]
    insert: Callable[[], Rows] = lambda: db.insert("events", rows)  # noqa: E731  # a word for what is timed
    for _ in range(5):
        insert()
    before = statistics.median(seconds(insert) for _ in range(_EPOCHS))
    db.sql("SET background_ddl = true")
    for number in range(_EPOCHS):
        db.checkpoint(folder / f"beside-{number}")
    during = statistics.median(seconds(insert) for _ in range(_EPOCHS))
    ended = _open_jobs(db)
    for job in ended:
        db.sql(f"CANCEL JOB {job}")
    db.sql("SET background_ddl = false")
    for number in range(_EPOCHS):
        shutil.rmtree(folder / f"beside-{number}", ignore_errors=True)
    report.figure("epochs of a writer, alone", f"{before * 1000:.0f} ms")
    report.figure(f"  while checkpoints are copied ({len(ended)} left)", f"{during * 1000:.0f} ms")
    report.figure("  against alone", f"{during / before:.2f} x", reach="<= 1.2", good=during <= 1.2 * before)


def _open_jobs(db: Database) -> list[int]:
    found = db.sql("SELECT job, state FROM stepwell.jobs")
    assert isinstance(found, Rows)
    return [job for job, state in found.tuples() if state in ("queued", "running")]


def _checksums(report: BenchReport, folder: Path, db: Database, rows: int) -> None:
    """Spark reading and writing the same rows with checksums of pages and without."""
    session, source = stock_session(db.spark), folder / "source"
    frame = session.sql(_ROWS.format(start=0, end=rows))
    frame.write.parquet(source.as_uri())

    def read(verified: str) -> None:
        reader = session.read.schema(_COLUMNS).options(**dict.fromkeys(VERIFIED, verified))
        reader.parquet(source.as_uri()).selectExpr("sum(id)", "sum(k)", "max(at)", "sum(x)").collect()

    def write(written: str) -> None:
        target = folder / "written"
        frame.write.mode("overwrite").option("parquet.page.write-checksum.enabled", written).parquet(target.as_uri())
        if written == "true":
            for path in target.glob("*.parquet"):
                zlib.crc32(path.read_bytes())

    actions: dict[str, Callable[[str], None]] = {"read": read, "write": write}
    for what, action in actions.items():
        action("true")  # the first of its kind waits for Spark to compile
        times = {switch: best_of_three(_bound(action, switch)) for switch in ("false", "true")}
        ratio = times["true"] / times["false"]
        good = ratio <= 1.05
        report.figure(f"a {what} with checksums, against without", f"{ratio:.2f} x", reach="<= 1.05", good=good)


def _bound(action: Callable[[str], None], switch: str) -> Callable[[], None]:
    return lambda: action(switch)


def _restore(report: BenchReport, folder: Path) -> None:
    plain, _ = _plain_copy(folder / "full-0", folder / "plain")
    with connect(folder / "restored") as db:
        took = seconds(lambda: db.restore(folder / "full-0"))
    report.figure("restore", f"{took:.2f} s")
    report.figure("  against a plain copy of the checkpoint", f"{took / plain:.2f} x")


def _restart(report: BenchReport, warehouse: Path) -> None:
    """A process killed while it writes; how long the next one takes, Spark's start included."""
    with connect(warehouse) as db:
        select = "SELECT h, n + {number} AS n FROM by_hundred"
        views = [f"CREATE MATERIALIZED VIEW v{number} AS {select.format(number=number)}" for number in range(_VIEWS)]
        db.sql("; ".join(views))
    process = subprocess.Popen([sys.executable, "-c", _KILLED, str(warehouse)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    done = subprocess.run(
        [sys.executable, "-c", _RESTARTED, str(warehouse)], capture_output=True, text=True, check=True, timeout=1800
    )
    read, written = json.loads(done.stdout)
    report.figure(f"restart after SIGKILL with {_VIEWS} views more: first read", f"{read:.1f} s")
    report.figure("  first write", f"{written:.1f} s")


def _plain_copy(source: Path, target: Path) -> tuple[float, int]:
    """Seconds for the best of three copies of a folder, each file safe on disk, and how many bytes it has."""

    def copy() -> None:
        shutil.rmtree(target, ignore_errors=True)
        for path in source.rglob("*"):
            if path.is_file():
                to = target / path.relative_to(source)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, to)
                with to.open("rb") as stream:
                    os.fsync(stream.fileno())

    return best_of_three(copy), _bytes(source)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

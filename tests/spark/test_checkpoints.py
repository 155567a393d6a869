"""Checkpoints: what is restored is the database as it was at the epoch, and goes on like the one it was copied from."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import stepwell
from servers import PostgresServer
from stepwell.engine.lead import checkpoints
from stepwell.model.clock import ManualClock
from stepwell.model.files import DataFile
from stepwell.storage import Warehouse, copy_file
from views import answer

TORTURE = bool(os.environ.get("STEPWELL_TORTURE"))
CHECKPOINTS = 12 if TORTURE else 2

CREATE = """
    CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT);
    CREATE TABLE e (id INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10 seconds');
    CREATE TABLE l (a INT, b STRING);
    CREATE MATERIALIZED VIEW g AS SELECT k, sum(x) AS total, max(x) AS most FROM t GROUP BY k;
    CREATE MATERIALIZED VIEW j AS SELECT t.id, g.total FROM t JOIN g ON t.k = g.k;
    CREATE MATERIALIZED VIEW best AS SELECT id, row_number() OVER (PARTITION BY k ORDER BY x, id) AS rank FROM t;
    CREATE MATERIALIZED VIEW closed AS SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS at, count(*) AS n FROM e
        GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT AFTER WATERMARK ALLOW LATENESS INTERVAL '0 seconds';
    CREATE MATERIALIZED VIEW now_and_then AS SELECT k, count(*) AS n FROM t GROUP BY k EMIT PERIODICALLY INTERVAL '1 hour';
    CREATE MATERIALIZED VIEW ratio AS SELECT id, 100 / x AS share FROM t;
    CREATE MATERIALIZED VIEW stood AS SELECT id, x + 1 AS y FROM t;
    CREATE VIEW plain AS SELECT k FROM g WHERE total > 0;
"""
DEFERRED = """
    CREATE MATERIALIZED VIEW d WITH (refresh = 'deferred') AS
        SELECT date_trunc('HOUR', ts) AS h, count(*) AS n FROM e GROUP BY 1
"""
SHOWN = (
    "t",
    "e",
    "l",
    "g",
    "j",
    "best",
    "closed",
    "closed$late",
    "now_and_then",
    "ratio",
    "stood",
    "plain",
    "d",
    "d$stored",
)
SYSTEM = {
    "views": "SELECT name, state, reflects FROM stepwell.views",
    "watermarks": "SELECT name, watermark FROM stepwell.watermarks",
    "late": "SELECT * FROM stepwell.late_rows",
    "thresholds": "SELECT * FROM stepwell.thresholds",
    "loads": "SELECT label, name, rows, epoch FROM stepwell.loads",
}
BEFORE = [
    "INSERT INTO t VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)",
    "INSERT INTO e SELECT id, TIMESTAMP '2026-01-01' + make_interval(0, 0, 0, 0, 0, 0, 20 * id) FROM range(12)",
    "REFRESH MATERIALIZED VIEW d",
    "ALTER MATERIALIZED VIEW stood PAUSE",
    "UPDATE t SET x = x + 1 WHERE id = 2",
    "INSERT INTO e VALUES (90, TIMESTAMP '2026-01-01 00:00:05')",
    "DELETE FROM t WHERE id = 3",
    "INSERT INTO t VALUES (4, 2, 0)",
]
AFTER = [
    "INSERT INTO t VALUES (5, 3, 7), (6, 1, 1)",
    "UPDATE t SET x = 5 WHERE id = 4",
    "ALTER MATERIALIZED VIEW ratio RESUME",
    "INSERT INTO e VALUES (91, TIMESTAMP '2026-01-01 00:00:06'), (92, TIMESTAMP '2026-01-01 01:30:00')",
    "ALTER MATERIALIZED VIEW stood RESUME",
    "REFRESH MATERIALIZED VIEW d",
    "FLUSH",
    "INSERT INTO t VALUES (7, 3, 9)",
]


@dataclass
class Copied:
    """A database of every kind of view, its checkpoints, and what it held at the epoch of the last one."""

    db: stepwell.Database
    folder: Path
    loaded: Path
    epoch: int
    shown: dict[str, Counter[Any]]
    system: dict[str, list[tuple[Any, ...]]]


def run(db: stepwell.Database, texts: list[str]) -> None:
    for text in texts:
        db.sql(text)


def contents(db: stepwell.Database) -> dict[str, Counter[Any]]:
    return {name: Counter(answer(db, f"SELECT * FROM {name}")) for name in SHOWN}


def system(db: stepwell.Database) -> dict[str, list[tuple[Any, ...]]]:
    return {name: answer(db, text) for name, text in SYSTEM.items()}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copied]:
    """Two checkpoints; while the second is copied, two more epochs come, one of them with a labelled load."""
    root = tmp_path_factory.mktemp("checkpoints")
    folder, loaded = root / "copies", root / "loaded.csv"
    loaded.write_text("a,b\n1,x\n2,y\n")
    with stepwell.connect(root / "w", clock=ManualClock(1_767_225_600_000_000)) as db:
        db.sql(CREATE)
        db.sql(DEFERRED)
        db.sql(f"COPY l FROM '{loaded}' WITH (header, label 'first')")
        run(db, BEFORE[:4])
        db.checkpoint(folder)
        with pytest.warns(stepwell.StepwellWarning, match="ratio"):
            run(db, BEFORE[4:])
        shown, told, epoch = contents(db), system(db), db.epoch
        _checkpoint_among(db, folder, lambda: _two_more(db, loaded))
        assert [row[0] for row in answer(db, f"SHOW CHECKPOINTS IN '{folder}'")][-1] == epoch
        assert db.epoch == epoch + 2
        yield Copied(db, folder, loaded, epoch, shown, told)


def _two_more(db: stepwell.Database, loaded: Path) -> None:
    db.sql(f"COPY l FROM '{loaded}' WITH (header, label 'second')")
    db.sql("INSERT INTO l VALUES (3, 'z')")


def _checkpoint_among(db: stepwell.Database, folder: Path, work: Callable[[], None]) -> None:
    """Take a checkpoint in the background, and do some work after it has chosen its epoch and before it is done."""
    begun, go_on = threading.Event(), threading.Event()

    def slowly(source: Warehouse, target: Warehouse, file: DataFile, between: Callable[[], None]) -> int:
        begun.set()
        assert go_on.wait(60)
        return copy_file(source, target, file, between)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "copy_file", slowly)
        db.sql("SET background_ddl = true")
        try:
            db.sql(f"CHECKPOINT TO '{folder}'")
            assert begun.wait(60)
            work()
        finally:
            go_on.set()
            db.sql("SET background_ddl = false")
    db.sql("WAIT")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"] if TORTURE else ["postgresql"])
def restored(
    copied: Copied, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[stepwell.Database]:
    catalog = None
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        catalog = server.new_database()
    clock = ManualClock(copied.db._runtime.clock.now())
    with stepwell.connect(tmp_path_factory.mktemp("restored") / "w", catalog=catalog, clock=clock) as db:
        db.restore(copied.folder)
        yield db


@pytest.mark.filterwarnings("ignore::stepwell.StepwellWarning")
def test_what_is_restored_is_the_epoch_and_goes_on_like_the_original(
    copied: Copied, restored: stepwell.Database, request: pytest.FixtureRequest
) -> None:
    assert restored.epoch == copied.epoch
    assert contents(restored) == copied.shown
    assert system(restored) == copied.system
    number = next(row[1] for row in answer(restored, "SELECT name, id FROM stepwell.tables") if row[0] == "e")
    assert DeltaTable(f"{restored.warehouse}/data/{number}/rows").to_pyarrow_table().num_rows == 13
    restored.sql(f"COPY l FROM '{copied.loaded}' WITH (header, label 'first')")
    assert restored.epoch == copied.epoch, "it is there already"
    _two_more(restored, copied.loaded)  # a label that was acknowledged later is unknown again
    run(restored, AFTER)
    if copied.db.epoch == copied.epoch + 2:  # the original goes on once, for both
        run(copied.db, AFTER)
    assert contents(restored) == contents(copied.db)
    told, expected = system(restored), system(copied.db)
    assert told == expected
    for name in ("closed", "stood", "d"):
        assert answer(restored, f"VERIFY {name}")[0][2] is True, name


def test_an_older_checkpoint_stays_whole_and_files_are_copied_once(copied: Copied, tmp_path: Path) -> None:
    first, last = answer(copied.db, f"SHOW CHECKPOINTS IN '{copied.folder}'")
    with stepwell.connect(tmp_path / "w") as db:
        [(epoch, _, files, _)] = answer(db, f"RESTORE FROM '{copied.folder}' EPOCH {first[0]}")
        assert (epoch, files) == (first[0], first[2])
        assert Counter(answer(db, "SELECT * FROM t")) == Counter([(1, 1, 10), (2, 1, 20), (3, 2, 30)])
        again = db.checkpoint(copied.folder).tuples()
        assert again[0][3:] == (0, 0), "all of it is there"
    data = [path for path in (copied.folder / "data").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in data) < first[3] + last[3]


def test_checkpoints_at_random_moments_under_a_writer_are_the_epochs_they_say(tmp_path: Path) -> None:
    """Whatever epoch is chosen, and however many are closed, committed or readable behind it meanwhile."""
    dice, stop = random.Random(16), threading.Event()
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT)")
        db.sql("CREATE MATERIALIZED VIEW g AS SELECT k, sum(x) AS total, min(x) AS least FROM t GROUP BY k")
        db.sql("CREATE MATERIALIZED VIEW h AS SELECT total, count(*) AS n FROM g GROUP BY total")

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                db.insert("t", [(dice.randrange(9), number % 3, number)])
                if number % 4 == 0:
                    db.sql(f"DELETE FROM t WHERE id = {dice.randrange(9)}")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(CHECKPOINTS):
                wanted = db.epoch + 1 + dice.randrange(2)
                while db.epoch < wanted:
                    time.sleep(0.01)
                db.checkpoint(tmp_path / "copies")
        finally:
            stop.set()
            writer.join()
        epochs = [row[0] for row in answer(db, f"SHOW CHECKPOINTS IN '{tmp_path / 'copies'}'")]
        assert len(epochs) == CHECKPOINTS
        for epoch in epochs:
            with stepwell.connect(tmp_path / f"at {epoch}") as copy:
                copy.restore(tmp_path / "copies", epoch)
                assert copy.epoch == epoch
                for name in ("t", "g", "h"):
                    then = Counter(answer(db, f"SELECT * FROM {name} VERSION AS OF {epoch}"))
                    assert Counter(answer(copy, f"SELECT * FROM {name}")) == then, (name, epoch)
                if epoch != epochs[-1] and not TORTURE:
                    continue
                copy.insert("t", [(100, 0, epoch)])
                assert [answer(copy, f"VERIFY {name}")[0][2] for name in ("g", "h")] == [True, True]

"""Checkpoints that are damaged, foreign or asked for where they cannot be; one of this version, kept for later ones."""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import stepwell
from servers import PostgresServer
from stepwell.catalog import exports, files, jobs, lives, pins, relations, watermarks, writes
from stepwell.catalog.schema import metadata
from stepwell.engine.lead import restoring
from stepwell.model.checkpoints import CatalogRows, Manifest
from stepwell.model.epochs import Epoch
from stepwell.model.errors import (
    CheckpointError,
    DataFileError,
    InvalidSettingError,
    SqlSyntaxError,
    StepwellError,
    WarehouseError,
)
from stepwell.model.files import DataFile, FileStatistics, NewFile, Store
from stepwell.model.jobs import AskedBy, CheckpointRequest, RefreshRequest
from stepwell.model.lifecycle import Unpopulated
from stepwell.model.loads import Label
from stepwell.model.relations import Definition
from stepwell.model.views import RelationId
from stepwell.model.writes import RelationWrite, Write
from stepwell.storage import Warehouse, copy_file
from views import answer

KEPT = Path(__file__).parents[1] / "checkpoints"
"""Checkpoints of earlier versions and of this one, by the revision of their catalogs; never written again."""
ROWS = {(1, 1, 11), (2, 1, 20), (3, 2, 30), (4, 2, 40)}
OLD = KEPT / "0012"


@pytest.fixture(scope="module")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    with stepwell.connect(tmp_path_factory.mktemp("restored") / "w") as db:
        db.restore(OLD)
        yield db


def is_empty(db: stepwell.Database) -> bool:
    files = [path for path in Path(db.warehouse).rglob("*") if path.is_file() and "catalog.db" not in path.name]
    return (answer(db, "SHOW TABLES"), answer(db, "SHOW JOBS"), db.epoch, files) == ([], [], 0, [])


@pytest.mark.parametrize("old", sorted(KEPT.iterdir()), ids=lambda path: path.name)
def test_a_checkpoint_of_every_version_is_read(old: Path, tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as db:
        db.restore(old)
        assert set(answer(db, "SELECT * FROM t")) == ROWS
        assert set(answer(db, "SELECT * FROM g")) == {(1, 31), (2, 70)}
        assert answer(db, "SELECT label, rows FROM stepwell.loads") == [("four", 1)]
        db.sql("INSERT INTO t VALUES (5, 3, 50)")
        assert answer(db, "VERIFY g")[0][1:4] == (5, True, 3)


def test_rows_of_an_older_revision_go_through_its_catalog(tmp_path: Path) -> None:
    """The revision before checkpoints has no identity, no checksums, and all that came later is made by the migration."""
    rows = {name: [dict(row) for row in each] for name, each in _rows_of(OLD).items()}
    for row in rows["files"]:
        del row["checksum"]
    del rows["control"][0]["identity"]
    found = exports.brought_up(rows, "0010")
    assert [len(found[name]) for name in ("files", "lives", "loads")] == [
        len(rows[name]) for name in ("files", "lives", "loads")
    ]
    assert {row["checksum"] for row in found["files"]} == {None}
    assert found["control"][0]["readable_epoch"] == 4
    assert len(found["control"][0]["identity"]) == 32
    assert found["relations"][0]["name"] == "t"
    with pytest.raises(CheckpointError, match="newer"):
        exports.brought_up(rows, "9999")


def _rows_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    [path] = (folder / "checkpoints").glob("*.jsonl")
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text().splitlines():
        found = json.loads(line)
        rows.setdefault(found["table"], []).append(found["row"])
    return rows


def _go_on(db: stepwell.Database, seen: list[exports.Export]) -> None:
    """All that statements can say after an epoch, in one transaction that is looked at and taken back."""
    catalog, now = db._runtime.catalog, db._runtime.clock.now()
    t, state, g = (RelationId(number) for number in (1, 2, 3))
    new = NewFile(Store.ROWS, "new.parquet", FileStatistics(1, 0, 100))
    write = Write((RelationWrite(t, (new,), labels=(Label("five", "digest", 1, 1),)),))
    with contextlib.suppress(ZeroDivisionError), catalog.write() as tx:
        writes.acknowledge(tx, write, now, wants_barrier=True)
        lives.put(tx, g, Unpopulated())
        watermarks.request(tx, t, 5)
        relations.redefine(tx, g, Definition())
        files.close(tx, state, files.latest(tx, state), [], Epoch(5), now)
        relations.drop(tx, g, now)
        pins.pin(tx, Epoch(4), "somebody", now)
        jobs.add(tx, CheckpointRequest("elsewhere"), AskedBy.USER, now)
        jobs.add(tx, RefreshRequest((g,)), AskedBy.USER, now)
        seen.append(exports.export(tx))
        raise ZeroDivisionError


def _known(export: exports.Export) -> CatalogRows:
    """What is exported, but for what counts on whatever was said: the generation, and numbers that are given once."""
    rows = {name: each for name, each in export.rows.items() if name != exports.COUNTERS}
    return {**rows, "control": [{**rows["control"][0], "generation": 0}]}


def test_what_is_said_after_an_epoch_is_not_in_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stepwell.connect(tmp_path / "w") as db:
        db.restore(OLD)
        with db._runtime.catalog.read() as tx:
            before = exports.export(tx)
        seen: list[exports.Export] = []
        _go_on(db, seen)
        assert _known(seen[0]) == _known(before)
        cut = exports._as_of
        monkeypatch.setattr(exports, "_as_of", lambda table, *at: [] if table.name == "loads" else cut(table, *at))
        _go_on(db, seen)
        assert _known(seen[1]) != _known(before), "the test can fail"


def test_every_table_of_the_catalog_is_copied_or_left_empty_on_purpose(restored: stepwell.Database) -> None:
    with restored._runtime.catalog.read() as tx:
        copied = set(exports.export(tx).rows) - {exports.COUNTERS}
    assert copied | exports.LEFT_EMPTY == set(metadata.tables)
    assert not copied & exports.LEFT_EMPTY


def test_a_damaged_checkpoint_is_refused_by_the_file_and_nothing_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(OLD, folder)
    with stepwell.connect(tmp_path / "w") as db:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            good = path.read_bytes()
            at = len(good) // 2
            for bad in (b"", good[:-1], good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :], None):
                path.unlink() if bad is None else path.write_bytes(bad)
                is_gone = bad is None and path.suffix == ".json"
                with pytest.raises(CheckpointError, match="no checkpoint" if is_gone else path.name) as failure:
                    db.restore(folder)
                assert failure.value.sqlstate == "58030"
                assert is_empty(db), path
            path.write_bytes(good)
        db.restore(folder)
        assert not is_empty(db)


def test_a_restore_that_fails_leaves_the_target_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[DataFile] = []

    def breaks(source: Warehouse, target: Warehouse, file: DataFile, between: Callable[[], None]) -> int:
        copied.append(file)
        if len(copied) == 4:
            raise KeyboardInterrupt
        return copy_file(source, target, file, between)

    with stepwell.connect(tmp_path / "w") as db:
        monkeypatch.setattr(restoring, "copy_file", breaks)
        with pytest.raises(KeyboardInterrupt):
            db.restore(OLD)
        assert is_empty(db)
        monkeypatch.undo()
        db.restore(OLD)
        assert db.epoch == 4


def test_bad_input_is_refused(restored: stepwell.Database, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    other = tmp_path / "other"
    with stepwell.connect(other) as db:
        with pytest.raises(StepwellError, match="nothing to copy"):
            db.checkpoint(tmp_path / "nothing")
        with pytest.raises(CheckpointError, match="there is no checkpoint at"):
            db.restore(tmp_path / "nowhere")
        with pytest.raises(CheckpointError, match="no checkpoint of epoch 3") as failure:
            db.sql(f"RESTORE FROM '{OLD}' EPOCH 3")
        assert (failure.value.detail, failure.value.sqlstate) == ("There are those of the epochs 4.", "22023")
        assert is_empty(db)
    with pytest.raises(StepwellError, match="is not empty") as not_empty:
        restored.restore(OLD)
    assert not_empty.value.sqlstate == "55000"
    for inside in ("", "/data", "/copies"):
        with pytest.raises(InvalidSettingError, match="inside the warehouse"):
            restored.checkpoint(f"{restored.warehouse}{inside}")
    with pytest.raises(WarehouseError, match="cannot be written"):
        restored.checkpoint(tmp_path / "file" / "below")
    with pytest.raises(CheckpointError, match="is a warehouse"):
        require_done(restored, other)
    shutil.copytree(OLD, tmp_path / "foreign")
    manifest = next((tmp_path / "foreign/checkpoints").glob("*.json"))
    known = json.loads(manifest.read_text())
    del known["checksum"]
    manifest.write_text(Manifest(**{**known, "identity": "another"}).as_text())
    with pytest.raises(CheckpointError, match="another database"):
        require_done(restored, tmp_path / "foreign")
    manifest.write_text(Manifest(**{**known, "format": 99}).as_text())
    with pytest.raises(CheckpointError, match="newer stepwell"):
        restored.sql(f"SHOW CHECKPOINTS IN '{tmp_path / 'foreign'}'")
    for text in (
        "CHECKPOINT",
        "CHECKPOINT TO x",
        "RESTORE FROM 'x' EPOCH y",
        "SHOW CHECKPOINTS",
        "SHOW CHECKPOINTS IN x",
    ):
        with pytest.raises(SqlSyntaxError):
            restored.sql(text)


def require_done(db: stepwell.Database, path: Path) -> None:
    """CHECKPOINT, with the class of error that a job loses."""
    try:
        db.checkpoint(path)
    except StepwellError as error:
        raise CheckpointError(error.message) from error


def test_two_checkpoints_to_one_path_follow_each_other(restored: stepwell.Database, tmp_path: Path) -> None:
    restored.sql("SET background_ddl = true")
    for _ in range(2):
        restored.sql(f"CHECKPOINT TO '{tmp_path / 'copies'}'")
    restored.sql("SET background_ddl = false")
    restored.sql("WAIT")
    first, second = answer(restored, "SELECT kind, state, total, started_at, ended_at FROM stepwell.jobs")[-2:]
    assert [first[:3], second[:3]] == [("checkpoint", "done", 9), ("checkpoint", "done", 0)]
    assert first[4] <= second[3]
    [shown] = answer(restored, f"SHOW CHECKPOINTS IN '{tmp_path / 'copies'}'")
    assert (shown[0], shown[2]) == (4, 9)
    assert len(list((tmp_path / "copies/checkpoints").iterdir())) == 2, "the first of the same epoch is gone"


def test_a_damaged_file_is_never_copied(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as db:
        db.restore(OLD)
        db.checkpoint(tmp_path / "good")
        copied = {each.name for each in (tmp_path / "good").rglob("*.parquet")}  # others are for Delta readers alone
        path = next(each for each in (tmp_path / "w/data/1/rows").glob("*.parquet") if each.name in copied)
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        with pytest.raises(StepwellError, match=f'{path.name}" of table "t" is damaged') as failure:
            db.checkpoint(tmp_path / "bad")
        assert failure.value.sqlstate == DataFileError.sqlstate
        assert answer(db, f"SHOW CHECKPOINTS IN '{tmp_path / 'bad'}'") == []
        assert db.checkpoint(tmp_path / "good").tuples()[0][3] == 0


def test_a_full_disk_fails_the_checkpoint_and_leaves_the_last_one_whole(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    catalog, warehouse, folder = postgres.new_database(), tmp_path / "w", tmp_path / "copies"
    with stepwell.connect(warehouse, catalog=catalog) as db:
        db.restore(OLD)

    def checkpoint(most: int) -> subprocess.CompletedProcess[str]:
        words = ["checkpoint", str(folder), "-w", str(warehouse), "--catalog", catalog]
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))  # noqa: E731  # one word says it
        return subprocess.run(
            [sys.executable, "-m", "stepwell.cli", *words],
            preexec_fn=limit,
            capture_output=True,
            text=True,
            timeout=120,
        )

    full = checkpoint(2000)
    assert (full.returncode, "the disk is full" in full.stderr, "53100" in full.stderr) == (1, True, True), full.stderr
    assert not list(folder.rglob("*.part"))
    assert not list(folder.rglob("*.json"))
    assert checkpoint(2**30).returncode == 0
    with stepwell.connect(tmp_path / "again") as db:
        db.restore(folder)
        assert set(answer(db, "SELECT * FROM t")) == ROWS

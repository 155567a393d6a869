"""Warehouses in folders with odd names, and folders that survive a power cut."""

from __future__ import annotations

import os
from pathlib import Path

import deltalake
import pytest

import stepwell
from limited import limit
from stepwell.model.errors import WarehouseError
from stepwell.storage import warehouse
from views import answer

PATTERNS = ["w[1]", "w{a,b}", "w*", "w?"]
OTHERS = ["a b", "a#b", "a%b", "über", "a:b", "a'b\"c", "a&b=c;d$(e)"]
ALL_OTHERS = "a b#c%zü:e'f\"g&h=i;j$(k)"
NAMES = [*PATTERNS, ALL_OTHERS, *(OTHERS if os.environ.get("STEPWELL_TORTURE") else [])]
"""Each pattern by itself, since it might find another folder; of the other signs, which are only misread, all in one."""


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_may_have_any_sign_in_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "w1").mkdir()  # what a pattern would find instead
    with stepwell.connect(tmp_path / name) as db:
        db.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
        db.sql("INSERT INTO t VALUES (1), (2)")
        limit(db, small_result_bytes=-1)
        db.sql("INSERT INTO t SELECT a + 2 FROM t")
        db.sql("DELETE FROM t WHERE a = 4; OPTIMIZE t")
        assert sorted(answer(db, "SELECT * FROM t")) == [(1,), (2,), (3,)]
        assert answer(db, "SELECT * FROM v") == [(6,)]
    rows = tmp_path / name / "data" / "1" / "rows"
    assert sorted(deltalake.DeltaTable(str(rows)).to_pyarrow_table()["a"].to_pylist()) == [1, 2, 3]
    assert os.listdir(tmp_path / "w1") == []


@pytest.mark.parametrize("name", ["a%20b", "a\\b"])
def test_a_folder_that_no_delta_reader_could_open_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WarehouseError, match="Readers of Delta tables"):
        stepwell.connect(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_every_new_folder_is_named_by_a_synced_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    original = warehouse._fsync

    def fsync(path: str) -> None:
        synced.append(path)
        original(path)

    monkeypatch.setattr(warehouse, "_fsync", fsync)
    root = tmp_path / "not" / "there"
    with stepwell.connect(root) as db:
        assert {str(tmp_path), str(tmp_path / "not")} <= set(synced)
        db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
        limit(db, small_result_bytes=-1)
        db.sql("INSERT INTO t SELECT a + 1 FROM t")
        files = list(root.glob("data/1/rows/**/*.parquet"))
        assert len({file.parent for file in files}) == 2  # one of the driver's, one in a folder of Spark's
        folders = {str(folder) for file in files for folder in file.parents if folder.is_relative_to(root)}
        assert folders <= set(synced)
        synced.clear()
        limit(db, small_result_bytes=2**20)
        db.sql("INSERT INTO t VALUES (3)")
        assert str(root) not in synced  # what lasts is not synced again

"""A disk that is full, and a database that is closed under a statement."""

from __future__ import annotations

import resource
import signal
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

import stepwell
import writing
from stepwell.model.epochs import Epoch
from stepwell.model.errors import DatabaseClosedError, WarehouseError
from stepwell.storage import Warehouse


def test_a_statement_does_not_wait_for_a_database_that_was_closed(tmp_path: Path) -> None:
    db = stepwell.connect(tmp_path / "w")
    relation = writing.table(db)
    writing.write(db, relation, [1])
    epoch = Epoch(db.epoch + 5)
    db.close()
    with pytest.raises(DatabaseClosedError, match="closed meanwhile"):
        db._leader.wait_readable(epoch)


def test_a_full_disk_of_the_catalog_is_called_that(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as db:
        with pytest.raises(WarehouseError) as caught, db._runtime.catalog.write():
            raise sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))
        assert caught.value.sqlstate == "53100"


def test_a_warehouse_on_a_full_disk_can_be_opened(tmp_path: Path) -> None:
    stepwell.connect(tmp_path / "w").close()
    place = Warehouse(str(tmp_path / "w"))
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        place.create()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list((tmp_path / "w").glob(".probe*"))

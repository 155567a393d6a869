"""Catalogs in which something is missing or cannot be read: a named error, from whatever touches them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import stepwell
from stepwell.database import look_at
from stepwell.engine.processes import is_alive, this_process
from stepwell.model.errors import WarehouseError


def _run(text: str) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.executescript(text)
        connection.close()

    return harm


HARMS: dict[str, Callable[[Path], object]] = {
    "no control row": _run("DELETE FROM control"),
    "two control rows": _run("INSERT INTO control SELECT 2, 1, 0, 0, 0, 0, format, program, identity FROM control"),
    "no lease": _run("DELETE FROM lease"),
    "no table of control": _run("DROP TABLE control"),
    "no table of files": _run("DROP TABLE files"),
    "no table of epochs": _run("DROP TABLE epochs"),
    "another holder": _run("UPDATE lease SET holder = 'nonsense', expires_at = 9e15"),
    "text": lambda path: path.write_text("this is no database at all, and never was one" * 200),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeros": lambda path: path.write_bytes(path.read_bytes()[:4096] + bytes(path.stat().st_size - 4096)),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_catalog_is_a_named_error(harm: str, tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("SET retention = '1 day'")
    HARMS[harm](tmp_path / "w" / "catalog.db")

    def use() -> None:
        with stepwell.connect(tmp_path / "w") as db:
            db.sql("CREATE TABLE t (a INT)")

    def look() -> None:
        onlooker = look_at(tmp_path / "w")
        onlooker.standing()
        onlooker.damages()
        onlooker.close()

    if harm == "another holder":  # nobody leads: the next one does
        use()
        look()
        return
    for action in (use, look):
        with pytest.raises(WarehouseError) as failure:
            action()
        assert failure.value.sqlstate in ("XX001", "58030")


def test_a_catalog_that_is_removed_while_open_takes_no_writes(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("SET retention = '1 day'")
        kept = tmp_path / "kept.db"
        os.rename(tmp_path / "w" / "catalog.db", kept)
        with pytest.raises(WarehouseError, match="the catalog is gone"):
            db.sql("SET retention = '2 days'")
        os.rename(kept, tmp_path / "w" / "catalog.db")
        db.sql("SET retention = '3 days'")


def test_a_name_that_is_none_is_no_process() -> None:
    assert is_alive(this_process())
    assert not any(is_alive(name) for name in ("", "nonsense", "a:b", "host:many:0"))

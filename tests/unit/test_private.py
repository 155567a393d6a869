"""What Spark is started with: files that nobody else can have put there, and ears for this machine alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.engine.private import private_folder
from stepwell.engine.session import _builder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    private_folder.cache_clear()
    yield tmp_path
    private_folder.cache_clear()


def test_a_new_folder_is_private_and_found_again(temporary: Path) -> None:
    first = private_folder()
    private_folder.cache_clear()
    assert private_folder() == first == temporary / f"stepwell-{os.getuid()}"
    assert first.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_is_not_used(temporary: Path) -> None:
    usual = temporary / f"stepwell-{os.getuid()}"
    usual.mkdir()
    usual.chmod(0o777)
    assert private_folder() != usual
    assert private_folder().stat().st_mode & 0o777 == 0o700


def test_a_link_is_not_followed(temporary: Path) -> None:
    (temporary / "theirs").mkdir(mode=0o700)
    (temporary / f"stepwell-{os.getuid()}").symlink_to(temporary / "theirs")
    _builder(None)
    assert private_folder() not in (temporary / f"stepwell-{os.getuid()}", temporary / "theirs")
    assert os.listdir(temporary / "theirs") == []


def test_a_folder_of_somebody_else_is_not_used(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary / "stepwell-4711").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert private_folder() != temporary / "stepwell-4711"


@pytest.mark.parametrize("master", [None, "local", "local[2]", "local[*,3]", "local-cluster[1,1,1024]"])
def test_a_local_spark_listens_on_this_machine_only(master: str | None) -> None:
    options = _builder(master)._options
    assert options["spark.driver.bindAddress"] == options["spark.driver.host"] == "127.0.0.1"


def test_a_cluster_reaches_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "spark.driver.host" not in _builder("spark://host:7077")._options

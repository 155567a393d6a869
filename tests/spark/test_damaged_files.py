"""Files that are emptied, cut off, flipped or gone: every statement is right, or an error that names them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stepwell
from stepwell.cli import main
from stepwell.database import translated
from stepwell.model.errors import DataFileError
from stepwell.model.limits import Limits
from views import answer

GROUPS = "SELECT k, sum(x) AS total, max(x) AS most FROM t GROUP BY k"
JOINED = "SELECT t.id, g.total FROM t JOIN g ON t.k = g.k"
DAILY = "SELECT date_trunc('DAY', ts) AS day, count(*) AS n FROM e GROUP BY 1"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stepwell.Database]:
    """Tables with plain rows and with changes, views over them, a deferred one, and a view of large files."""
    with stepwell.connect(tmp_path_factory.mktemp("damaged") / "w") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT); CREATE TABLE e (ts TIMESTAMP, x INT)")
        db.sql("INSERT INTO t VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)")
        db.sql("INSERT INTO e SELECT TIMESTAMP '2026-01-01' + make_interval(0, 0, 0, id), id FROM range(5)")
        db.sql(f"CREATE MATERIALIZED VIEW g AS {GROUPS}")
        db.sql(f"CREATE MATERIALIZED VIEW j AS {JOINED}")
        db.sql(f"CREATE MATERIALIZED VIEW d WITH (refresh = 'deferred') AS {DAILY}")
        db.sql("REFRESH MATERIALIZED VIEW d")
        db.sql("UPDATE t SET x = 11 WHERE id = 1")
        yield db


def data(db: stepwell.Database) -> list[Path]:
    return sorted(path for path in Path(db.warehouse, "data").rglob("*.parquet"))


def flip(good: bytes, at: int) -> bytes:
    return good[:at] + bytes(byte ^ 0x55 for byte in good[at : at + 8]) + good[at + 8 :]


def harms(good: bytes) -> dict[str, bytes | None]:
    """What can become of a file; None is none."""
    size = len(good)
    flipped = {f"flipped at {at}": flip(good, at) for at in (8, size // 3, size // 2, size - 60, size - 12)}
    return {"emptied": b"", "cut off": good[: size // 2], "gone": None, **flipped}


def outcome(db: stepwell.Database, text: str) -> tuple[Counter[Any], DataFileError | None]:
    """The rows of a query, or the error that names a file."""
    try:
        return Counter(answer(db, text)), None
    except DataFileError as error:
        return Counter(), error


def test_every_statement_is_right_or_names_the_file(db: stepwell.Database) -> None:
    shown = {name: Counter(answer(db, f"SELECT * FROM {name}")) for name in ("t", "e", "g", "j", "d$stored")}
    named = right = 0
    for path in data(db):
        good, reads = path.read_bytes(), list(shown)
        for what, bad in harms(good).items():
            path.unlink() if bad is None else path.write_bytes(bad)
            named_by = []
            for name in reads:
                found, error = outcome(db, f"SELECT * FROM {name}")
                if error is None:
                    assert found == shown[name], (path, what)
                    right += 1
                    continue
                assert (error.sqlstate, path.name in error.message, bool(error.hint)) == ("58030", True, True), what
                assert re.search(rf'of (table|materialized view) "{name.partition("$")[0]}" is', error.message)
                named_by.append(name)
            path.write_bytes(good)
            assert what == "emptied" or named_by == reads, (path, what)
            reads = named_by  # who reads it at all, the first harm has told
            named += len(named_by)
    assert named >= 40
    assert right


def test_doctor_sees_a_large_file_that_was_flipped_only_if_it_reads_all(
    db: stepwell.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data(db)[0]
    good = path.read_bytes()

    def doctor(*options: str) -> Any:
        return CliRunner().invoke(main, ["doctor", "-w", db.warehouse, *options])

    assert "as they were written" in doctor("--deep").output
    monkeypatch.setattr(Limits, "__init__", _small_files_are_large(Limits.__init__))
    path.write_bytes(flip(good, 20))
    assert doctor().exit_code == 0
    seen = doctor("--deep")
    assert (seen.exit_code, path.name in seen.output) == (1, True)
    with pytest.raises(DataFileError, match=path.name), translated():  # its pages have checksums of their own
        answer(db, "SELECT * FROM t")
    path.write_bytes(good)
    assert doctor("--deep").exit_code == 0


def _small_files_are_large(made: Any) -> Any:
    def init(self: Limits, **given: Any) -> None:
        made(self, **{"checked_whole_bytes": 0, **given})

    return init


@pytest.mark.parametrize("what", ["emptied", "gone", "flipped"])
def test_repair_takes_no_damaged_parent_for_the_truth(db: stepwell.Database, what: str) -> None:
    before = Counter(answer(db, "SELECT * FROM g"))
    path = next(each for each in data(db) if each.parts[-3] == "1")
    good = path.read_bytes()
    path.write_bytes(b"" if what == "emptied" else flip(good, len(good) // 2))
    if what == "gone":
        path.unlink()
    for text in ("VERIFY g", "VERIFY g REPAIR"):
        with pytest.raises(DataFileError, match=f'{path.name}" of table "t"'):
            db.sql(text)
    path.write_bytes(good)
    assert Counter(answer(db, "SELECT * FROM g")) == before
    assert answer(db, "VERIFY g REPAIR")[0][2] is True


@pytest.mark.parametrize(("view", "query"), [("g", GROUPS), ("d", DAILY)])
def test_repair_rebuilds_a_view_whose_own_files_cannot_be_read(db: stepwell.Database, view: str, query: str) -> None:
    number = next(row[1] for row in answer(db, "SELECT name, id FROM stepwell.tables") if row[0] == view)
    for path in data(db):
        if path.parts[-3] == str(number):
            path.unlink()
    with pytest.raises(DataFileError, match=f'of materialized view "{view}" is missing') as failure:
        answer(db, f"SELECT * FROM {view}$stored" if view == "d" else f"SELECT * FROM {view}")
    assert failure.value.hint == f"VERIFY `{view}` REPAIR builds it anew from what it reads."
    repaired = db.sql(f"VERIFY {view} REPAIR")
    assert isinstance(repaired, stepwell.Rows)
    assert (repaired.tuples()[0][2], "it is built anew" in repaired.notes[0]) == (False, True)
    assert Counter(answer(db, f"SELECT * FROM {view}")) == Counter(answer(db, query))
    assert [answer(db, f"VERIFY {each}")[0][2] for each in ("g", "j", "d")] == [True, True, True]
    db.sql("INSERT INTO t VALUES (9, 9, 9); INSERT INTO e VALUES (TIMESTAMP '2026-01-01', 1)")
    assert [answer(db, f"VERIFY {each}")[0][2] for each in ("g", "j", "d")] == [True, True, True]
    db.sql("DELETE FROM t WHERE id = 9")


def test_a_view_that_failed_for_its_own_files_runs_again_after_repair(db: stepwell.Database) -> None:
    others = [str(number) for name, number in answer(db, "SELECT name, id FROM stepwell.tables") if name != "g"]
    for path in data(db):
        if path.parts[-3] not in others:  # those of g, and of its hidden parts
            path.write_bytes(b"")
    with pytest.warns(stepwell.StepwellWarning, match='of materialized view "g" is damaged'):
        db.sql("UPDATE t SET x = 12 WHERE id = 1")
    states = {row[0]: row[1] for row in answer(db, "SHOW MATERIALIZED VIEWS")}
    assert (states["g"], states["j"]) == ("error", "paused")
    db.sql("VERIFY g REPAIR")
    assert Counter(answer(db, "SELECT * FROM g")) == Counter(answer(db, GROUPS))
    assert [answer(db, f"VERIFY {each}")[0][2] for each in ("g", "j")] == [True, True]

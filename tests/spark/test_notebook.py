"""In a notebook: databases and answers draw themselves, and a cell can be SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import stepwell


@pytest.fixture
def notebook(db: stepwell.Database) -> Iterator[Any]:
    shell = InteractiveShell.instance()
    shell.user_ns["db"] = db
    shell.run_line_magic("load_ext", "stepwell")
    yield shell
    InteractiveShell.clear_instance()


def test_a_cell_runs_its_statements_and_shows_the_last_answer(notebook: Any, db: stepwell.Database) -> None:
    shown = notebook.run_cell_magic(
        "stepwell", "", "CREATE TABLE t (a INT, b STRING);\nINSERT INTO t VALUES (1, '<b>'), (2, NULL)"
    )
    assert shown.tuples()[0][0] == 2
    shown = notebook.run_cell_magic("stepwell", "db", "SELECT * FROM t ORDER BY a")
    drawn = shown._repr_html_()
    assert "<th>a</th><th>b</th>" in drawn
    assert "<td>1</td><td>&lt;b&gt;</td>" in drawn
    assert "<td>NULL</td>" in drawn
    assert notebook.user_ns["_stepwell"].count() == 2
    shown = notebook.run_cell_magic("stepwell", "--limit 1 db", "SELECT * FROM t ORDER BY a")
    assert shown.tuples() == [(1, "<b>")]
    assert "the first 1 rows" in shown._repr_html_()
    assert "<td>t</td><td>table</td><td>2</td>" in db._repr_html_()


def test_mistakes_are_read_without_a_traceback(notebook: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert notebook.run_cell_magic("stepwell", "", "SELECT nope FROM stepwell.tables") is None
    assert "does not exist" in capsys.readouterr().out
    assert notebook.run_cell_magic("stepwell", "bd", "SELECT 1") is None
    assert "There is db." in capsys.readouterr().out
    assert notebook.run_cell_magic("stepwell", "--limit many", "SELECT 1") is None
    assert "takes a number" in capsys.readouterr().out

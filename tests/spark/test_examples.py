"""The examples: each runs, prints what is expected, and is shown so in the documentation."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import stepwell
from views import answer

ROOT = Path(__file__).parents[2]
EXAMPLES = ["shop", "sensors"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_is_expected_and_shown(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ROOT / "examples" / name
    play = runpy.run_path(str(folder / "play.py"))["main"]
    play(str(tmp_path / "warehouse"))
    printed = capsys.readouterr().out
    expected = (folder / "expected.txt").read_text()
    assert printed == expected
    page = (ROOT / "docs" / "tutorial" / "examples.md").read_text()
    assert f"```text\n{expected}```" in page
    assert (folder / "pipeline.sql").read_text().strip() in page
    with stepwell.connect(tmp_path / "warehouse") as db:
        for view in (each for each in db.relations() if each.definition.view is not None):
            assert answer(db, f"VERIFY MATERIALIZED VIEW {view.name}")[0][2], view.name

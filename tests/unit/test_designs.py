"""The page about the designs is true: what it names exists, and what it says is missing is refused."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from stepwell.model.errors import StepwellError
from stepwell.sql import parse

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "designs.md").read_text()
PARTS, MISSING = PAGE.split("## Not there yet\n")


def _rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "part"]


def _code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


ROWS = [pytest.param(row, id=row[0]) for row in _rows(PARTS)]
REFUSED = [statement for row in _rows(MISSING) for statement in _code(row[-1])]


def test_the_page_has_its_tables() -> None:
    assert len(ROWS) > 30
    assert len(REFUSED) > 1


@pytest.mark.parametrize("row", ROWS)
def test_a_part_has_its_module_its_statement_and_its_test(row: list[str]) -> None:
    _, _, module, statement, test = row
    assert [(ROOT / path).is_file() for path in _code(module)] == [True]
    [text] = _code(statement)
    assert len(parse(text)) == 1
    [reference] = _code(test)
    path, _, name = reference.partition("::")
    assert (ROOT / path).is_file()
    if name:
        functions = {
            each.name for each in ast.parse((ROOT / path).read_text()).body if isinstance(each, ast.FunctionDef)
        }
        assert name in functions


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_not_there_yet_is_refused(statement: str) -> None:
    with pytest.raises(StepwellError):
        parse(statement)


@pytest.mark.parametrize(
    "name",
    [
        "MvRegistry", "MvState", "CascadingWatermarkTracker", "MvPipelineExecutor", "MvPipelineCheckpoint",
        "DuplicateName", "SourceNotFound", "CycleDetected", "ViewNotFound", "OperatorNotFound",
        "Broadcast", "Chain", "SnapshotStream", "StreamManager",
        "materialization table", "invalidation threshold", "completed threshold", "invalidation log", "lock order",
        "$stored", "$partial", "$direct",
    ],
)  # fmt: skip
def test_no_named_part_is_left_out(name: str) -> None:
    assert name in PAGE

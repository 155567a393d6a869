"""The shell's pure parts: when a statement is complete, and what may complete a word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import stepwell
from stepwell.cli.completion import KEYWORDS, candidates
from stepwell.cli.shell import is_complete
from stepwell.model.relations import Relation
from stepwell.sql.parser import _STATEMENTS


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("select 1;", True),
        ("select 1", False),
        ("select 1; -- and", True),
        ("select 1 -- ;", False),
        ("select ';", False),
        ("select ';'", False),
        ("select ';';", True),
        ("/* ; ", False),
        ("\\d t", True),
        ("quit", True),
        ("select 1; select", False),
        ("create table t (\n a int\n);", True),
    ],
)
def test_a_statement_is_complete_at_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


@pytest.fixture
def known(tmp_path: Path) -> Iterator[list[Relation]]:
    with stepwell.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE trades (symbol STRING, price DOUBLE); CREATE TABLE `two words` (x INT)")
        yield db.relations()


@pytest.mark.parametrize(
    ("before", "word", "likely"),
    [
        ("SEL", "SEL", "SELECT"),
        ("sel", "sel", "select"),
        ("SELECT * FROM tr", "tr", "trades"),
        ("SELECT * FROM ", "", "trades"),
        ("SELECT * FROM two", "two", "`two words`"),
        ("SELECT trades.pr", "pr", "price"),
        ("SELECT pri", "pri", "price"),
        ("SELECT * FROM stepwell.lo", "lo", "loads"),
        ("\\ti", "\\ti", "\\timing"),
        ("\\d tra", "tra", "trades"),
        ("SELECT 1 WHERE zzz", "zzz", None),
    ],
)
def test_a_word_is_completed(known: list[Relation], before: str, word: str, likely: str | None) -> None:
    found = candidates(known, before)
    assert found[0] == word
    assert (found[1][0] if found[1] else None) == likely


def test_every_statement_can_be_completed() -> None:
    assert set(_STATEMENTS) - {"START"} <= set(KEYWORDS)

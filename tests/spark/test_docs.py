"""The documentation is true: its examples run and print what it says, and its reference leaves nothing out.

A page's examples run in order, in one fresh warehouse and folder. A ```text block says exactly what the example before
it prints. ```sql runs in the page's `db`, or in a database of its own, and prints what `stepwell sql` would; ```sql
error must fail. ```console holds commands after `$`, each with its output behind it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import stepwell
from stepwell.cli import main
from stepwell.cli.sql import run as run_statement
from stepwell.engine import DATABASE_SETTINGS, SESSION_SETTINGS, SYSTEM_NAMESPACE, SYSTEM_TABLES
from stepwell.model import errors
from stepwell.sql import parse, runs_of
from stepwell.sql.parser import _STATEMENTS

_SETTINGS = DATABASE_SETTINGS | SESSION_SETTINGS

ROOT = Path(__file__).parents[2]
NUMBERS = ROOT / "docs" / "benchmarks.md"
"""Written by a run of the benchmarks: what it says is not an example."""
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page != NUMBERS)]
REFERENCE = {page.name: page.read_text() for page in sorted((ROOT / "docs" / "reference").glob("*.md"))}

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUN = {"python", "sql", "sql error", "console"}
_SHOWN = {"text", "sh", "sql syntax", "python syntax"}


@dataclass(frozen=True)
class Example:
    """One fenced block that runs, the line it starts on, and what it has to print, if the page says so."""

    kind: str
    text: str
    line: int
    output: str | None


def examples(page: str) -> list[Example]:
    """The examples of a page, in order."""
    blocks = [(match.group(1).strip(), match.group(2), match.start()) for match in _FENCE.finditer(page)]
    found = []
    for index, (kind, text, start) in enumerate(blocks):
        assert kind in _RUN | _SHOWN, f"nobody knows what a ```{kind} block is"
        if kind in _RUN:
            following = blocks[index + 1 : index + 2]
            output = following[0][1] if following and following[0][0] == "text" else None
            found.append(Example(kind, text, page.count("\n", 0, start) + 1, output))
    return found


class Reader:
    """Somebody who types in every example of a page."""

    def __init__(self) -> None:
        self._names: dict[str, object] = {"__name__": "__main__"}
        self._own: stepwell.Database | None = None

    def run(self, example: Example) -> None:
        """Run an example and compare what it prints."""
        if example.kind == "console":
            self._type(example.text)
            return
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if example.kind == "python":
                exec(compile(example.text, f"example at line {example.line}", "exec"), self._names)
            elif example.kind == "sql":
                self._query(example.text)
            else:
                with pytest.raises(stepwell.StepwellError) as failure:
                    self._query(example.text)
                print(f"error: {failure.value}")
        if example.output is not None:
            assert _lines(printed.getvalue()) == _lines(example.output), f"line {example.line}"

    def close(self) -> None:
        """Close every database that the page has opened."""
        for value in [*self._names.values(), self._own]:
            if isinstance(value, stepwell.Database):
                value.close()

    def _query(self, text: str) -> None:
        database = self._names.get("db")
        if not isinstance(database, stepwell.Database) or database._closed:
            database = self._own = self._own or stepwell.connect("warehouse")
        for together in runs_of(parse(text)):
            run_statement(database, together, "table")

    def _type(self, text: str) -> None:
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            words = shlex.split(command)
            assert words[0] == "stepwell"
            result = CliRunner().invoke(main, words[1:])
            if result.exception and not isinstance(result.exception, SystemExit):
                raise result.exception
            if expected:
                assert _lines(result.output) == _lines(expected), command
            assert result.exit_code == (1 if expected.startswith("error:") else 0), command


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").split("\n")]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_example_of_a_page_runs_and_prints_what_the_page_says(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.delenv("STEPWELL_WAREHOUSE", raising=False)
    text = page.read_text()
    if "CATALOG_URL" in text:
        monkeypatch.setenv("CATALOG_URL", request.getfixturevalue("postgres").new_database())
    reader = Reader()
    try:
        with warnings.catch_warnings():  # a view that fails is what some pages are about
            warnings.simplefilter("ignore", stepwell.StepwellWarning)
            for example in examples(text):
                reader.run(example)
    finally:
        reader.close()


def test_an_example_that_prints_something_else_fails_its_page(folder: Path) -> None:
    [example] = examples("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError):
        Reader().run(example)


def test_an_example_that_should_fail_and_does_not_fails_its_page(folder: Path) -> None:
    [example] = examples("```sql error\nSHOW TABLES\n```\n")
    reader = Reader()
    with pytest.raises(pytest.fail.Exception):
        reader.run(example)
    reader.close()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if linked == NUMBERS:
            continue
        assert linked.exists(), target
        if anchor:
            assert anchor in _anchors(linked.read_text()), target


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES[1:] if page.name != "index.md"]
    assert [page for page in pages if f"({page})" not in index] == []


def _code(text: str) -> str:
    """What stands in code on a page: the fenced blocks and everything between backticks."""
    blocks = [match.group(2) for match in _FENCE.finditer(text)]
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))])


def _row(page: str, *words: str) -> bool:
    """Whether one row of a table on a reference page holds all of these words as code."""
    rows = [line for line in REFERENCE[page].splitlines() if line.startswith("|")]
    return any(all(f"`{word}`" in row for word in words) for row in rows)


@pytest.mark.parametrize("keyword", _STATEMENTS)
def test_every_statement_is_in_the_reference(keyword: str) -> None:
    assert re.search(rf"^{keyword}\b", _code(REFERENCE["sql.md"]), re.MULTILINE)


@pytest.mark.parametrize("table", SYSTEM_TABLES)
def test_every_column_of_a_system_table_is_in_the_reference(table: str) -> None:
    text = REFERENCE["system-tables.md"]
    section = text.split(f"## {SYSTEM_NAMESPACE}.{table}\n")[1].split("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", section, re.MULTILINE)
    assert documented == [(column.name, str(column.type)) for column in SYSTEM_TABLES[table].columns]


def _error_classes() -> list[type[errors.StepwellError]]:
    return [
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.StepwellError)
    ]


@pytest.mark.parametrize("error", _error_classes(), ids=lambda error: error.__name__)
def test_every_error_is_in_the_reference_with_its_sqlstate(error: type[errors.StepwellError]) -> None:
    assert _row("errors.md", error.__name__, error.sqlstate)


@pytest.mark.parametrize("name", _SETTINGS)
def test_every_setting_is_in_the_reference_with_its_default(name: str) -> None:
    assert _row("settings.md", name, _SETTINGS[name])


def _commands(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
    """A command and those below it, each with all the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, f"{words} {name}")


def _check_options(command: click.Command, words: str) -> None:
    text = REFERENCE["command-line.md"]
    assert f"## {words}\n" in text
    section = text.split(f"## {words}\n")[1].split("\n## ")[0]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    for option in options:
        for name in option.opts:
            assert re.search(rf"`{re.escape(name)}[` ]", section), f"{words} {name}"


def test_every_option_of_the_program_is_in_the_reference() -> None:
    _check_options(main, "stepwell")


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)) if isinstance(main, click.Group) else [])
def test_every_command_and_every_option_of_it_is_in_the_reference(name: str) -> None:
    assert isinstance(main, click.Group)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    for words, each in _commands(command, f"stepwell {name}"):
        _check_options(each, words)


def test_everything_that_the_package_exports_is_in_the_reference() -> None:
    text = _code(REFERENCE["python.md"])
    public = [name for name in vars(stepwell.Database) if not name.startswith("_")]
    assert [name for name in [*stepwell.__all__, *public] if not re.search(rf"\b{name}\b", text)] == []

"""The shell: statements typed by a person, one after the other.

A statement ends with a semicolon and may have many lines; a line that begins with a backslash is for the shell itself.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from stepwell.cli import tell
from stepwell.cli.completion import candidates
from stepwell.cli.output import render
from stepwell.cli.sql import answer
from stepwell.cli.waiting import wait_for
from stepwell.database import Database, translated
from stepwell.model.errors import SqlSyntaxError, StepwellError
from stepwell.model.rows import Rows
from stepwell.sql import runs_of
from stepwell.sql.statements import Statement
from stepwell.sql.tokens import tokenize
from stepwell.version import __version__

Reader = Callable[[str], str]
"""Asks for a statement with a prompt; EOFError at the end."""

MOST_ROWS = 1000
"""How many rows of a result a person is shown."""

HELP = """\
\\d [NAME]      relations, or the columns of one     \\x           a line a column, or a row
\\dt  \\dv       tables, views                        \\timing      say how long each statement took
\\e            write a statement in $EDITOR         \\watch [S]   run the last statement every S seconds
\\i FILE       run the statements of a file         \\q           leave
A statement ends with a semicolon. Ctrl-C cancels it; Tab completes names and keywords."""


class Shell:
    """A session at a terminal."""

    def __init__(self, database: Database, read: Reader) -> None:
        self._database = database
        self._read = read
        self._expanded = False
        self._timing = False
        self._last = ""
        self._done = False

    def run(self) -> None:
        """Read and run until the user leaves."""
        click.echo(f'stepwell {__version__}, {self._database!r}. "\\?" for help, "\\q" to leave.')
        while not self._done:
            try:
                text = self._read("stepwell*> " if self._database.in_transaction else "stepwell> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            self.take(text.strip())

    def take(self, text: str) -> None:
        """Run what was typed, and stay whatever comes of it."""
        try:
            if text.startswith("\\"):
                self._command(text)
            elif text.rstrip("; ").lower() in ("quit", "exit"):
                self._done = True
            elif text.rstrip("; ").lower() == "help":
                click.echo(HELP)
            elif text:
                self._last = text
                self._run(text)
        except (StepwellError, KeyboardInterrupt) as error:
            tell(error)
        except Exception as error:  # a bug: said so, and the shell stays
            tell(error)

    def _run(self, text: str) -> None:
        for together in runs_of(self._database.parse(text)):
            began = time.perf_counter()
            lines = wait_for(self._database, lambda together=together: self._lines(together))  # type: ignore[misc]
            _show(lines)
            if self._timing:
                click.echo(f"Time: {(time.perf_counter() - began) * 1000:.0f} ms")

    def _lines(self, together: Sequence[Statement]) -> list[str]:
        """The answer as text; of a long one the beginning."""
        result, said = answer(self._database, together)
        if result is None:
            return said
        if isinstance(result, Rows) and result.columns == ["name", "statement"]:
            return [*result.tuples()[0][1].splitlines(), *said]
        if not isinstance(result, Rows):
            with translated():
                result = Rows(result.columns, [tuple(row) for row in result.limit(MOST_ROWS + 1).collect()])
        more = result.count() > MOST_ROWS
        shown = Rows(result.columns, result.tuples()[:MOST_ROWS])
        lines = list(render(shown, "expanded" if self._expanded else "table"))
        if more:
            lines[-1:] = [f"(the first {MOST_ROWS} rows; there are more: add LIMIT, or write all with --format csv)"]
        return lines + said

    def _command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        rest = rest.strip().rstrip(";")
        match name:
            case "\\q":
                self._done = True
            case "\\?" | "\\h":
                click.echo(HELP)
            case "\\d" if rest:
                self._run(f"DESCRIBE {rest}")
            case "\\d":
                self._run("SHOW TABLES")
            case "\\dt":
                self._run("SELECT name, rows, bytes, primary_key FROM stepwell.tables")
            case "\\dv":
                self._run("SHOW MATERIALIZED VIEWS")
            case "\\x":
                self._expanded = not self._expanded
                click.echo(f"expanded display is {'on' if self._expanded else 'off'}")
            case "\\timing":
                self._timing = not self._timing
                click.echo(f"timing is {'on' if self._timing else 'off'}")
            case "\\watch":
                self._watch(rest or "2")
            case "\\e":
                self._edit()
            case "\\i":
                self._run(_read_file(rest))
            case _:
                raise SqlSyntaxError(f'there is no command "{name}"', hint="\\? lists them.")

    def _watch(self, seconds: str) -> None:
        """Run the last statement again and again, until Ctrl-C."""
        try:
            pause = float(seconds)
        except ValueError:
            raise SqlSyntaxError(f'"{seconds}" is no number of seconds') from None
        if not self._last:
            raise SqlSyntaxError("there is no statement to watch", hint="Run one first.")
        while True:
            click.echo(f"-- {time.strftime('%H:%M:%S')}, every {pause:g} s, Ctrl-C to stop")
            self._run(self._last)
            time.sleep(pause)

    def _edit(self) -> None:
        """Let the last statement be changed in an editor, and run what it has become."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.TemporaryDirectory(prefix="stepwell-") as folder:
            path = Path(folder) / "statement.sql"
            path.write_text(self._last + "\n")
            try:
                subprocess.run([*shlex.split(editor), str(path)], check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise SqlSyntaxError(f'the editor "{editor}" failed', detail=str(error), hint="Set EDITOR.") from error
            text = path.read_text().strip()
        click.echo(text)
        self.take(text)


def is_complete(text: str) -> bool:
    """Whether what was typed can be run: a command, nothing, or statements up to a semicolon."""
    stripped = text.strip()
    if not stripped or stripped.startswith("\\") or stripped.lower() in ("quit", "exit", "help"):
        return True
    try:
        tokens = tokenize(text)
    except SqlSyntaxError:
        return False  # inside a string, a quoted name or a comment
    return not tokens or tokens[-1].says(";")


def make_reader(database: Database) -> Reader:
    """How to ask: with history and completion where the terminal and what is installed allow it."""
    if os.environ.get("TERM", "dumb") == "dumb":
        return _plain_reader
    try:
        return _prompting_reader(database)
    except ImportError:
        click.echo("for history and completion: pip install 'stepwell[shell]'", err=True)
        return _plain_reader


def _plain_reader(prompt: str) -> str:
    text = input(prompt)
    while not is_complete(text):
        text += "\n" + input("      ... ")
    return text


def _prompting_reader(database: Database) -> Reader:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.output import ColorDepth

    class Names(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            word, found = candidates(database.relations(), document.text_before_cursor)
            return [Completion(name, start_position=-len(word)) for name in found]

    history = Path(os.environ.get("STEPWELL_HISTORY", "~/.stepwell_history")).expanduser()
    try:
        history.parent.mkdir(parents=True, exist_ok=True)
        history.touch(mode=0o600)
        kept: FileHistory | None = FileHistory(str(history))
    except OSError:  # a home that cannot be written: the shell goes on without
        kept = None
    session: PromptSession[str] = PromptSession(
        history=kept,
        completer=Names(),
        complete_while_typing=False,
        multiline=Condition(lambda: not is_complete(get_app().current_buffer.text)),
        prompt_continuation="      ... ",
        color_depth=ColorDepth.DEPTH_1_BIT if "NO_COLOR" in os.environ else None,
    )
    return session.prompt


def _show(lines: list[str]) -> None:
    """Print, through a pager what does not fit the terminal."""
    columns, height = shutil.get_terminal_size()
    wide = any(len(line) > columns for line in lines)
    if sys.stdout.isatty() and lines and (wide or len(lines) >= height - 1):
        os.environ.setdefault("LESS", "-SRFX")  # cut long lines, leave what fits on the screen
        click.echo_via_pager("\n".join(lines) + "\n")
    else:
        for line in lines:
            click.echo(line)


def _read_file(path: str) -> str:
    try:
        return Path(path).expanduser().read_text()
    except OSError as error:
        raise SqlSyntaxError(f'cannot read "{path}"', detail=error.strerror) from error

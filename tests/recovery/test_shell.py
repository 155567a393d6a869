"""The shell as a person uses it, through a pseudo-terminal."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

PROMPT = "stepwell>"


class Terminal:
    """A shell at the other end of a pseudo-terminal."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        env = {
            **os.environ, "TERM": "xterm", "PAGER": "cat", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1",
            "STEPWELL_HISTORY": str(folder / "history"), **environment,
        }  # fmt: skip
        self.child = pexpect.spawn(
            sys.executable, ["-m", "stepwell.cli", "sql"], cwd=str(folder), env=env, encoding="utf-8", timeout=120,
            dimensions=(30, 100),
        )  # fmt: skip
        self.child.expect(PROMPT)

    def type(self, text: str, *expected: str) -> str:
        """Type a line, wait for each of the given texts in turn; what was printed up to the last."""
        self.child.send(text + "\r")
        seen = ""
        for each in expected:
            self.child.expect(each)
            seen += self.child.before + self.child.after
        return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", seen)

    def leave(self) -> int | None:
        self.child.send("\\q\r")
        self.child.expect(pexpect.EOF)
        self.child.close()
        status: int | None = self.child.exitstatus
        return status


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.child.close(force=True)


def test_statements_commands_and_ctrl_c(terminal: Terminal) -> None:
    terminal.type("CREATE TABLE trades (symbol STRING,", r"\.\.\.")  # goes on below
    terminal.type("price DOUBLE);", "CREATE", PROMPT)
    terminal.type("INSERT INTO trades VALUES ('A', 1.5), ('B', 2.5);", "INSERT: 2 inserted", PROMPT)
    terminal.type("\\timing", "timing is on", PROMPT)
    terminal.type("SELECT * FROM trades ORDER BY 1;", r"A +\| 1.5", r"\(2 rows\)", "Time: ", PROMPT)
    terminal.type("\\d trades", r"price +\| DOUBLE", PROMPT)
    terminal.type("\\dt", r"trades +\| 2", PROMPT)
    terminal.type("\\x", "display is on", PROMPT)
    terminal.type("SELECT 1 AS a, 'two' AS b;", r"row 1", r"b \| two", PROMPT)
    terminal.type("\\x", "display is off", PROMPT)
    # progress while it takes long, and Ctrl-C, which ends the statement and not the shell
    terminal.type("SELECT count(*) FROM range(100000000000) WHERE sqrt(id) % 7 > 3;", "Spark tasks")
    terminal.child.sendintr()
    terminal.child.expect("the statement was cancelled")
    terminal.child.expect(PROMPT)
    terminal.type("\\watch 1", "no number|every 1 s")
    terminal.child.sendintr()
    terminal.child.expect("cancelled")
    terminal.child.expect(PROMPT)
    terminal.type("SELECT symbol FROM trades WHERE price > 2;", "B", PROMPT)
    terminal.type("\\watch 0.5", "every 0.5 s", "B", "every 0.5 s", "B")
    terminal.child.sendintr()
    terminal.child.expect(PROMPT)
    # mistakes
    terminal.type("SELECT prise FROM trades;", 'column "prise" does not exist', r'Did you mean "price"', PROMPT)
    terminal.type("\\nonsense", "there is no command", PROMPT)
    terminal.type("\\i missing.sql", "cannot read", PROMPT)
    # a result longer than anybody reads
    terminal.type("SELECT id FROM range(5000);", r"the first 1000 rows; there are more", PROMPT)
    terminal.type("BEGIN;", "BEGIN", r"stepwell\*>")
    terminal.type("ROLLBACK;", "ROLLBACK", PROMPT)
    assert terminal.leave() == 0


def test_completion_history_and_the_editor(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "SHOW TABLES;" > "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    first = Terminal(tmp_path, EDITOR=str(editor))
    try:
        first.type("CREATE TABLE trades (symbol STRING);", "CREATE", PROMPT)
        first.child.send("DESCR\t")
        first.child.expect("DESCRIBE")
        first.child.send(" tra\t")
        first.child.expect("trades")
        first.type(";", r"symbol +\| STRING", PROMPT)
        first.type("\\e", r"trades +\| table", PROMPT)
        (tmp_path / "script.sql").write_text("SHOW TABLES; DESCRIBE trades;")
        first.type("\\i script.sql", r"trades +\| table", r"symbol +\| STRING", PROMPT)
        first.child.sendintr()  # at the prompt it drops what was typed
        first.child.expect(PROMPT)
        assert first.leave() == 0
    finally:
        first.child.close(force=True)
    again = Terminal(tmp_path)
    try:
        for _ in range(4):  # \q, \i, \e, and then the statement before them
            again.child.send("\x1b[A")
        again.child.expect("DESCRIBE trades")
        again.child.sendintr()
        again.child.expect(PROMPT)
        for _ in range(60):  # between two prompts nobody hears it
            again.child.sendeof()
            if again.child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=2) == 0:
                break
        else:
            pytest.fail("Ctrl-D does not end the shell")
    finally:
        again.child.close(force=True)


def test_a_dumb_terminal_gets_a_plain_prompt(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, TERM="dumb")
    try:
        terminal.type("SHOW", r"\.\.\. ")
        terminal.type("TABLES;", "name", PROMPT)
        assert terminal.leave() == 0
    finally:
        terminal.child.close(force=True)

"""Playing a scenario: each record against a database, and what did not come out as the file says."""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepwell.database import Database, translated
from stepwell.model.durations import parse_duration
from stepwell.model.errors import StepwellError, StepwellWarning
from stepwell.model.rows import Rows
from stepwell.slt.records import ChangesRecord, ControlRecord, QueryRecord, Record, StatementRecord, parse_file
from stepwell.slt.values import to_text


@dataclass
class FileOutcome:
    """What became of a file: how many records ran, a line for each that failed, and what --rewrite would write."""

    path: Path
    ran: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)
    rewrites: list[tuple[QueryRecord | ChangesRecord, list[str]]] = field(default_factory=list)


def run_file(path: Path, database: Database, *, labels: frozenset[str] = frozenset({"stepwell"})) -> FileOutcome:
    """Play a file to its end, whatever fails on the way; a file that makes no sense raises."""
    outcome = FileOutcome(path)
    player = _Player(database)
    for record in parse_file(path):
        if not record.conditions.hold(labels):
            outcome.skipped += 1
            continue
        if isinstance(record, ControlRecord) and record.what == "halt":
            break
        outcome.ran += not isinstance(record, ControlRecord)
        with warnings.catch_warnings():  # a view that fails shows in what it is asked for
            warnings.simplefilter("ignore", StepwellWarning)
            problem = player.play(record)
        if problem is not None:
            outcome.failures.append(f"{record.where}: {problem}")
        if isinstance(record, QueryRecord | ChangesRecord) and player.shown is not None:
            outcome.rewrites.append((record, player.shown))
    return outcome


def rewrite(outcome: FileOutcome) -> None:
    """Put what came out in the place of what was expected, in the files the records stand in."""
    by_file: dict[Path, list[tuple[QueryRecord | ChangesRecord, list[str]]]] = {}
    for record, shown in outcome.rewrites:
        by_file.setdefault(record.where.file, []).append((record, shown))
    for path, records in by_file.items():
        lines = path.read_text().splitlines()
        for record, shown in sorted(records, key=lambda each: each[0].lines, reverse=True):
            if _normal(shown) != _normal(record.expected):
                lines[record.lines[0] : record.lines[1]] = shown
        path.write_text("\n".join(lines) + "\n")


class _Player:
    """The state of a run: the sort mode, substitution, and what the last query answered."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sort = "nosort"
        self._substitutes: dict[str, str] | None = None
        self._lets: dict[str, str] = {}
        self.shown: list[str] | None = None

    def play(self, record: Record) -> str | None:
        """What is wrong, or None."""
        self.shown = None
        match record:
            case ControlRecord():
                self._control(record)
                return None
            case ChangesRecord():
                return self._changes(record)
        tries = record.retry.times
        while True:
            problem = self._statement(record) if isinstance(record, StatementRecord) else self._query(record)
            if problem is None or tries <= 0:
                return problem
            tries -= 1
            time.sleep(record.retry.seconds)

    def _control(self, record: ControlRecord) -> None:
        match record.what:
            case "sortmode":
                self._sort = record.value
            case "substitution":
                self._substitutes = self._lets if record.value == "on" else None
            case "let":
                name, _, value = record.value.partition("=")
                self._lets[name.strip().lstrip("$")] = value.strip()
            case "sleep":
                time.sleep(parse_duration(record.value) / 1_000_000)

    def _text(self, text: str) -> str:
        for name, value in (self._substitutes or {}).items():
            text = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", value.replace("\\", r"\\"), text)
        return text

    def _statement(self, record: StatementRecord) -> str | None:
        try:
            result = self._database.sql(self._text(record.sql))
            with translated():
                if record.error is not None:
                    result.collect()  # an error may be in a row
        except StepwellError as error:
            if record.error is None:
                return f"failed: {error.message}"
            if record.error and not re.search(record.error, str(error), re.IGNORECASE | re.DOTALL):
                return f'failed otherwise than "{record.error}": {error.message}'
            return None
        if record.error is not None:
            return "should have failed"
        if record.count is not None and (touched := _touched(result)) != record.count:
            return f"touched {touched} rows instead of {record.count}"
        return None

    def _query(self, record: QueryRecord) -> str | None:
        try:
            result = self._database.sql(self._text(record.sql))
            with translated():
                rows = [[to_text(value) for value in row] for row in result.collect()]
        except StepwellError as error:
            return f"failed: {error.message}"
        if record.types and len(record.types) != len(result.columns):
            return f"has {len(result.columns)} columns instead of {len(record.types)}"
        sort = record.sort or self._sort
        if sort == "valuesort":
            self.shown = sorted(value for row in rows for value in row)
            expected = sorted(value for line in record.expected for value in line.split())
            return _difference(self.shown, expected)
        lines = [" ".join(row) for row in rows]
        expected = list(record.expected)
        if sort == "rowsort":
            lines, expected = sorted(lines, key=_words), sorted(expected, key=_words)
        self.shown = lines
        return _difference(lines, expected)

    def _changes(self, record: ChangesRecord) -> str | None:
        header = [name.strip() for name in (record.expected or ("",))[0].split("|")]
        try:
            epoch = self._database.epoch
            frame = self._database.changes(record.relation, after=epoch - 1)
            names = frame.columns[:-1] if header == [""] else header
            with translated():
                found = sorted(
                    ([to_text(row[name]) for name in names] for row in frame.collect()),
                    key=lambda cells: (cells[:-1], cells[-1]),
                )
        except (StepwellError, ValueError) as error:
            return f"failed: {error}"
        signed = [
            [*cells[:-1], f"+{cells[-1]}" if names[-1] == "_diff" and cells[-1] > "0" else cells[-1]] for cells in found
        ]
        self.shown = _table([names, *signed])
        return _difference(sorted(self.shown[1:], key=_words), sorted(record.expected[1:], key=_words))


def _touched(result: Any) -> int | None:
    if not isinstance(result, Rows) or result.columns[:2] != ["inserted", "retracted"]:
        return None
    inserted, retracted, *_ = result.tuples()[0]
    return max(int(inserted), int(retracted))


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _words(line: str) -> list[str]:
    return line.split()


def _normal(lines: list[str] | tuple[str, ...]) -> list[list[str]]:
    return [line.split() for line in lines]


def _difference(found: list[str], expected: list[str]) -> str | None:
    if _normal(found) == _normal(expected):
        return None
    missing = [line for line in expected if line.split() not in _normal(found)]
    extra = [line for line in found if line.split() not in _normal(expected)]
    parts = [f"expected {missing[0].strip()!r}"] if missing else []
    parts += [f"found {extra[0].strip()!r}"] if extra else []
    detail = ", ".join(parts) or "in another order or number"
    return f"{len(found)} rows instead of {len(expected)}: {detail}" if len(found) != len(expected) else detail

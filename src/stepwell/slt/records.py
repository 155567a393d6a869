"""Records: what a scenario file says, line by line, as frozen values that remember where they stood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stepwell.model.durations import parse_duration
from stepwell.model.errors import StepwellError


class ScenarioError(StepwellError):
    """A scenario file that cannot be understood."""

    sqlstate = "42601"


@dataclass(frozen=True, slots=True)
class Where:
    """A line of a file, counted from 1."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again so often, waiting in between, before a record counts as failed."""

    times: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Conditions:
    """`onlyif` and `skipif` labels above a record."""

    onlyif: frozenset[str] = frozenset()
    skipif: frozenset[str] = frozenset()

    def hold(self, labels: frozenset[str]) -> bool:
        return (not self.onlyif or bool(self.onlyif & labels)) and not self.skipif & labels


@dataclass(frozen=True, slots=True)
class StatementRecord:
    """`statement ok`, `statement error [pattern]` or `statement count n`."""

    where: Where
    conditions: Conditions
    sql: str
    error: str | None = None
    count: int | None = None
    retry: Retry = Retry()


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """`query types [sort mode]` with the rows expected; `lines` is where they stand in the file, [first, last)."""

    where: Where
    conditions: Conditions
    sql: str
    types: str
    sort: str | None
    expected: tuple[str, ...]
    lines: tuple[int, int]
    retry: Retry = Retry()


@dataclass(frozen=True, slots=True)
class ChangesRecord:
    """`changes relation` with what its last epoch did: a header of columns, then rows with their `_diff`."""

    where: Where
    conditions: Conditions
    relation: str
    expected: tuple[str, ...]
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """`control sortmode …`, `control substitution on|off`, `sleep …`, `let name = value`, `halt`."""

    where: Where
    conditions: Conditions
    what: str
    value: str


Record = StatementRecord | QueryRecord | ChangesRecord | ControlRecord

_SORTS = ("nosort", "rowsort", "valuesort")
_IGNORED = {"subtest", "hash-threshold", "system", "connection"}


def parse_file(path: Path, *, including: tuple[Path, ...] = ()) -> list[Record]:
    """The records of a file, and of those it includes in their place."""
    if path in including:
        raise ScenarioError(f"{path} includes itself", detail=" -> ".join(str(each) for each in (*including, path)))
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise ScenarioError(f'cannot read "{path}"', detail=error.strerror) from error
    return list(_Reader(path, lines, (*including, path)).records())


class _Reader:
    """A place among the lines of one file."""

    def __init__(self, path: Path, lines: list[str], including: tuple[Path, ...]) -> None:
        self._path, self._lines, self._including = path, lines, including
        self._at = 0

    def records(self) -> Iterator[Record]:
        onlyif: set[str] = set()
        skipif: set[str] = set()
        while self._at < len(self._lines):
            line = self._lines[self._at].strip()
            where = Where(self._path, self._at + 1)
            self._at += 1
            if not line or line.startswith("#"):
                continue
            words = line.split()
            if words[0] in ("onlyif", "skipif"):
                (onlyif if words[0] == "onlyif" else skipif).add(self._word(words, 1, where))
                continue
            conditions = Conditions(frozenset(onlyif), frozenset(skipif))
            onlyif, skipif = set(), set()
            yield from self._record(words, line, where, conditions)

    def _record(self, words: list[str], line: str, where: Where, conditions: Conditions) -> Iterator[Record]:
        match words[0]:
            case "statement":
                yield self._statement(words, line, where, conditions)
            case "query":
                yield self._query(words, line, where, conditions)
            case "changes":
                first = self._at
                rows = self._until_blank()
                yield ChangesRecord(where, conditions, self._word(words, 1, where), rows, (first, first + len(rows)))
            case "include":
                pattern = self._word(words, 1, where)
                found = sorted(self._path.parent.glob(pattern))
                if not found:
                    raise ScenarioError(f'{where}: nothing matches "{pattern}"')
                for each in found:
                    yield from parse_file(each, including=self._including)
            case "control" | "let" | "sleep" | "halt":
                what = words[1] if words[0] == "control" and len(words) > 1 else words[0]
                value = line.split(None, 2 if words[0] == "control" else 1)[-1] if len(words) > 1 else ""
                if what == "sleep":
                    parse_duration(value)
                if words[0] == "control" and what not in ("sortmode", "substitution", "resultmode"):
                    raise ScenarioError(f'{where}: control "{what}" is unknown')
                if what == "sortmode" and value not in _SORTS:
                    raise ScenarioError(f'{where}: sort mode "{value}" is none of {", ".join(_SORTS)}')
                yield ControlRecord(where, conditions, what, value)
            case word if word in _IGNORED:
                if word == "system":
                    self._until_blank()
            case word:
                raise ScenarioError(f'{where}: "{word}" begins no record')

    def _statement(self, words: list[str], line: str, where: Where, conditions: Conditions) -> StatementRecord:
        kind = self._word(words, 1, where)
        retry = _retry(line)
        sql, expected, _ = self._body(where)
        if kind == "ok":
            return StatementRecord(where, conditions, sql, retry=retry)
        if kind == "count":
            number = self._word(words, 2, where)
            if not number.isdigit():
                raise ScenarioError(f'{where}: "{number}" is no count')
            return StatementRecord(where, conditions, sql, count=int(number), retry=retry)
        if kind == "error":
            pattern = line.split("error", 1)[1].strip() or ".*".join(re.escape(each.strip()) for each in expected)
            return StatementRecord(where, conditions, sql, error=pattern, retry=retry)
        raise ScenarioError(f'{where}: a statement is ok, error or count, not "{kind}"')

    def _query(self, words: list[str], line: str, where: Where, conditions: Conditions) -> Record:
        kind = self._word(words, 1, where)
        sql, expected, lines = self._body(where)
        if kind == "error":
            pattern = line.split("error", 1)[1].strip() or ".*".join(re.escape(each.strip()) for each in expected)
            return StatementRecord(where, conditions, sql, error=pattern)
        sort = words[2] if len(words) > 2 and words[2] in _SORTS else None
        return QueryRecord(where, conditions, sql, kind, sort, expected, lines, _retry(line))

    def _body(self, where: Where) -> tuple[str, tuple[str, ...], tuple[int, int]]:
        """The SQL up to a blank line or `----`, and the lines expected after that."""
        sql: list[str] = []
        while self._at < len(self._lines) and self._lines[self._at].strip() not in ("", "----"):
            sql.append(self._lines[self._at])
            self._at += 1
        if not sql:
            raise ScenarioError(f"{where}: there is no SQL below this line")
        first = self._at
        expected: tuple[str, ...] = ()
        if self._at < len(self._lines) and self._lines[self._at].strip() == "----":
            self._at += 1
            first = self._at
            expected = self._until_blank()
        return "\n".join(sql), expected, (first, first + len(expected))

    def _until_blank(self) -> tuple[str, ...]:
        found: list[str] = []
        while self._at < len(self._lines) and self._lines[self._at].strip():
            found.append(self._lines[self._at])
            self._at += 1
        return tuple(found)

    def _word(self, words: list[str], index: int, where: Where) -> str:
        if index >= len(words):
            raise ScenarioError(f'{where}: something is missing behind "{" ".join(words)}"')
        return words[index]


def _retry(line: str) -> Retry:
    match = re.search(r"\bretry (\d+) backoff (\S+)", line)
    return Retry(int(match.group(1)), parse_duration(match.group(2)) / 1_000_000) if match else Retry()

"""A plain Python model of tables: rows with an identity, and what each epoch left behind."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

Values = dict[str, Any]
Row = tuple[Any, ...]


def canonical(value: Any) -> Any:
    """A value in a form in which equality is identity: −0.0 is not 0.0, NaN is NaN, maps compare."""
    match value:
        case float():
            return ("float", repr(value))
        case Mapping():
            return ("map", tuple(sorted((canonical(key), canonical(held)) for key, held in value.items())))
        case list() | tuple():
            return tuple(canonical(each) for each in value)
    return value


class Table:
    """Rows by identity. With a key, a row inserted under a key that is there replaces it and keeps its identity."""

    def __init__(self, columns: tuple[str, ...], key: str | None) -> None:
        self.columns = columns
        self.key = key
        self.rows: dict[int, Values] = {}
        self._next = 0

    def insert(self, rows: list[Values]) -> None:
        for row in rows:
            held = None
            if self.key is not None:
                held = next((id_ for id_, each in self.rows.items() if each[self.key] == row[self.key]), None)
            if held is None:
                held, self._next = self._next, self._next + 1
            self.rows[held] = dict(row)

    def update(self, where: Callable[[Values], bool], change: Callable[[Values], Values]) -> None:
        self.rows = {id_: {**row, **change(row)} if where(row) else row for id_, row in self.rows.items()}

    def delete(self, where: Callable[[Values], bool]) -> None:
        self.rows = {id_: row for id_, row in self.rows.items() if not where(row)}

    def as_row(self, values: Values) -> Row:
        return tuple(canonical(values[column]) for column in self.columns)


class Model:
    """Tables, and for each epoch what they held and what it changed."""

    def __init__(self, tables: dict[str, Table]) -> None:
        self.tables = tables
        self._committed = self._snapshot()
        self.contents: dict[int, dict[str, Counter[Row]]] = {}
        self.changes: dict[int, dict[str, Counter[tuple[Row, int]]]] = {}

    def commit(self, epoch: int) -> None:
        """Take all that was done since the last commit as what `epoch` did."""
        changed: dict[str, Counter[tuple[Row, int]]] = {}
        for name, table in self.tables.items():
            before, after = self._committed[name], table.rows
            delta: Counter[tuple[Row, int]] = Counter()
            for id_ in before.keys() | after.keys():
                old = table.as_row(before[id_]) if id_ in before else None
                new = table.as_row(after[id_]) if id_ in after else None
                if old != new:
                    if old is not None:
                        delta[old, -1] += 1
                    if new is not None:
                        delta[new, 1] += 1
            changed[name] = delta
        self.changes[epoch] = changed
        self.contents[epoch] = {
            name: Counter(table.as_row(row) for row in table.rows.values()) for name, table in self.tables.items()
        }
        self._committed = self._snapshot()

    def save(self) -> dict[str, Table]:
        return copy.deepcopy(self.tables)

    def restore(self, saved: dict[str, Table]) -> None:
        self.tables = saved

    def _snapshot(self) -> dict[str, dict[int, Values]]:
        return {name: copy.deepcopy(table.rows) for name, table in self.tables.items()}

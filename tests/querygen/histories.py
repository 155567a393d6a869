"""What happens to the tables: epochs of statements, alone or together in a transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from querygen.dice import Dice
from querygen.expressions import expression
from querygen.nodes import Node
from querygen.schema import TABLES, Relation, quoted
from querygen.scopes import Column, Scope
from querygen.types import BOOLEAN, SPARK, value, written


@dataclass(frozen=True, slots=True)
class Epoch:
    """Statements that become readable at once; with more than one, in a transaction."""

    statements: tuple[str, ...]

    @property
    def text(self) -> str:
        if len(self.statements) == 1:
            return self.statements[0]
        return "; ".join(("BEGIN", *self.statements, "COMMIT"))

    def without(self, number: int) -> Epoch:
        return replace(self, statements=(*self.statements[:number], *self.statements[number + 1 :]))


def table_of(statement: str) -> str:
    """The table that a statement of a history writes to."""
    return next(
        word
        for word in statement.split()
        if word not in ("INSERT", "INTO", "UPDATE", "DELETE", "FROM", "MERGE", "TRUNCATE", "TABLE")
    )


def first_rows(rng: Dice) -> Epoch:
    """What the tables hold before the first view is made."""
    return Epoch(tuple(_insert(rng, table, rng.randint(3, 7)) for table in TABLES))


def history(rng: Dice, epochs: int) -> list[Epoch]:
    return [_epoch(rng) for _ in range(epochs)]


def _epoch(rng: Dice) -> Epoch:
    tables = rng.sample(TABLES, rng.choices((1, 2, 3, 4, 5), weights=(10, 15, 20, 25, 30))[0])
    statements = []
    for table in tables:
        for _ in range(rng.choices((1, 2, 3), weights=(70, 22, 8))[0]):
            statements.append(_statement(rng, table))
    return Epoch(tuple(statements))


def _statement(rng: Dice, table: Relation) -> str:
    make = rng.choices((_insert, _update, _delete, _merge, _truncate), weights=(38, 28, 20, 11, 3))[0]
    return make(rng, table)


def _row(rng: Dice, table: Relation) -> list[Any]:
    return [value(rng, type_, 0.0 if name == table.key else 0.15) for name, type_ in table.columns]


def _insert(rng: Dice, table: Relation, count: int | None = None) -> str:
    rows = [_row(rng, table) for _ in range(count or rng.randint(1, 4))]
    if rng.chance(0.25):
        rows.append(rng.choice(rows))  # the same again
    return f"INSERT INTO {table.name} VALUES {', '.join(_tuple(table, row) for row in rows)}"


def _tuple(table: Relation, row: list[Any]) -> str:
    return "(" + ", ".join(written(held, type_) for held, (_, type_) in zip(row, table.columns, strict=True)) + ")"


def _where(rng: Dice, table: Relation) -> str:
    if rng.chance(0.6):
        name, type_ = rng.choice([each for each in table.columns if each[1] in ("INT", "STRING")])
        return f"{quoted(name)} <=> {written(value(rng, type_), type_)}"
    scope = Scope(tuple(Column(name, type_) for name, type_ in table.columns))
    tree: Node = expression(rng, BOOLEAN, scope.leaf(rng), 1)
    return tree.text


def _update(rng: Dice, table: Relation) -> str:
    free = [each for each in table.columns if each[0] != table.key]
    sets = []
    for name, type_ in rng.sample(free, rng.randint(1, 2)):
        sets.append(f"{quoted(name)} = {written(value(rng, type_), type_)}")
    return f"UPDATE {table.name} SET {', '.join(sets)} WHERE {_where(rng, table)}"


def _delete(rng: Dice, table: Relation) -> str:
    return f"DELETE FROM {table.name} WHERE {_where(rng, table)}"


def _truncate(rng: Dice, table: Relation) -> str:
    return f"DELETE FROM {table.name}" if rng.chance(0.5) else f"TRUNCATE TABLE {table.name}"


def _merge(rng: Dice, table: Relation) -> str:
    """A MERGE by the first column, with one source row for each of its values."""
    column = table.columns[0][0]
    rows = {repr(row[0]): row for row in (_row(rng, table) for _ in range(rng.randint(1, 3)))}
    names = [quoted(name) for name, _ in table.columns]
    source = " UNION ALL ".join(
        "SELECT " + ", ".join(f"CAST({written(held, kind)} AS {SPARK[kind]}) AS {name}" for held, (_, kind), name in zip(row, table.columns, names, strict=True))
        for row in rows.values()
    )  # fmt: skip
    name, held = rng.choice([each for each in table.columns if each[0] != table.key])
    matched = rng.choice((
        f"WHEN MATCHED THEN UPDATE SET {quoted(name)} = s.{quoted(name)}", "WHEN MATCHED THEN DELETE",
        f"WHEN MATCHED AND s.{quoted(column)} = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET {quoted(name)} = {written(value(rng, held), held)}",
    ))  # fmt: skip
    return (
        f"MERGE INTO {table.name} USING ({source}) AS s ON {table.name}.{quoted(column)} = s.{quoted(column)} "
        f"{matched} WHEN NOT MATCHED THEN INSERT *"
    )

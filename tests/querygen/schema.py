"""The tables that everything reads: few, small, and such that their rows meet."""

from __future__ import annotations

import re
from dataclasses import dataclass

from querygen.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INT,
    MAP,
    ROUGH,
    SPARK,
    STRING,
    STRUCT,
    TIMESTAMP,
)


def quoted(name: str) -> str:
    """A name as it is written in SQL."""
    plain = name.isidentifier() and name.isascii() and name.lower() not in ("select", "order")
    return name if plain else f"`{name.replace('`', '``')}`"


@dataclass(frozen=True, slots=True)
class Relation:
    """A name that queries can read from, with its columns and their types."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: str | None = None

    def is_named_in(self, text: str) -> bool:
        """Whether a text may be about it: something in it is called so."""
        return re.search(rf"\b{self.name}\b", text) is not None

    @property
    def create(self) -> str:
        columns = ", ".join(
            f"{quoted(name)} {SPARK[type_]}{' PRIMARY KEY' * (name == self.key)}" for name, type_ in self.columns
        )
        return f"CREATE TABLE {self.name} ({columns})"


TABLES = (
    Relation("t", (("k", INT), ("g", INT), ("n", BIGINT), ("d", DECIMAL), ("f", DOUBLE), ("s", STRING), ("ok", BOOLEAN), ("xs", ARRAY))),
    Relation("u", (("k", INT), ("s", STRING), ("day", DATE), ("ts", TIMESTAMP), ("w", ROUGH))),
    Relation("p", (("id", INT), ("k", INT), ("v", BIGINT), ("label", STRING)), key="id"),
    Relation("m", (("k", INT), ("tags", MAP), ("rec", STRUCT), ("xs", ARRAY), ("w", ROUGH), ("f", DOUBLE))),
    Relation("o", (("a b", INT), ("select", STRING), ("x.y", DOUBLE), ("g", INT), ("ü", DATE))),
)  # fmt: skip

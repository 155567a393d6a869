"""Literals: a string in quotes that is the whole of a value takes the type of the column that it goes into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepwell.model.relations import Column
from stepwell.model.types import STRING, Array, Map, Struct
from stepwell.sql.statements import Slice
from stepwell.sql.tokens import Token, TokenKind, tokenize


@dataclass(frozen=True, slots=True)
class TypedLiteral:
    """A string in quotes, and the column whose type it takes."""

    slice: Slice
    column: Column

    @property
    def text(self) -> str:
        """The literal with its type, for Spark."""
        return f"CAST({self.slice.text} AS {self.column.type})"


def literal_of(value: Slice, column: Column) -> TypedLiteral | None:
    """`value`, if it is one string in quotes for a column of another type that a string can be cast to."""
    tokens = _tokens(value)
    if len(tokens) != 1 or tokens[0].kind != TokenKind.STRING or not _takes_strings(column):
        return None
    return TypedLiteral(Slice(value.source, tokens[0].start, tokens[0].end), column)


def literals_in_values(query: Slice, columns: Sequence[Column]) -> list[TypedLiteral]:
    """The strings in quotes that are whole values of VALUES rows for `columns`; none if the query is no VALUES."""
    tokens = _tokens(query)
    if not tokens or not tokens[0].says("VALUES"):
        return []
    return [
        TypedLiteral(Slice(query.source, token.start, token.end), columns[index])
        for index, token in _whole_strings(tokens)
        if index < len(columns) and _takes_strings(columns[index])
    ]


def _takes_strings(column: Column) -> bool:
    return column.type != STRING and not isinstance(column.type, Array | Map | Struct)


def _whole_strings(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """The string tokens between two commas or parentheses of a row, each with its number in the row."""
    depth = index = 0
    for at, token in enumerate(tokens):
        if token.says("(", "["):
            depth += 1
            index = 0 if depth == 1 else index
        elif token.says(")", "]"):
            depth -= 1
        elif token.says(",") and depth == 1:
            index += 1
        elif token.kind == TokenKind.STRING and depth == 1:
            before, after = tokens[at - 1], tokens[at + 1] if at + 1 < len(tokens) else None
            if before.says("(", ",") and after is not None and after.says(")", ","):
                yield index, token


def _tokens(text: Slice) -> list[Token]:
    return [each for each in tokenize(text.source[: text.end], text.start) if each.start < text.end]

"""Tokens: sqlglot's tokenizer seen through one small window.

Its keywords of several words (`PRIMARY KEY`) come apart here, and what it swallows whole after SHOW and the like is
tokenized again, so that a statement is a plain row of words, names, literals and symbols with their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlglot
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token as SqlglotToken
from sqlglot.tokenizer_core import TokenType

from stepwell.model.errors import Place, SqlSyntaxError


class TokenKind(StrEnum):
    """What a token is."""

    WORD = "word"
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """A token; [start, end) is its place in the text. A NAME was quoted; a WORD may be a keyword or a name."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def says(self, *words: str) -> bool:
        """Whether this is one of these keywords or symbols."""
        return self.kind in (TokenKind.WORD, TokenKind.SYMBOL) and self.text.upper() in words


SWALLOWING = {TokenType.COMMAND, TokenType.EXECUTE, TokenType.FETCH, TokenType.SHOW, TokenType.RENAME}
"""Tokens after which sqlglot makes one string of the rest of the statement."""


def tokenize(text: str, start: int = 0) -> list[Token]:
    """The tokens of `text[start:]`; comments are gone, places count from the beginning of `text`."""
    tokens: list[Token] = []
    _tokenize(text, start, len(text), tokens)
    return tokens


def _tokenize(text: str, start: int, end: int, tokens: list[Token]) -> None:
    """Add the tokens of `text[start:end]`; a part that was swallowed is tokenized by itself, and nothing else again."""
    try:
        raw = sqlglot.tokenize(text[start:end], read="spark")
    except TokenError as error:
        raise _unfinished(text, start) from error
    for index, token in enumerate(raw):
        begins, ends = token.start + start, token.end + start + 1
        if index and swallows(raw, index - 1):
            _tokenize(text, raw[index - 1].end + start + 1, ends, tokens)
        else:
            tokens.extend(_split(token.token_type, token.text, text, begins, ends))


def swallows(tokens: Sequence[SqlglotToken], index: int) -> bool:
    """Whether the token behind this one is none that the user wrote, but a string of all that follows a command."""
    begins = index == 0 or tokens[index - 1].token_type in (TokenType.SEMICOLON, TokenType.BEGIN)
    following = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    return begins and tokens[index].token_type in SWALLOWING and following == TokenType.STRING


def _split(type_: TokenType, value: str, text: str, start: int, end: int) -> Iterator[Token]:
    if type_ == TokenType.IDENTIFIER:
        yield Token(TokenKind.NAME, value, start, end)
    elif text[start] in "'\"" or type_ in (TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING):
        yield Token(TokenKind.STRING, value, start, end)
    elif text[start].isdecimal() or (text[start] == "." and end - start > 1):
        yield Token(TokenKind.NUMBER, text[start:end], start, end)
    else:
        for match in re.finditer(r"\w+|[^\w\s]+", text[start:end]):
            kind = TokenKind.WORD if match.group()[0].isalnum() or match.group()[0] == "_" else TokenKind.SYMBOL
            yield Token(kind, match.group(), start + match.start(), start + match.end())


def _unfinished(text: str, start: int) -> SqlSyntaxError:
    """The error for a text that ends inside a string, a quoted name or a comment: it points where that began."""
    pattern = r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`|(/\*|['\"`])"
    for match in re.finditer(pattern, text[start:], re.DOTALL):
        if match.group(1):
            what = {"/*": "comment", "`": "quoted name"}.get(match.group(1), "string")
            place = Place(text, start + match.start(), start + match.end())
            return SqlSyntaxError(f"this {what} is never closed", place=place)
    return SqlSyntaxError("the text cannot be read as SQL", place=Place(text, start, start + 1))

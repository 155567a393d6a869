"""Dialects: statements written for PostgreSQL, carried over into Spark's SQL.

sqlglot carries over queries and changes of rows; definitions keep their own words, with names and types rewritten.
Everything else that stepwell knows (FLUSH, SHOW, VERIFY …) only has its quotes changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError, UnsupportedError
from sqlglot.tokenizer_core import Token, TokenType

from stepwell.model import errors
from stepwell.model.errors import Place, SqlSyntaxError, UnstorableTypeError
from stepwell.sql.tokens import SWALLOWING

_QUERY = {"SELECT", "WITH", "VALUES", "("}
_CHANGE = {"INSERT", "UPDATE", "DELETE", "MERGE"}
_AFTER_TYPE = {
    "NOT",
    "NULL",
    "PRIMARY",
    "DEFAULT",
    "COMMENT",
    "CONSTRAINT",
    "CHECK",
    "UNIQUE",
    "REFERENCES",
    "GENERATED",
}
_NO_COLUMN = {"PRIMARY", "UNIQUE", "CONSTRAINT", "CHECK", "FOREIGN", "WATERMARK", "PRIMARY KEY", "FOREIGN KEY"}
_NUMERIC = "DECIMAL(38, 18)"


class Dialect(StrEnum):
    SPARK = "spark"
    POSTGRES = "postgres"


def to_spark(text: str, dialect: Dialect) -> str:
    """The statements of `text` as Spark writes them, a line each; what has no counterpart there is an error."""
    if dialect == Dialect.SPARK:
        return text
    return ";\n".join(_statement(text, tokens) for tokens in _statements(text))


def _statements(text: str) -> Iterator[list[Token]]:
    try:
        tokens = sqlglot.tokenize(text, read="postgres")
    except TokenError as error:
        raise SqlSyntaxError("the text cannot be read as PostgreSQL's SQL", detail=str(error)) from error
    found: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            if found:
                yield found
            found = []
        else:
            found.append(token)
    if found:
        yield found


def _statement(text: str, tokens: list[Token]) -> str:
    words = [token.text.upper() for token in tokens]
    if len(tokens) == 2 and tokens[0].token_type in SWALLOWING:  # whose rest is one token, whatever it says
        rest = text[tokens[0].end + 1 : tokens[1].end + 1].strip()
        return f"{words[0]} {to_spark(rest, Dialect.POSTGRES)}"
    if words[0] in _QUERY or words[0] in _CHANGE:
        return _carried_over(text, tokens)
    if words[0] in ("CREATE", "ALTER") and "TABLE" in words[1:3]:
        return _table(text, tokens)
    if words[0] == "CREATE" and "AS" in words:
        starts = words.index("AS") + 1
        if starts < len(words) and words[starts] in _QUERY:
            return f"{_requoted(text, tokens[:starts])} {_carried_over(text, tokens[starts:])}"
    return _requoted(text, tokens)


def _carried_over(text: str, tokens: list[Token]) -> str:
    """A query or a change of rows, through sqlglot."""
    start, end = tokens[0].start, tokens[-1].end + 1
    try:
        tree = sqlglot.parse_one(text[start:end], read="postgres")
        _refuse(tree, Place(text, start, end))
        for kind in tree.find_all(exp.DataType):
            if kind.this == exp.DataType.Type.DECIMAL and not kind.expressions:
                kind.replace(exp.DataType.build(_NUMERIC, dialect="spark"))
            elif kind.this == exp.DataType.Type.TIME:
                raise UnstorableTypeError("TIME has no counterpart in Spark", place=Place(text, start, end))
        return tree.sql("spark", unsupported_level=ErrorLevel.RAISE)
    except ParseError as error:
        raise SqlSyntaxError(
            "this cannot be read as PostgreSQL's SQL", detail=_first(error), place=_place(text, error, start, end)
        ) from error
    except RecursionError as error:
        raise SqlSyntaxError("this is nested too deeply", place=Place(text, start, end)) from error
    except (ValueError, AttributeError, TypeError, LookupError) as error:  # such as b'2', which it takes for a number
        raise SqlSyntaxError(
            "this cannot be read as PostgreSQL's SQL", detail=_first(error), place=Place(text, start, end)
        ) from error
    except UnsupportedError as error:
        raise errors.UnsupportedError(
            "this has no counterpart in Spark's SQL", detail=_first(error), place=Place(text, start, end)
        ) from error


def _refuse(tree: exp.Expr, place: Place) -> None:
    """What sqlglot would carry over into something else."""
    options = [fetch.args.get("limit_options") for fetch in tree.find_all(exp.Fetch)]
    for what, found in (
        ("RETURNING", tree.find(exp.Returning)),
        ("ON CONFLICT", tree.find(exp.OnConflict)),
        ("percentile_cont: write percentile(x, 0.5)", tree.find(exp.PercentileCont)),
        ("WITH TIES", any(each is not None and each.args.get("with_ties") for each in options)),
    ):
        if found:
            raise errors.UnsupportedError(f"there is no {what}", place=place)


def _table(text: str, tokens: list[Token]) -> str:
    """CREATE or ALTER TABLE with the types of its columns rewritten; all else as it is."""
    pieces: list[str] = []
    depth, index, at_definition = 0, 0, False
    alters = tokens[0].text.upper() == "ALTER"
    while index < len(tokens):
        token = tokens[index]
        word = token.text.upper()
        if at_definition and word not in _NO_COLUMN:
            pieces.append(_requoted(text, [token]))
            index += 1
            end = index
            inside = 0
            while end < len(tokens):
                each = tokens[end]
                if not inside and (each.text.upper().partition(" ")[0] in _AFTER_TYPE or each.text in (",", ")")):
                    break
                inside += {"(": 1, "[": 1, ")": -1, "]": -1}.get(each.text, 0)
                end += 1
            if end > index:
                pieces.append(_type(text, tokens[index:end]))
            index, at_definition = end, False
            continue
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        added = alters and depth == 0 and word in ("COLUMN", "COLUMNS") and _next(tokens, index) != "("
        at_definition = added or (token.text in ("(", ",") and depth == 1)
        pieces.append(_requoted(text, [token]))
        index += 1
    return " ".join(pieces)


def _next(tokens: list[Token], index: int) -> str:
    return tokens[index + 1].text if index + 1 < len(tokens) else ""


def _type(text: str, tokens: list[Token]) -> str:
    start, end = tokens[0].start, tokens[-1].end + 1
    written = text[start:end]
    try:
        found = exp.DataType.build(written, dialect="postgres")
    except (ParseError, ValueError, RecursionError):
        return written  # ours to refuse, in our own words
    kinds = exp.DataType.Type
    if found.this in (kinds.VARCHAR, kinds.CHAR, kinds.NCHAR, kinds.NVARCHAR, kinds.BPCHAR):
        return "STRING"
    if found.this == kinds.DECIMAL and not found.expressions:
        return _NUMERIC
    if found.this in (kinds.TIME, kinds.TIMETZ):
        raise UnstorableTypeError(f"{written} cannot be stored", place=Place(text, start, end), hint="Use TIMESTAMP.")
    return found.sql("spark")


def _requoted(text: str, tokens: list[Token]) -> str:
    """Tokens as they stood, with names in Spark's quotes and strings with Spark's escapes."""
    pieces: list[str] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and token.start > before.end + 1:
            pieces.append(" ")
        if token.token_type == TokenType.IDENTIFIER:
            pieces.append("`" + token.text.replace("`", "``") + "`")
        elif token.token_type == TokenType.STRING and text[token.start] == "'":
            pieces.append("'" + token.text.replace("\\", "\\\\").replace("'", "\\'") + "'")
        else:
            pieces.append(text[token.start : token.end + 1])
    return "".join(pieces)


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].split(". Line")[0]


def _place(text: str, error: ParseError, start: int, end: int) -> Place:
    """Where sqlglot stumbled, counted in the text that it was given."""
    for each in error.errors:
        line, column = int(each.get("line") or 0), int(each.get("col") or 0)
        lines = text[start:end].split("\n")
        if 0 < line <= len(lines):
            at = start + sum(len(earlier) + 1 for earlier in lines[: line - 1]) + column
            width = len(str(each.get("highlight") or "x"))
            return Place(text, min(max(start, at - width), end - 1), min(at, end))
    return Place(text, start, end)

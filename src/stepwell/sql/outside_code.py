"""Outside: where a text would have Spark run a command or Java code, or read files, instead of relations.

    SELECT TRANSFORM(a) USING 'command'; FROM t MAP a USING 'command'; FROM t REDUCE a USING 'command'
    reflect(…), java_method(…), try_reflect(…), also when they are named by IDENTIFIER('…')
    FROM csv.`path`, and so for each format that Spark reads

A view runs for whoever opens its warehouse, so none may say any of this.
"""

from __future__ import annotations

import re

from stepwell.model.errors import StepwellError, UnsupportedError
from stepwell.sql.references import find_references
from stepwell.sql.statements import Name, Slice
from stepwell.sql.tokens import Token, TokenKind, tokenize

FORMATS = frozenset({"parquet", "csv", "json", "orc", "text", "binaryfile", "avro", "xml"})
"""Before a path, these say how its files are to be read."""

_FUNCTIONS = {"reflect", "java_method", "try_reflect"}
_SUSPECT = re.compile(r"\b(using|identifier|reflect|java_method|try_reflect)\b", re.IGNORECASE)


def outside_code(text: Slice) -> Slice | None:
    """The first place in a text where it would have Spark run a command or Java code."""
    if not _SUSPECT.search(text.text):
        return None
    tokens = tokenize(text.source[: text.end], text.start)
    for index, token in enumerate(tokens[:-1]):
        following = tokens[index + 1]
        if following.says("("):
            name = token.text.lower() if token.kind in (TokenKind.WORD, TokenKind.NAME) else ""
            if name in _FUNCTIONS or (name == "identifier" and _calls_what_it_names(tokens[index + 1 :])):
                return Slice(text.source, token.start, token.end)
        elif token.says("USING") and following.kind == TokenKind.STRING:
            return Slice(text.source, token.start, following.end)
    return None


def is_file(name: Name) -> bool:
    """Whether a name is that of files rather than of a relation."""
    return len(name.parts) > 1 and name.parts[0].lower() in FORMATS


def refuse_outside(text: Slice) -> None:
    """Fail where the query of a view reaches outside."""
    code = outside_code(text)
    if code is not None:
        raise _refused("runs code from outside the database, which no view may", code)
    for reference in find_references(text):
        if is_file(reference.name):
            raise UnsupportedError(
                "a view cannot read files",
                place=reference.name.slice.place,
                hint="Load them into a table with COPY, and read that.",
            )


def not_allowed(where: Slice, setting: str) -> StepwellError:
    """The error for a query that reaches outside where the session does not allow it."""
    return _refused("reaches outside the database", where, f"SET {setting} = true allows it in queries.")


def _refused(what: str, where: Slice, hint: str | None = None) -> StepwellError:
    return UnsupportedError(f"{where.text} {what}", place=where.place, hint=hint)


def _calls_what_it_names(tokens: list[Token]) -> bool:
    """Whether a call follows the parentheses that these tokens begin with."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += token.says("(") - token.says(")")
        if depth == 0:
            return index + 1 < len(tokens) and tokens[index + 1].says("(")
    return False

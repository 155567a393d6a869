"""References: which relations a query names, and where in the text it does.

sqlglot tells what is a relation and what is a column, a CTE or a function; the text itself is left as it is, so that
names can be replaced by their places and nothing else changes on the way to Spark.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from stepwell.model.errors import Place, SqlSyntaxError
from stepwell.model.types import whole_number
from stepwell.sql.statements import Name, Slice
from stepwell.sql.structure import structure_of
from stepwell.sql.tokens import TokenKind, tokenize


@dataclass(frozen=True, slots=True)
class AsOf:
    """`VERSION AS OF epoch` or `TIMESTAMP AS OF time`; `kind` says which."""

    kind: str
    value: str
    place: Place


@dataclass(frozen=True, slots=True)
class ChangesOf:
    """`changes(relation, after, upto)`; without `upto`, up to now."""

    after: int
    upto: int | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A relation named in a text. `slice` is what a replacement replaces, version clause and all."""

    name: Name
    slice: Slice
    aliased: bool
    as_of: AsOf | None = None
    changes: ChangesOf | None = None


_AS_OF = re.compile(
    r"\s+(?:FOR\s+)?(?:SYSTEM_)?(VERSION|TIMESTAMP|TIME)\s+AS\s+OF\s+(?:TIMESTAMP\s*)?(\d+|'[^']*'|\"[^\"]*\")",
    re.IGNORECASE,
)
_FACE = re.compile(r"(\w)\$([a-z])", re.IGNORECASE)
_DOLLAR = "\u01c3"
"""A letter to sqlglot, which takes no dollar for a part of a name."""
_SESSION = re.compile(r"\b((?:from|join)\s+)session(\s*\()", re.IGNORECASE)
_SESSION_NAME = "seszion"
"""A function to sqlglot, which takes SESSION for a word of its own; of the same length, since places are counted."""
_A_QUERY_INSIDE = re.compile(r"\b(select|from)\b", re.IGNORECASE)


QUERY, EXPRESSION, RELATION = "", "SELECT ", "SELECT * FROM "
"""What a text is: a query by itself, or one after these words."""


def find_references(text: Slice, prefix: str = QUERY) -> list[Reference]:
    """The references in a query, in an expression that may hold subqueries, or in a FROM, in the order of the text."""
    if not _A_QUERY_INSIDE.search(prefix.removeprefix(EXPRESSION) + text.text):
        return []  # a thousand VALUES need no parser to see that they name nothing
    readable = _SESSION.sub(rf"\1{_SESSION_NAME}\2", _FACE.sub(rf"\1{_DOLLAR}\2", text.text))
    tree = _parse(prefix + readable)
    if tree is None:
        return []
    base = text.start - len(prefix)
    found = [reference for table in tree.find_all(exp.Table) for reference in _reference(table, text, base)]
    return sorted(found, key=lambda reference: reference.slice.start)


def _reference(table: exp.Table, text: Slice, base: int) -> Iterator[Reference]:
    aliased = bool(table.args.get("alias"))
    if isinstance(table.this, exp.Anonymous) and table.this.name.lower() == "changes":
        yield _changes_reference(table.this, text, base, aliased)
        return
    if isinstance(table.this, exp.Anonymous) and table.this.name.lower() in ("tumble", "hop", _SESSION_NAME):
        yield from _windowed_reference(table.this, text, base)
        return
    if not isinstance(table.this, exp.Identifier):
        return
    parts = [part for part in table.parts if isinstance(part, exp.Identifier) and "start" in part.meta]
    if not parts:
        return
    if len(parts) == 1 and _is_cte(table, parts[0].name):
        return
    start, end = base + int(parts[0].meta["start"]), base + int(parts[-1].meta["end"]) + 1
    where = Slice(text.source, start, end)
    as_of, until = None, end
    if table.args.get("version"):
        match = _AS_OF.match(text.source, end)
        if match is None:
            raise SqlSyntaxError(
                "a version is a number or a time in quotes",
                place=where.place,
                hint="Write VERSION AS OF 5 or TIMESTAMP AS OF '2026-01-01 00:00:00'.",
            )
        until = match.end()
        kind = "version" if match.group(1).upper() == "VERSION" else "timestamp"
        as_of = AsOf(kind, match.group(2).strip("'\""), Place(text.source, match.start(1), until))
    name = Name(tuple(part.name.replace(_DOLLAR, "$") for part in parts), where)
    yield Reference(name, Slice(text.source, start, until), aliased, as_of)


def _windowed_reference(call: exp.Anonymous, text: Slice, base: int) -> Iterator[Reference]:
    """The relation that a window function in FROM is about."""
    parts = _names_in(call.expressions[0]) if call.expressions else []
    if parts:
        where = Slice(text.source, base + int(parts[0].meta["start"]), base + int(parts[-1].meta["end"]) + 1)
        yield Reference(Name(tuple(part.name for part in parts), where), where, aliased=True)


def _changes_reference(call: exp.Anonymous, text: Slice, base: int, aliased: bool) -> Reference:
    arguments = call.expressions
    identifiers = _names_in(arguments[0]) if arguments else []
    begins = base + int(identifiers[0].meta["start"]) if identifiers else text.start
    start = text.source.lower().rfind("changes", text.start, begins)
    start = start if start >= 0 else text.start
    closing = [token.end for token in tokenize(text.source[: text.end], begins) if token.says(")")]
    end = closing[0] if closing else text.end
    where = Slice(text.source, start, end)
    numbers = [argument for argument in arguments[1:] if isinstance(argument, exp.Literal) and not argument.is_string]
    epochs = [whole_number(str(number.this)) for number in numbers]
    if not identifiers or not 1 <= len(numbers) <= 2 or len(numbers) != len(arguments) - 1 or None in epochs:
        raise SqlSyntaxError(
            "changes() takes a relation and one or two epochs",
            place=where.place,
            hint="Write changes(t, after, upto): the changes of the epochs (after, upto].",
        )
    parts = tuple(identifier.name.replace(_DOLLAR, "$") for identifier in identifiers)
    name = Name(parts, Slice(text.source, begins, base + int(identifiers[-1].meta["end"]) + 1))
    after, upto = (*epochs, None)[:2]
    return Reference(name, where, aliased, changes=ChangesOf(after or 0, upto))


def _names_in(argument: exp.Expr) -> list[exp.Identifier]:
    """The identifiers of an argument that stand in the text, in its order: sqlglot makes up others."""
    found = [each for each in argument.find_all(exp.Identifier) if "start" in each.meta]
    return sorted(found, key=lambda each: int(each.meta["start"]))


_FORBIDDEN = {
    "rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "now", "current_timestamp", "current_date",
    "curdate", "current_time", "localtimestamp", "unix_timestamp", "current_user", "session_user", "user",
    "current_catalog", "current_database", "current_schema", "monotonically_increasing_id", "spark_partition_id",
    "input_file_name", "input_file_block_start", "input_file_block_length", "version",
}  # fmt: skip
_MOVING_DAYS = {"now", "today", "tomorrow", "yesterday"}
"""What may stand in a literal of a day or an instant, and is another one tomorrow."""
_WITHOUT_PARENTHESES = {"current_timestamp", "current_date", "current_time", "current_user", "session_user"}


def forbidden_function(text: Slice) -> Slice | None:
    """The first function in a query whose value does not follow from the rows it reads."""
    tokens = tokenize(text.source[: text.end], text.start)
    for index, token in enumerate(tokens):
        name = token.text.lower()
        if token.says("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ") and index + 1 < len(tokens):
            value = tokens[index + 1]
            if value.kind == TokenKind.STRING and value.text.strip().lower() in _MOVING_DAYS:
                return Slice(text.source, token.start, value.end)
        called = index + 1 < len(tokens) and tokens[index + 1].says("(")
        if token.kind != TokenKind.WORD or name not in _FORBIDDEN or not (called or name in _WITHOUT_PARENTHESES):
            continue
        if name == "unix_timestamp" and not (index + 2 < len(tokens) and tokens[index + 2].says(")")):
            continue
        if index and tokens[index - 1].says(".", "AS"):
            continue
        return Slice(text.source, token.start, token.end)
    return None


def called_functions(text: Slice) -> set[str]:
    """The names, in small letters, that a query calls as functions."""
    tokens = tokenize(text.source[: text.end], text.start)
    pairs = itertools.pairwise(tokens)
    return {token.text.lower() for token, after in pairs if token.kind == TokenKind.WORD and after.says("(")}


def _is_cte(table: exp.Table, name: str) -> bool:
    """Whether `name` means a WITH query here: one defined before this place, or around it if RECURSIVE."""
    node: exp.Expr = table
    while node.parent is not None:
        parent = node.parent
        if isinstance(parent, exp.With):
            visible = parent.expressions
            if not parent.args.get("recursive"):
                at = [index for index, each in enumerate(visible) if each is node]
                visible = visible[: at[0]] if at else visible
        else:
            clause = parent.args.get("with_")
            visible = clause.expressions if isinstance(clause, exp.With) and clause is not node else []
        if any(cte.alias.lower() == name.lower() for cte in visible):
            return True
        node = parent
    return False


_STUMBLES = (SqlglotError, RecursionError, AttributeError, TypeError, ValueError, LookupError)
"""What sqlglot raises for a text that it cannot read: told to ignore errors, it falls over what is missing."""


def _parse(text: str) -> exp.Expr | None:
    """The structure of a text as far as it can be seen. Whether it is right, Spark says, and says it better."""
    for level in (ErrorLevel.IMMEDIATE, ErrorLevel.IGNORE):
        try:
            return structure_of(text, level)
        except _STUMBLES:
            continue
    return None

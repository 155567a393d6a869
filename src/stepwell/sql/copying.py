"""COPY: files into a table."""

from __future__ import annotations

import dataclasses
from typing import Any

from stepwell.model.errors import InvalidSettingError, nearest
from stepwell.model.loads import Format, LoadOptions, OnError
from stepwell.sql.cursor import Cursor
from stepwell.sql.statements import Copy, Slice
from stepwell.sql.tokens import TokenKind

_OPTIONS = {field.name: field.default for field in dataclasses.fields(LoadOptions)}
_SWITCHES = {"TRUE": True, "ON": True, "1": True, "FALSE": False, "OFF": False, "0": False}


def parse_copy(cursor: Cursor) -> Copy:
    """The rest of a statement after COPY."""
    cursor.accept("INTO")
    table = cursor.name("a table")
    columns = cursor.column_list("a column") if cursor.peek("(") else None
    cursor.expect("FROM")
    paths = [string_of(cursor, "a path in quotes")]
    while cursor.accept(","):
        paths.append(string_of(cursor, "a path in quotes"))
    options: dict[str, Any] = {}
    if cursor.accept("WITH") or cursor.peek("("):
        cursor.expect("(")
        while not options or cursor.accept(","):
            name, value = _option(cursor)
            options[name] = value
        cursor.expect(")")
    return Copy(table, columns, tuple(paths), LoadOptions(**options))


def _option(cursor: Cursor) -> tuple[str, Any]:
    """`name value` or `name = value`; a switch alone is on."""
    word, where = cursor.identifier("an option")
    name = word.lower()
    if name not in _OPTIONS:
        raise InvalidSettingError(
            f'COPY has no option "{word}"',
            place=where.place,
            hint=nearest(name, _OPTIONS) or f"There are {', '.join(sorted(_OPTIONS))}.",
        )
    is_switch = isinstance(_OPTIONS[name], bool)
    cursor.accept("=")
    if is_switch and cursor.peek(",", ")"):
        return name, True
    token = cursor.next(f"a value for {name}")
    place = Slice(cursor.source, token.start, token.end).place
    if is_switch:
        if token.text.upper() not in _SWITCHES:
            raise InvalidSettingError(f"{name} is true or false", place=place)
        return name, _SWITCHES[token.text.upper()]
    kinds = {"format": Format, "on_error": OnError}
    if name in kinds:
        known = [each.value for each in kinds[name]]
        if token.text.lower() not in known:
            raise InvalidSettingError(f"{name} is {' or '.join(known)}", place=place, hint=nearest(token.text, known))
        return name, kinds[name](token.text.lower())
    if token.kind != TokenKind.STRING:
        raise InvalidSettingError(f"{name} takes a string in quotes", place=place)
    if name in ("delimiter", "quote") and len(token.text) != 1:
        raise InvalidSettingError(f"{name} is one character", place=place)
    if name == "label" and not token.text.strip():
        raise InvalidSettingError("a label cannot be empty", place=place)
    return name, token.text


def string_of(cursor: Cursor, what: str) -> str:
    """The next token, which must be a string."""
    token = cursor.token
    if token is None or token.kind != TokenKind.STRING:
        raise cursor.unexpected(what)
    cursor.index += 1
    return token.text

"""CREATE, DROP and ALTER of views."""

from __future__ import annotations

import dataclasses
import re

from stepwell.errors import InvalidDefinitionError, nearest
from stepwell.sql.cursor import Cursor
from stepwell.sql.statements import AlterView, CreateView, DropRelations, Slice, ViewAction
from stepwell.sql.tokens import Kind
from stepwell.views import RefreshPolicy, ViewOptions

_OPTIONS = ("refresh_policy", "priority")


def parse_create_view(cursor: Cursor, *, materialized: bool, or_replace: bool) -> CreateView:
    """The rest of a statement after CREATE [OR REPLACE] [MATERIALIZED] VIEW."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name("the view's name")
    columns = cursor.column_list("a column") if cursor.peek("(") else None
    options = ViewOptions()
    if cursor.peek("WITH"):
        if not materialized:
            raise cursor.unexpected("AS: a plain view has no options,")
        options = _parse_options(cursor)
    cursor.expect("AS")
    if not cursor.peek("SELECT", "WITH", "VALUES", "FROM", "("):
        raise cursor.unexpected("a query")
    query = cursor.rest("a query")
    return CreateView(name, columns, query, materialized, or_replace, if_not_exists, options)


def parse_drop(cursor: Cursor) -> DropRelations:
    """The rest of a statement after DROP."""
    for words in (("TABLE",), ("MATERIALIZED", "VIEW"), ("VIEW",)):
        if cursor.accept(*words):
            kind = " ".join(words).lower()
            break
    else:
        raise cursor.unexpected("TABLE, MATERIALIZED VIEW or VIEW")
    if_exists = cursor.accept("IF", "EXISTS")
    names = [cursor.name(f"a {kind}")]
    while cursor.accept(","):
        names.append(cursor.name(f"a {kind}"))
    cascade = cursor.accept("CASCADE")
    if not cascade:
        cursor.accept("RESTRICT")
    return DropRelations(kind, tuple(names), if_exists, cascade)


def parse_alter_view(cursor: Cursor) -> AlterView:
    """The rest of a statement after ALTER [MATERIALIZED] VIEW."""
    name = cursor.name("a view")
    if cursor.accept("RENAME", "TO"):
        return AlterView(name, ViewAction.RENAME, new_name=cursor.name("a name"))
    if cursor.accept("PAUSE"):
        return AlterView(name, ViewAction.PAUSE)
    if cursor.accept("RESUME"):
        return AlterView(name, ViewAction.RESUME)
    if cursor.accept("SET"):
        return AlterView(name, ViewAction.SET, options=_parse_list(cursor, ViewOptions()))
    raise cursor.unexpected("PAUSE, RESUME, RENAME TO or SET")


def _parse_options(cursor: Cursor) -> ViewOptions:
    cursor.expect("WITH")
    return _parse_list(cursor, ViewOptions())


def _parse_list(cursor: Cursor, options: ViewOptions) -> ViewOptions:
    cursor.expect("(")
    while True:
        name, where = cursor.identifier("an option")
        if name.lower() not in _OPTIONS:
            raise InvalidDefinitionError(
                f'a view has no option "{name}"',
                place=where.place,
                hint=nearest(name, _OPTIONS) or f"There are {', '.join(_OPTIONS)}.",
            )
        cursor.expect("=")
        if name.lower() == "priority":
            options = dataclasses.replace(options, priority=_parse_priority(cursor))
        else:
            options = dataclasses.replace(options, policy=_parse_policy(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return options


def _parse_priority(cursor: Cursor) -> int:
    sign = -1 if cursor.accept("-") else 1
    value = cursor.next("a number")
    if not re.fullmatch(r"\d{1,9}", value.text):
        raise InvalidDefinitionError(
            f'"{value.text}" is not a priority',
            place=Slice(cursor.source, value.start, value.end).place,
            hint="A priority is a whole number; 0 is usual, and more is earlier.",
        )
    return sign * int(value.text)


def _parse_policy(cursor: Cursor) -> RefreshPolicy:
    value = cursor.next("a value")
    text = value.text.lower() if value.kind in (Kind.STRING, Kind.WORD, Kind.NAME) else ""
    if text not in {each.value for each in RefreshPolicy}:
        raise InvalidDefinitionError(
            f'"{value.text}" is not a refresh policy',
            place=Slice(cursor.source, value.start, value.end).place,
            hint="There are 'auto', 'incremental strict' and 'full'.",
        )
    return RefreshPolicy(text)

"""CREATE, DROP and ALTER of views."""

from __future__ import annotations

from stepwell.errors import InvalidDefinitionError, nearest
from stepwell.sql.cursor import Cursor
from stepwell.sql.statements import AlterView, CreateView, DropRelations, Slice, ViewAction
from stepwell.sql.tokens import Kind
from stepwell.views import RefreshPolicy

_OPTIONS = ("refresh_policy",)


def parse_create_view(cursor: Cursor, *, materialized: bool, or_replace: bool) -> CreateView:
    """The rest of a statement after CREATE [OR REPLACE] [MATERIALIZED] VIEW."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name("the view's name")
    columns = cursor.column_list("a column") if cursor.peek("(") else None
    policy = RefreshPolicy.AUTO
    if cursor.peek("WITH"):
        if not materialized:
            raise cursor.unexpected("AS: a plain view has no options,")
        policy = _parse_options(cursor)
    cursor.expect("AS")
    if not cursor.peek("SELECT", "WITH", "VALUES", "FROM", "("):
        raise cursor.unexpected("a query")
    query = cursor.rest("a query")
    return CreateView(name, columns, query, materialized, or_replace, if_not_exists, policy)


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
        return AlterView(name, ViewAction.SET, policy=_parse_list(cursor))
    raise cursor.unexpected("PAUSE, RESUME, RENAME TO or SET")


def _parse_options(cursor: Cursor) -> RefreshPolicy:
    cursor.expect("WITH")
    return _parse_list(cursor)


def _parse_list(cursor: Cursor) -> RefreshPolicy:
    policy = RefreshPolicy.AUTO
    cursor.expect("(")
    while True:
        name, where = cursor.identifier("an option")
        if name.lower() not in _OPTIONS:
            raise InvalidDefinitionError(
                f'a view has no option "{name}"',
                place=where.place,
                hint=nearest(name, _OPTIONS) or f"There is {', '.join(_OPTIONS)}.",
            )
        cursor.expect("=")
        value = cursor.next("a value")
        text = value.text.lower() if value.kind in (Kind.STRING, Kind.WORD, Kind.NAME) else ""
        if text not in {each.value for each in RefreshPolicy}:
            raise InvalidDefinitionError(
                f'"{value.text}" is not a refresh policy',
                place=Slice(cursor.source, value.start, value.end).place,
                hint="There are 'auto', 'incremental strict' and 'full'.",
            )
        policy = RefreshPolicy(text)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return policy

"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE."""

from __future__ import annotations

from stepwell.model.errors import UnsupportedError
from stepwell.sql.cursor import Cursor
from stepwell.sql.statements import (
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeAction,
    MergeClause,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    Slice,
    Truncate,
    Update,
)
from stepwell.sql.tokens import TokenKind


def parse_insert(cursor: Cursor) -> Insert:
    cursor.expect("INTO")
    cursor.accept("TABLE")
    table = cursor.name("a table")
    columns = None
    if cursor.peek("(") and not cursor.peek("SELECT", "WITH", "(", "VALUES", "FROM", ahead=1):
        columns = cursor.column_list("a column")
    if not cursor.peek("VALUES", "SELECT", "WITH", "FROM", "("):
        raise cursor.unexpected("VALUES or a query")
    return Insert(table, columns, cursor.rest("VALUES or a query"))


def parse_update(cursor: Cursor) -> Update:
    table = cursor.name("a table")
    alias = _alias(cursor, "SET")
    cursor.expect("SET")
    assignments = _assignments(cursor, {table.last, alias or table.last}, "WHERE")
    condition = cursor.rest("a condition") if cursor.accept("WHERE") else None
    cursor.finish()
    return Update(table, alias, assignments, condition)


def parse_delete(cursor: Cursor) -> Delete:
    cursor.expect("FROM")
    table = cursor.name("a table")
    alias = _alias(cursor, "WHERE")
    condition = cursor.rest("a condition") if cursor.accept("WHERE") else None
    cursor.finish()
    return Delete(table, alias, condition)


def parse_truncate(cursor: Cursor) -> Truncate:
    cursor.accept("TABLE")
    table = cursor.name("a table")
    cursor.finish()
    return Truncate(table)


def parse_merge(cursor: Cursor) -> Merge:
    cursor.expect("INTO")
    table = cursor.name("a table")
    alias = _alias(cursor, "USING")
    cursor.expect("USING")
    if cursor.peek("("):
        start = cursor.next("a query").start
        cursor.slice_until(what="a query")
        source = Slice(cursor.source, start, cursor.tokens[cursor.index].end if cursor.token else cursor.end)
        cursor.expect(")")
    else:
        source = cursor.name("a relation or a query in parentheses").slice
    source_alias = _alias(cursor, "ON")
    source_columns = cursor.column_list("a column") if source_alias and cursor.peek("(") else ()
    cursor.expect("ON")
    condition = cursor.slice_until("WHEN", what="a condition")
    clauses: list[MergeClause] = []
    while (token := cursor.token) is not None and cursor.accept("WHEN"):
        clauses.append(_merge_clause(cursor, token.start, {table.last, alias or table.last}))
    if not clauses:
        raise cursor.unexpected("WHEN MATCHED or WHEN NOT MATCHED")
    cursor.finish()
    return Merge(table, alias, source, source_alias, source_columns, condition, tuple(clauses))


def _merge_clause(cursor: Cursor, start: int, target: set[str]) -> MergeClause:
    pairs = "matched"
    if cursor.accept("NOT"):
        pairs = "not matched"
    cursor.expect("MATCHED")
    if pairs == "not matched" and cursor.accept("BY"):
        if cursor.accept("SOURCE"):
            pairs = "not matched by source"
        else:
            cursor.expect("TARGET")
    condition = cursor.slice_until("THEN", what="a condition") if cursor.accept("AND") else None
    cursor.expect("THEN")
    action = _merge_action(cursor, pairs, target)
    return MergeClause(pairs, condition, action, Slice(cursor.source, start, cursor.tokens[cursor.index - 1].end))


def _merge_action(cursor: Cursor, pairs: str, target: set[str]) -> MergeAction:
    if pairs == "not matched":
        cursor.expect("INSERT")
        if cursor.accept("*"):
            return MergeInsert(None, None)
        columns = cursor.column_list("a column") if cursor.peek("(") else None
        cursor.expect("VALUES", "(")
        values = [cursor.slice_until(",", what="a value")]
        while cursor.accept(","):
            values.append(cursor.slice_until(",", what="a value"))
        cursor.expect(")")
        return MergeInsert(columns, tuple(values))
    if cursor.accept("DELETE"):
        return MergeDelete()
    cursor.expect("UPDATE", "SET")
    if pairs == "matched" and cursor.accept("*"):
        return MergeUpdate(None)
    return MergeUpdate(_assignments(cursor, target, "WHEN"))


def _assignments(cursor: Cursor, target: set[str], *until: str) -> tuple[Assignment, ...]:
    """`column = value, …`; a column may be qualified by one of the names that the target goes by."""
    found: list[Assignment] = []
    while not found or cursor.accept(","):
        name = cursor.name("a column")
        if len(name.parts) > 1 and name.parts[-2].lower() not in {each.lower() for each in target}:
            raise UnsupportedError(
                f'"{name}" is no column of the target',
                place=name.slice.place,
                hint="A field of a struct cannot be assigned alone: assign the whole with named_struct(…).",
            )
        last = Slice(cursor.source, name.slice.end - _width(cursor), name.slice.end)
        cursor.expect("=")
        found.append(Assignment(last, cursor.slice_until(",", *until, what="a value")))
    return tuple(found)


def _width(cursor: Cursor) -> int:
    """The width of the token just read: `t.price = …` assigns to its last part."""
    token = cursor.tokens[cursor.index - 1]
    return token.end - token.start


def _alias(cursor: Cursor, *until: str) -> str | None:
    if cursor.accept("AS"):
        return cursor.identifier("an alias")[0]
    token = cursor.token
    if token is not None and token.kind in (TokenKind.WORD, TokenKind.NAME) and not token.says(*until):
        return cursor.identifier("an alias")[0]
    return None

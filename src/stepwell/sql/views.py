"""CREATE, DROP and ALTER of views."""

from __future__ import annotations

import dataclasses
import re

from stepwell.model.errors import InvalidDefinitionError, nearest
from stepwell.model.views import EmitMode, RefreshPolicy, ViewOptions, Width
from stepwell.sql.cursor import Cursor
from stepwell.sql.statements import AlterView, CreateView, DropRelations, EmitClause, Slice, ViewAction
from stepwell.sql.tables import duration_at, parse_width
from stepwell.sql.tokens import TokenKind

_OPTIONS = (
    "refresh_policy", "priority", "time_column", "refresh", "lag", "lag_from", "max_future", "batch",
    "materialized_only", "schedule", "start_offset", "end_offset",
)  # fmt: skip


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
    query, emit = _parse_query(cursor)
    if not materialized and emit != EmitClause():
        where = emit.emit_slice or emit.lateness_slice
        raise InvalidDefinitionError(
            "a plain view shows what it reads, and has no EMIT and no lateness of its own",
            place=where.place if where else None,
            hint="CREATE MATERIALIZED VIEW has.",
        )
    return CreateView(name, columns, query, materialized, or_replace, if_not_exists, options, emit)


def _parse_query(cursor: Cursor) -> tuple[Slice, EmitClause]:
    """A query, and the clauses behind it."""
    start, depth, end = cursor.index, 0, len(cursor.tokens)
    for index in range(start, len(cursor.tokens)):
        token = cursor.tokens[index]
        depth += token.says("(", "[") - token.says(")", "]")
        follows = cursor.tokens[index + 1] if index + 1 < len(cursor.tokens) else None
        if depth or follows is None or index == start:
            continue
        emits = token.says("EMIT") and follows.says("ON", "AFTER", "PERIODICALLY")
        before = cursor.tokens[index - 1]
        if emits or (token.says("ALLOW") and follows.kind == TokenKind.WORD and not before.says("AS", ".", ",")):
            end = index
            break
    query = Slice(cursor.source, cursor.tokens[start].start, cursor.tokens[end - 1].end)
    cursor.index = end
    emit = EmitClause()
    while cursor.token is not None:
        first = cursor.token
        if emit.mode is None and cursor.accept("EMIT"):
            mode, every = _parse_emit(cursor)
            where = Slice(cursor.source, first.start, cursor.tokens[cursor.index - 1].end)
            emit = dataclasses.replace(emit, mode=mode, every=every, emit_slice=where)
        elif emit.lateness is None and cursor.accept("ALLOW", "LATENESS"):
            lateness = _parse_lateness(cursor)
            where = Slice(cursor.source, first.start, cursor.tokens[cursor.index - 1].end)
            emit = dataclasses.replace(emit, lateness=lateness, lateness_slice=where)
        else:
            raise cursor.unexpected("EMIT, ALLOW LATENESS or the end of the statement")
    return query, emit


def _parse_emit(cursor: Cursor) -> tuple[EmitMode, int]:
    if cursor.accept("ON", "UPDATE"):
        return EmitMode.UPDATE, 0
    if cursor.accept("AFTER", "WATERMARK") or cursor.accept("ON", "WINDOW", "CLOSE"):
        return EmitMode.WATERMARK, 0
    if not cursor.accept("PERIODICALLY"):
        raise cursor.unexpected("ON UPDATE, AFTER WATERMARK, ON WINDOW CLOSE or PERIODICALLY")
    first = cursor.token
    number, duration = parse_width(cursor)
    assert first is not None
    place = Slice(cursor.source, first.start, cursor.tokens[cursor.index - 1].end).place
    if number is not None or duration is None:
        raise InvalidDefinitionError("EMIT PERIODICALLY takes an interval", place=place, hint="INTERVAL '10 seconds'.")
    every = duration_at(duration, place)
    if every <= 0:
        raise InvalidDefinitionError("the interval of EMIT PERIODICALLY must be more than nothing", place=place)
    return EmitMode.PERIODICALLY, every


def _parse_lateness(cursor: Cursor) -> tuple[int | None, str | None]:
    sign, first = ("-" if cursor.accept("-") else ""), cursor.token
    number, duration = parse_width(cursor)
    assert first is not None
    place = Slice(cursor.source, first.start, cursor.tokens[cursor.index - 1].end).place
    if sign or (duration is not None and duration_at(duration, place) < 0):
        raise InvalidDefinitionError("a lateness cannot be negative", place=place, hint="0 allows none.")
    return number, duration


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
        options = _parse_list(cursor, ViewOptions())
        if options.time_column is not None:
            raise InvalidDefinitionError(
                "the time column of a view is part of its definition",
                place=name.slice.place,
                hint="CREATE OR REPLACE MATERIALIZED VIEW … WITH (time_column = …) gives it another.",
            )
        return AlterView(name, ViewAction.SET, options=options)
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
        options = _with_option(cursor, options, name.lower(), where)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return options


def _with_option(cursor: Cursor, options: ViewOptions, name: str, where: Slice) -> ViewOptions:
    match name:
        case "priority":
            return dataclasses.replace(options, priority=_parse_priority(cursor))
        case "time_column":
            return dataclasses.replace(options, time_column=cursor.next("a column").text)
        case "refresh":
            chosen = _one_of(cursor, "a way to refresh", ("continuous", "deferred"))
            return dataclasses.replace(options, deferred=chosen == "deferred")
        case "lag_from":
            return dataclasses.replace(options, from_now=_one_of(cursor, "a lag's start", ("source", "now")) == "now")
        case "materialized_only":
            chosen = _one_of(cursor, "true or false", ("true", "false"))
            return dataclasses.replace(options, materialized_only=chosen == "true")
        case "lag":
            return dataclasses.replace(options, lag=_parse_signed(cursor))
        case "start_offset":
            return dataclasses.replace(options, start_offset=_parse_signed(cursor))
        case "end_offset":
            return dataclasses.replace(options, end_offset=_parse_signed(cursor))
        case "schedule":
            number, duration = parse_width(cursor)
            every = duration_at(duration, where.place) if duration is not None else 0
            if number is not None or every <= 0:
                raise InvalidDefinitionError(
                    "a schedule is an interval of more than nothing",
                    place=where.place,
                    hint="INTERVAL 1 HOUR; a view without a schedule is refreshed when somebody says REFRESH.",
                )
            return dataclasses.replace(options, schedule=every)
        case "max_future":
            _, duration = parse_width(cursor)
            return dataclasses.replace(options, max_future=duration_at(duration or "", where.place))
        case "batch":
            number, _ = parse_width(cursor)
            if not number:
                raise InvalidDefinitionError("a batch is a number of buckets, one or more", place=where.place)
            return dataclasses.replace(options, batch=number)
        case _:
            return dataclasses.replace(options, policy=_parse_policy(cursor))


def _parse_signed(cursor: Cursor) -> Width:
    negative = cursor.accept("-")
    number, duration = parse_width(cursor)
    if not negative:
        return number, duration
    return None if number is None else -number, None if duration is None else f"-{duration}"


def _one_of(cursor: Cursor, what: str, words: tuple[str, ...]) -> str:
    value = cursor.next(what)
    if value.text.lower() not in words:
        raise InvalidDefinitionError(
            f'"{value.text}" is not {what}',
            place=Slice(cursor.source, value.start, value.end).place,
            hint=f"There are {' and '.join(words)}.",
        )
    return value.text.lower()


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
    text = value.text.lower() if value.kind in (TokenKind.STRING, TokenKind.WORD, TokenKind.NAME) else ""
    if text not in {each.value for each in RefreshPolicy}:
        raise InvalidDefinitionError(
            f'"{value.text}" is not a refresh policy',
            place=Slice(cursor.source, value.start, value.end).place,
            hint="There are 'auto', 'incremental strict' and 'full'.",
        )
    return RefreshPolicy(text)

"""CREATE TABLE and ALTER TABLE: columns, keys, watermarks and chunks."""

from __future__ import annotations

from stepwell.model.durations import parse_duration
from stepwell.model.errors import (
    DuplicateNameError,
    InvalidDefinitionError,
    Place,
    ReservedNameError,
    SqlSyntaxError,
    StepwellError,
    UndefinedColumnError,
    nearest,
)
from stepwell.model.files import DIFF, EPOCH, HIDDEN_PREFIX
from stepwell.model.relations import Chunking, Column, WatermarkRule, can_be_time, is_integer_time
from stepwell.model.types import DOUBLE, FLOAT, Array, Map, Struct, parse_type, whole_number
from stepwell.sql.cursor import Cursor
from stepwell.sql.statements import AddColumns, CreateTable, RenameTable, Slice
from stepwell.sql.tokens import TokenKind

_DAY = 86_400_000_000
_LIMITS = ("idle_timeout", "max_future")


def parse_create_table(cursor: Cursor) -> CreateTable:
    """The rest of a statement after CREATE TABLE."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name("the table's name")
    columns: list[Column] = []
    keys: list[tuple[Slice, ...]] = []
    watermark: tuple[Slice, int | None, str | None] | None = None
    cursor.expect("(")
    while True:
        if cursor.peek_all("PRIMARY", "KEY", "("):
            cursor.expect("PRIMARY", "KEY")
            keys.append(cursor.column_list("a column"))
        elif cursor.peek_all("WATERMARK", "FOR"):
            if watermark:
                raise cursor.unexpected("only one WATERMARK")
            watermark = _parse_watermark(cursor)
        else:
            column, where, is_key = _parse_column(cursor)
            _add(columns, column, where)
            if is_key:
                keys.append((where,))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    limits = _parse_limits(cursor) if cursor.accept("WITH") else {}
    chunk = _parse_chunk(cursor) if cursor.accept("CHUNK", "BY") else None
    limits = _parse_limits(cursor) if not limits and cursor.accept("WITH") else limits
    cursor.finish()
    if not columns:
        raise InvalidDefinitionError(f'table "{name}" needs a column', place=name.slice.place)
    if len(keys) > 1:
        raise InvalidDefinitionError(
            f'table "{name}" has more than one primary key',
            place=keys[1][0].place,
            hint="Write one PRIMARY KEY (a, b) for a key of several columns.",
        )
    by_name = {column.name.lower(): column for column in columns}
    key = _resolve_key(keys[0], by_name) if keys else ()
    columns = [Column(each.name, each.type, nullable=each.nullable and each.name not in key) for each in columns]
    rule = _resolve_watermark(watermark, by_name, limits) if watermark else None
    if limits and rule is None:
        name_, (_, where) = next(iter(limits.items()))
        raise InvalidDefinitionError(
            f"{name_} is about a watermark, and the table has none",
            place=where.place,
            hint="Add WATERMARK FOR column AS column - INTERVAL '5 seconds' behind the columns.",
        )
    chunking = _resolve_chunk(chunk, by_name) if chunk else _default_chunk(rule, by_name)
    return CreateTable(name, tuple(columns), key, rule, chunking, if_not_exists)


def parse_alter_table(cursor: Cursor) -> RenameTable | AddColumns:
    """The rest of a statement after ALTER TABLE."""
    name = cursor.name("the table's name")
    if cursor.accept("RENAME", "TO"):
        new_name = cursor.name("the new name")
        cursor.finish()
        return RenameTable(name, new_name)
    if not cursor.accept("ADD"):
        raise cursor.unexpected("RENAME TO or ADD COLUMN")
    if not cursor.accept("COLUMNS"):
        cursor.accept("COLUMN")
    in_parentheses = cursor.accept("(")
    columns: list[Column] = []
    while True:
        column, where, is_key = _parse_column(cursor)
        if is_key or not column.nullable:
            raise InvalidDefinitionError(
                f'added column "{column.name}" cannot be NOT NULL',
                place=where.place,
                detail="The rows that exist already have no value for it.",
                hint="Add it as nullable, fill it with UPDATE, and check it in the query.",
            )
        _add(columns, column, where)
        if not cursor.accept(","):
            break
    if in_parentheses:
        cursor.expect(")")
    cursor.finish()
    return AddColumns(name, tuple(columns))


def check_column_name(name: str) -> None:
    """Refuse the names that stepwell keeps for itself."""
    if name.lower().startswith(HIDDEN_PREFIX) or name.lower() in (DIFF, EPOCH):
        raise ReservedNameError(
            f'column name "{name}" is reserved',
            detail=f'Names that start with "{HIDDEN_PREFIX}", and "{DIFF}" and "{EPOCH}", belong to stepwell.',
            hint="Choose another name.",
        )


def _add(columns: list[Column], column: Column, where: Slice) -> None:
    if any(column.name.lower() == other.name.lower() for other in columns):
        raise DuplicateNameError(f'column "{column.name}" appears twice', place=where.place, sqlstate="42701")
    columns.append(column)


def _parse_column(cursor: Cursor) -> tuple[Column, Slice, bool]:
    name, where = cursor.identifier("a column name")
    start = cursor.index
    depth = 0
    while (token := cursor.token) is not None:
        if depth == 0 and token.says(",", ")", "NOT", "NULL", "PRIMARY", "DEFAULT", "COMMENT", "GENERATED"):
            break
        depth += token.text.count("<") + token.text.count("(") - token.text.count(">") - token.text.count(")")
        cursor.index += 1
    if cursor.index == start:
        raise cursor.unexpected(f'the type of column "{name}"')
    type_slice = Slice(cursor.source, cursor.tokens[start].start, cursor.tokens[cursor.index - 1].end)
    try:
        check_column_name(name)
    except StepwellError as error:
        raise error.at(where.place) from None
    try:
        type_ = parse_type(type_slice.text)
    except StepwellError as error:
        raise error.at(type_slice.place) from None
    nullable, is_key = True, False
    while not cursor.peek(",", ")") and cursor.token is not None:
        if cursor.accept("NOT", "NULL"):
            nullable = False
        elif cursor.accept("PRIMARY", "KEY"):
            is_key = True
        elif not cursor.accept("NULL"):
            raise cursor.unexpected("NOT NULL, PRIMARY KEY, a comma or a closing parenthesis")
    return Column(name, type_, nullable), where, is_key


def _resolve_key(key: tuple[Slice, ...], columns: dict[str, Column]) -> tuple[str, ...]:
    found: list[str] = []
    for part in key:
        column = _column(part, columns)
        if column.name in found:
            raise DuplicateNameError(f'column "{column.name}" is twice in the key', place=part.place, sqlstate="42701")
        if isinstance(column.type, Map | Array | Struct) or column.type in (FLOAT, DOUBLE):
            raise InvalidDefinitionError(
                f'column "{column.name}" cannot be part of a key: equality of {column.type} is nothing to rely on',
                place=part.place,
            )
        found.append(column.name)
    return tuple(found)


def _column(where: Slice, columns: dict[str, Column]) -> Column:
    name = where.unquoted
    if name.lower() not in columns:
        raise UndefinedColumnError(
            f'column "{name}" does not exist',
            place=where.place,
            hint=nearest(name, [column.name for column in columns.values()]),
        )
    return columns[name.lower()]


def _parse_watermark(cursor: Cursor) -> tuple[Slice, int | None, str | None]:
    """(column, delay as an integer, delay as a duration): which of the two is right depends on the column's type."""
    cursor.expect("WATERMARK", "FOR")
    _, where = cursor.identifier("a column")
    cursor.expect("AS")
    again, place = cursor.identifier("the same column")
    if again.lower() != where.unquoted.lower():
        raise SqlSyntaxError("a watermark follows its own column", place=place.place, hint=f"Write {where.text} - …")
    if not cursor.accept("-"):
        return where, 0, None
    number, duration = parse_width(cursor)
    return where, number, duration


def parse_width(cursor: Cursor) -> tuple[int | None, str | None]:
    """A plain number, or the text inside an INTERVAL."""
    if not cursor.accept("INTERVAL"):
        token = cursor.next("INTERVAL or a number")
        number = whole_number(token.text) if token.kind == TokenKind.NUMBER else None
        if number is None:
            cursor.index -= 1
            raise cursor.unexpected("INTERVAL or a whole number")
        return number, None
    token = cursor.next("the length of the interval")
    text = token.text
    following = cursor.token
    if token.kind == TokenKind.NUMBER or (text.strip().lstrip("+-").replace(".", "", 1).isdecimal()):
        unit, _ = cursor.identifier("a unit such as SECONDS")
        text = f"{text} {unit}"
    elif token.kind != TokenKind.STRING or (following and following.kind == TokenKind.STRING):
        cursor.index -= 1
        raise cursor.unexpected("a length such as '5 seconds'")
    return None, text


def _parse_chunk(cursor: Cursor) -> tuple[Slice, int | None, str | None]:
    in_parentheses = cursor.accept("(")
    _, where = cursor.identifier("a column")
    number, duration = parse_width(cursor) if cursor.accept("EVERY") else (None, None)
    if in_parentheses:
        cursor.expect(")")
    return where, number, duration


def _length(where: Slice, column: Column, number: int | None, duration: str | None, what: str) -> int:
    if not can_be_time(column.type):
        raise InvalidDefinitionError(
            f'{what} needs a time column, and "{column.name}" is {column.type}',
            place=where.place,
            hint="Use a TIMESTAMP, TIMESTAMP_NTZ, DATE, INT or BIGINT column.",
            sqlstate="42804",
        )
    if is_integer_time(column.type):
        if number is None:
            raise InvalidDefinitionError(
                f'"{column.name}" is {column.type}, so {what} is counted in whole numbers, not as an INTERVAL',
                place=where.place,
            )
        return number
    if duration is None:
        if number:
            raise InvalidDefinitionError(f'{what} for {column.type} "{column.name}" is an INTERVAL', place=where.place)
        return 0
    try:
        return parse_duration(duration)
    except StepwellError as error:
        raise error.at(where.place) from None


def _parse_limits(cursor: Cursor) -> dict[str, tuple[int, Slice]]:
    """WITH (idle_timeout = …, max_future = …), in microseconds."""
    found: dict[str, tuple[int, Slice]] = {}
    cursor.expect("(")
    while True:
        name, where = cursor.identifier("an option")
        if name.lower() not in _LIMITS:
            raise InvalidDefinitionError(
                f'a table has no option "{name}"',
                place=where.place,
                hint=nearest(name, _LIMITS) or f"There are {' and '.join(_LIMITS)}.",
            )
        cursor.expect("=")
        first = cursor.token
        _, duration = parse_width(cursor)
        assert first is not None
        value = Slice(cursor.source, first.start, cursor.tokens[cursor.index - 1].end)
        length = duration_at(duration, value.place) if duration is not None else None
        if length is None or length <= 0:
            raise InvalidDefinitionError(
                f"{name.lower()} is an interval of more than nothing", place=value.place, hint="INTERVAL '1 minute'."
            )
        found[name.lower()] = length, value
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def duration_at(text: str, place: Place) -> int:
    """A duration in microseconds; an error points at the place it stands at."""
    try:
        return parse_duration(text)
    except StepwellError as error:
        raise error.at(place) from None


def _resolve_watermark(
    parsed: tuple[Slice, int | None, str | None], columns: dict[str, Column], limits: dict[str, tuple[int, Slice]]
) -> WatermarkRule:
    where, number, duration = parsed
    column = _column(where, columns)
    delay = _length(where, column, number, duration, "the watermark's delay")
    if delay < 0:
        raise InvalidDefinitionError("a watermark's delay cannot be negative", place=where.place)
    limit = {name: length for name, (length, _) in limits.items()}
    if "max_future" in limit and is_integer_time(column.type):
        raise InvalidDefinitionError(
            f'max_future compares with the clock, and "{column.name}" is {column.type}',
            place=limits["max_future"][1].place,
        )
    return WatermarkRule(column.name, delay, limit.get("idle_timeout"), limit.get("max_future"))


def _resolve_chunk(parsed: tuple[Slice, int | None, str | None], columns: dict[str, Column]) -> Chunking:
    where, number, duration = parsed
    column = _column(where, columns)
    if number is None and duration is None and not is_integer_time(column.type):
        duration = "1 day"
    if number is None and duration is None and is_integer_time(column.type):
        raise InvalidDefinitionError(
            f'the chunks of {column.type} "{column.name}" need a width', place=where.place, hint="Write … EVERY 1000."
        )
    width = _length(where, column, number, duration, "the width of a chunk")
    if width <= 0:
        raise InvalidDefinitionError("a chunk must be wider than nothing", place=where.place)
    return Chunking(column.name, width)


def _default_chunk(rule: WatermarkRule | None, columns: dict[str, Column]) -> Chunking | None:
    """A table with event time is stored by day; an integer's unit is unknown, so such a table is one chunk."""
    if rule is None or is_integer_time(columns[rule.column.lower()].type):
        return None
    return Chunking(rule.column, _DAY)

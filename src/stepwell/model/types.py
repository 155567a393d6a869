"""The types a column can have: those that Delta has, spelt the way Spark spells them.

`parse_type` reads `DECIMAL(10, 2)` or `MAP<STRING, ARRAY<INT>>`; `str` writes it back.
"""

from __future__ import annotations

import datetime
import itertools
import re
from dataclasses import dataclass

from stepwell.model.errors import SqlSyntaxError, UnstorableTypeError, nearest


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """Exact numbers of `precision` digits, `scale` of them behind the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    element: DataType

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"MAP<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[tuple[str, DataType], ...]

    def __str__(self) -> str:
        return f"STRUCT<{','.join(f'{quote(name)}:{type_}' for name, type_ in self.fields)}>"


DataType = Primitive | Decimal | Array | Map | Struct

BOOLEAN = Primitive("BOOLEAN")
TINYINT, SMALLINT, INT, BIGINT = Primitive("TINYINT"), Primitive("SMALLINT"), Primitive("INT"), Primitive("BIGINT")
FLOAT, DOUBLE = Primitive("FLOAT"), Primitive("DOUBLE")
STRING, BINARY, DATE = Primitive("STRING"), Primitive("BINARY"), Primitive("DATE")
TIMESTAMP, TIMESTAMP_NTZ = Primitive("TIMESTAMP"), Primitive("TIMESTAMP_NTZ")

VOID = Primitive("VOID")
"""The type of a bare NULL. No column has it, but every column takes it."""

INTEGERS = frozenset({TINYINT, SMALLINT, INT, BIGINT})
INSTANTS = frozenset({TIMESTAMP, TIMESTAMP_NTZ})

_PRIMITIVES = (
    BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ
)  # fmt: skip

_NAMES: dict[str, DataType] = {
    **{type_.name: type_ for type_ in _PRIMITIVES},
    "BYTE": TINYINT,
    "SHORT": SMALLINT,
    "INTEGER": INT,
    "LONG": BIGINT,
    "REAL": FLOAT,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "DECIMAL": Decimal(10, 0),
    "NUMERIC": Decimal(10, 0),
    "DEC": Decimal(10, 0),
}

_UNSTORABLE = {
    "VARIANT": "CAST it to STRING with to_json.",
    "INTERVAL": "CAST it to BIGINT, or keep two instants.",
    "VOID": "CAST it to the type it should have.",
    "NULL": "CAST it to the type it should have.",
    "TIME": "CAST it to STRING, or keep a TIMESTAMP.",
    "CHAR": "CAST it to STRING, which has no length to keep to.",
    "CHARACTER": "CAST it to STRING, which has no length to keep to.",
    "VARCHAR": "CAST it to STRING, which has no length to keep to.",
    "GEOMETRY": "CAST it to BINARY.",
    "GEOGRAPHY": "CAST it to BINARY.",
}


def quote(name: str) -> str:
    """`name` as SQL writes it whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def unstorable(name: str) -> UnstorableTypeError:
    """The error for a type that exists but cannot be stored."""
    word = name.split("(")[0].split(" ")[0].split("<")[0].upper()
    return UnstorableTypeError(
        f"type {name} cannot be stored", hint=_UNSTORABLE.get(word, "CAST it to a type that can.")
    )


DEEPEST = 64
"""A type has at most this many others around it: more than anybody reads, and than Spark and Parquet would take."""


def parse_type(text: str) -> DataType:
    """The type that `text` spells, or an error that says what to CAST it to."""
    words = re.findall(r"`(?:[^`]|``)*`|\w+|\S", text)
    if max(itertools.accumulate((word == "<") - (word == ">") for word in words), default=0) > DEEPEST:
        raise UnstorableTypeError(
            "this type is nested too deeply", hint=f"At most {DEEPEST} types stand inside each other."
        )
    type_, rest = _parse(words, text)
    if rest:
        if rest[0].upper() == "COLLATE":
            raise UnstorableTypeError(
                f"type {text} cannot be stored", hint="Store STRING and write COLLATE in the query."
            )
        raise SqlSyntaxError(f'"{" ".join(rest)}" does not belong to type {text}')
    return type_


def _parse(words: list[str], text: str) -> tuple[DataType, list[str]]:
    if not words:
        raise SqlSyntaxError("a type is missing" if not text else f"type {text} is not complete")
    word, rest = words[0].upper(), words[1:]
    if word in ("ARRAY", "MAP", "STRUCT"):
        return _parse_nested(word, rest, text)
    if word in ("DECIMAL", "NUMERIC", "DEC") and rest[:1] == ["("]:
        close = rest.index(")") if ")" in rest else len(rest)
        numbers = [part for part in rest[1:close] if part != ","]
        digits = [whole_number(part) for part in numbers]
        if close == len(rest) or not 1 <= len(numbers) <= 2 or None in digits:
            raise SqlSyntaxError(f"type {text} is not a DECIMAL(precision, scale)")
        precision, scale = (*(each or 0 for each in digits), 0)[:2]
        if not (1 <= precision <= 38 and scale <= precision):
            raise UnstorableTypeError(
                f"type {text} cannot be stored",
                hint="A DECIMAL has at most 38 digits, and no more of them behind the point.",
            )
        return Decimal(precision, scale), rest[close + 1 :]
    if word in _NAMES:
        return _NAMES[word], rest
    if word in _UNSTORABLE:
        raise unstorable(text)
    raise UnstorableTypeError(f'type "{text}" does not exist', hint=nearest(words[0], _NAMES))


def _parse_nested(word: str, rest: list[str], text: str) -> tuple[DataType, list[str]]:
    if rest[:1] != ["<"]:
        raise SqlSyntaxError(f"type {text}: expected < after {word}")
    rest = rest[1:]
    if word == "ARRAY":
        element, rest = _parse(rest, text)
        return Array(element), _expect(">", rest, text)
    if word == "MAP":
        key, rest = _parse(rest, text)
        value, rest = _parse(_expect(",", rest, text), text)
        return Map(key, value), _expect(">", rest, text)
    fields: list[tuple[str, DataType]] = []
    while rest[:1] != [">"]:
        if fields:
            rest = _expect(",", rest, text)
        if not rest:
            raise SqlSyntaxError(f"type {text} is not complete")
        name = rest[0][1:-1].replace("``", "`") if rest[0].startswith("`") else rest[0]
        rest = rest[2:] if rest[1:2] == [":"] else rest[1:]
        field, rest = _parse(rest, text)
        fields.append((name, field))
    lowered = [name.lower() for name, _ in fields]
    if not fields or len(set(lowered)) < len(lowered):
        problem = "has a field twice" if fields else "has no field"
        raise UnstorableTypeError(f"type {text} {problem}", hint="Names are compared without case.")
    return Struct(tuple(fields)), rest[1:]


def _expect(symbol: str, words: list[str], text: str) -> list[str]:
    if words[:1] != [symbol]:
        raise SqlSyntaxError(f"type {text}: expected {symbol}" + (f' before "{words[0]}"' if words else ""))
    return words[1:]


def whole_number(text: str) -> int | None:
    """The number that plain digits write; None for any other text, and for one that no BIGINT holds."""
    return int(text) if text.isascii() and text.isdecimal() and len(text.lstrip("0")) < 19 else None


def literal(value: int | str | datetime.date) -> str:
    """A value as SQL writes it."""
    match value:
        case int():
            return str(value)
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case datetime.datetime():
            return f"TIMESTAMP{'' if value.tzinfo else '_NTZ'} '{value.isoformat(sep=' ')}'"
    return f"DATE '{value.isoformat()}'"

"""Parameters: `?` and `:name` in a text stand for values that a program hands in beside it.

A value is bound, never written into the text. Each place gets a name of its own, so that any part of a statement can be
run by itself and finds its values.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepwell.model.errors import ParameterError, nearest
from stepwell.sql.statements import (
    Delete,
    ExplainQuery,
    Insert,
    Merge,
    Query,
    Slice,
    Statement,
    Update,
)
from stepwell.sql.tokens import TokenKind, tokenize

Arguments = Mapping[str, Any] | Sequence[Any]
"""Values by name, or in the order of their places."""

BoundArguments = dict[Slice, tuple[str, Any]]
"""The places of a text that stand for values, each with a name that no other has, and its value."""

_WITH_VALUES = (Query, ExplainQuery, Insert, Update, Delete, Merge)


def bind_arguments(statements: Sequence[Statement], args: Arguments | None) -> BoundArguments:
    """Which value each place stands for; an error if one has none, or a value has no place."""
    if args is None:
        return {}
    if isinstance(args, str | bytes) or not isinstance(args, Mapping | Sequence):
        raise ParameterError("args is a dict of values by name, or a list of values in their order")
    markers = [each for statement in statements for each in _markers_of(statement)]
    if isinstance(args, Mapping):
        values = _by_name(markers, args)
    else:
        values = _in_order(markers, list(args))
    return {where: (f"_sw_p{index}", _bound(value)) for index, (where, value) in enumerate(values)}


def _by_name(markers: Sequence[tuple[Slice, str | None]], args: Mapping[str, Any]) -> list[tuple[Slice, Any]]:
    for where, name in markers:
        if name is None:
            raise ParameterError("? takes its value from a list", place=where.place, hint="Write :name for a dict.")
        if name not in args:
            raise ParameterError(f'parameter "{name}" has no value', place=where.place, hint=nearest(name, list(args)))
    named = {name for _, name in markers}
    for name in args:
        if name not in named:
            raise ParameterError(
                f'there is no parameter "{name}" in the text', hint=nearest(name, [each for each in named if each])
            )
    return [(where, args[name]) for where, name in markers if name is not None]


def _in_order(markers: Sequence[tuple[Slice, str | None]], args: Sequence[Any]) -> list[tuple[Slice, Any]]:
    for where, name in markers:
        if name is not None:
            raise ParameterError(
                f":{name} takes its value from a dict", place=where.place, hint="Write ? for a list of values."
            )
    if len(markers) != len(args):
        places = "1 parameter" if len(markers) == 1 else f"{len(markers)} parameters"
        values = "1 value" if len(args) == 1 else f"{len(args)} values"
        raise ParameterError(f"the text has {places}, and there {'is' if len(args) == 1 else 'are'} {values}")
    return [(where, value) for (where, _), value in zip(markers, args, strict=True)]


def _markers_of(statement: Statement) -> Iterator[tuple[Slice, str | None]]:
    """The places of a statement that stand for values, in order, with their names if they have some."""
    source, end = statement.slice.source, statement.slice.end
    tokens = [each for each in tokenize(source[:end], statement.slice.start) if each.start < end]
    for index, token in enumerate(tokens):
        name = None
        if token.kind != TokenKind.SYMBOL or token.text not in ("?", ":"):
            continue
        where = Slice(source, token.start, token.end)
        if token.text == ":":
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            is_inside = token.start > 0 and (source[token.start - 1].isalnum() or source[token.start - 1] in "_`)]")
            if following is None or following.kind != TokenKind.WORD or following.start != token.end or is_inside:
                continue  # a field of a type, such as STRUCT<a:INT>
            name, where = following.text, Slice(source, token.start, following.end)
        if not isinstance(statement.body, _WITH_VALUES):
            raise ParameterError(
                "a parameter stands for a value in a query, or in rows that are written",
                place=where.place,
                hint="Write the value itself here.",
            )
        yield where, name


def _bound(value: Any) -> Any:
    """A value as Spark takes it: an instant without a zone is one of UTC."""
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=datetime.UTC)
    return value

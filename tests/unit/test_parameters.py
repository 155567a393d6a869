"""Parameters and literals on the token stream: which places stand for values, and which strings take a type."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.model.errors import ParameterError
from stepwell.model.relations import Column
from stepwell.model.types import DATE, INT, STRING, Array
from stepwell.sql import bind_arguments, literal_of, literals_in_values, parse
from stepwell.sql.statements import Slice


def bound(text: str, args: Any) -> list[tuple[str, Any]]:
    return [(where.text, value) for where, (_, value) in bind_arguments(parse(text), args).items()]


def test_every_place_gets_its_value_and_a_name_of_its_own() -> None:
    assert bound("SELECT ?; SELECT a FROM t WHERE b = ? AND c>?", [1, 2, 3]) == [("?", 1), ("?", 2), ("?", 3)]
    text = "SELECT :a, b::INT, ':a', \"?\", `?`, c[:a] FROM t WHERE x=:b -- :nobody ?"
    assert bound(text, {"a": 1, "b": 2}) == [(":a", 1), (":a", 1), (":b", 2)]
    names = [name for name, _ in bind_arguments(parse(text), {"a": 1, "b": 2}).values()]
    assert len(set(names)) == 3


def test_types_have_fields_and_no_parameters() -> None:
    assert bound("SELECT CAST(NULL AS STRUCT<a:INT, b: STRING>), :c", {"c": 1}) == [(":c", 1)]


def test_without_args_nothing_is_looked_for() -> None:
    assert bind_arguments(parse("SELECT :a, ?"), None) == {}


def test_both_kinds_in_one_text_are_refused() -> None:
    with pytest.raises(ParameterError, match="takes its value from a dict"):
        bound("SELECT ?, :a", [1, 2])


def test_strings_that_are_whole_values_take_the_type_of_their_column() -> None:
    columns = [Column("i", INT), Column("d", DATE), Column("s", STRING), Column("l", Array(INT))]
    text = "VALUES (1, '2024-01-01', 'x', 'y'), ('2', upper('a'), 'z', NULL), (f('3', '4'), 'a' || 'b', '', 'c'), ('5' , '6')"
    found = literals_in_values(Slice(text, 0, len(text)), columns)
    assert [(each.slice.text, each.column.name) for each in found] == [
        ("'2024-01-01'", "d"), ("'2'", "i"), ("'5'", "i"), ("'6'", "d"),
    ]  # fmt: skip
    assert found[0].text == "CAST('2024-01-01' AS DATE)"
    query = "SELECT '1'"
    assert literals_in_values(Slice(query, 0, len(query)), columns) == []


def test_one_string_alone_is_a_literal() -> None:
    def literal(text: str) -> str | None:
        found = literal_of(Slice(text, 0, len(text)), Column("i", INT))
        return None if found is None else found.text

    assert literal("'7'") == "CAST('7' AS INT)"
    assert literal("'7' || '8'") is None
    assert literal("7") is None

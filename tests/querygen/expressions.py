"""Expressions of a given type: templates whose holes are expressions of other types, down to what a scope offers."""

from __future__ import annotations

import re
from collections.abc import Callable

from querygen.dice import Dice
from querygen.nodes import Node
from querygen.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INT,
    LITERALS,
    MAP,
    ROUGH,
    STRING,
    STRUCT,
    TIMESTAMP,
)

Leaf = Callable[[str], "Node | None"]
"""What a scope has of a type: a column, an aggregate, a window function; None if it has nothing."""

FORMS: dict[str, tuple[str, ...]] = {
    INT: (
        "({INT} + {INT})", "({INT} - {INT})", "({INT} * 2)", "pmod({INT}, 3)", "abs({INT})", "(- {INT})",
        "length({STRING})", "year({DATE})", "dayofmonth({DATE})", "hour({TIMESTAMP})", "size({ARRAY})",
        "try_element_at({ARRAY}, 1)", "({STRUCT}).x", "try_cast({STRING} AS INT)", "CAST({BOOLEAN} AS INT)",
        "greatest({INT}, {INT})", "datediff({DATE}, {DATE})", "try_element_at({MAP}, 'a')", "instr({STRING}, 'b')",
        "CAST({BIGINT} % 7 AS INT)", "CAST(floor({DOUBLE}) AS INT)", "CAST({DECIMAL} AS INT)", "ascii({STRING})",
        "aggregate({ARRAY}, 0, (a, x) -> a + coalesce(x, 0))", "CAST(array_position({ARRAY}, 2) AS INT)", "extract(MONTH FROM {DATE})",
    ),
    BIGINT: (
        "({BIGINT} + {INT})", "({BIGINT} - {BIGINT})", "CAST({INT} AS BIGINT)", "pmod({BIGINT}, 5)", "abs({BIGINT})",
        "floor({DOUBLE})", "ceil({DECIMAL})", "unix_date({DATE})", "bit_count({BIGINT})", "least({BIGINT}, {BIGINT})",
        "({BIGINT} & 3)", "xxhash64({INT}, {STRING}) % 11",
    ),
    DECIMAL: (
        "({DECIMAL} + {DECIMAL})", "({DECIMAL} - 1.50)", "({DECIMAL} * 2)", "round({DECIMAL}, 1)", "abs({DECIMAL})",
        "CAST({INT} AS DECIMAL(10,2))", "CAST({DOUBLE} AS DECIMAL(20,4))", "({DECIMAL} / 4)", "(- {DECIMAL})",
        "greatest({DECIMAL}, {DECIMAL})",
    ),
    DOUBLE: (
        "({DOUBLE} + {DOUBLE})", "({DOUBLE} - 0.25D)", "({DOUBLE} * 2)", "abs({DOUBLE})", "CAST({INT} AS DOUBLE)",
        "round({DOUBLE}, 1)", "({INT} / 2)", "({DOUBLE} + {INT})",
    ),
    ROUGH: (
        "{DOUBLE}", "CAST({DECIMAL} AS DOUBLE)", "({DOUBLE} / 3)", "try_divide({DOUBLE}, {INT})", "(- {ROUGH})",
        "nanvl({ROUGH}, {DOUBLE})", "sqrt({DOUBLE})", "coalesce({ROUGH}, {INT})", "CAST(try_cast({STRING} AS INT) AS DOUBLE)",
    ),
    STRING: (
        "upper({STRING})", "concat({STRING}, {STRING})", "({STRING} || '-')", "substring({STRING}, 1, 1)", "trim({STRING})",
        "replace({STRING}, 'a', 'c')", "CAST({INT} AS STRING)", "CAST({ROUGH} AS STRING)", "CAST({DECIMAL} AS STRING)",
        "date_format({TIMESTAMP}, 'yyyy-MM-dd HH')", "CAST({TIMESTAMP} AS STRING)", "concat_ws('/', {STRING}, {STRING})",
        "({STRUCT}).y", "CAST({ARRAY} AS STRING)", "lpad({STRING}, 3, 'x')", "typeof({INT})", "CAST({BOOLEAN} AS STRING)",
        "to_json({STRUCT})", "reverse({STRING})", "CAST({DATE} AS STRING)", "array_join(map_keys({MAP}), ',')",
    ),
    BOOLEAN: (
        "({INT} = {INT})", "({INT} < {INT})", "({STRING} = {STRING})", "({STRING} >= {STRING})", "({INT} BETWEEN 1 AND {INT})",
        "({INT} IS NULL)", "({STRING} IS NOT NULL)", "({INT} IN (1, 3))", "({INT} NOT IN (0, {INT}))", "({STRING} LIKE 'a%')",
        "({BOOLEAN} AND {BOOLEAN})", "({BOOLEAN} OR {BOOLEAN})", "(NOT {BOOLEAN})", "({INT} <=> {INT})", "({ROUGH} > {ROUGH})",
        "({ROUGH} = 0)", "isnan({ROUGH})", "array_contains({ARRAY}, {INT})", "exists({ARRAY}, x -> x > 1)",
        "({DATE} >= DATE '2024-02-28')", "({TIMESTAMP} < {TIMESTAMP})", "({DECIMAL} > 1)", "({BIGINT} > {INT})",
        "({DOUBLE} <= {DOUBLE})", "({STRING} RLIKE '^[ab]+$')", "({BOOLEAN} IS NOT TRUE)", "({DOUBLE} = {INT})",
        "map_contains_key({MAP}, 'a')", "({STRUCT} = {STRUCT})", "({ARRAY} <=> {ARRAY})", "({STRING} IS DISTINCT FROM 'b')",
        "({STRING} COLLATE UTF8_LCASE = 'a')",
    ),
    DATE: (
        "date_add({DATE}, {INT})", "({DATE} - 1)", "trunc({DATE}, 'MONTH')", "CAST({TIMESTAMP} AS DATE)", "last_day({DATE})",
        "({DATE} + INTERVAL 1 MONTH)", "make_date(2024, 3, 1 + pmod({INT}, 20))",
    ),
    TIMESTAMP: (
        "({TIMESTAMP} + INTERVAL 1 HOUR)", "date_trunc('DAY', {TIMESTAMP})", "CAST({DATE} AS TIMESTAMP)",
        "({TIMESTAMP} - INTERVAL '1' MINUTE)", "timestamp_seconds({INT})",
    ),
    ARRAY: (
        "array({INT}, {INT})", "array_distinct({ARRAY})", "concat({ARRAY}, {ARRAY})", "transform({ARRAY}, x -> x + 1)",
        "filter({ARRAY}, x -> x > 1)", "slice({ARRAY}, 1, 1)", "array_append({ARRAY}, {INT})", "sequence(1, 1 + pmod({INT}, 3))",
        "map_values({MAP})",
    ),
    MAP: ("map(coalesce({STRING}, 'z'), {INT})", "map_filter({MAP}, (key, x) -> x > 0)"),
    STRUCT: ("named_struct('x', {INT}, 'y', {STRING})",),
}  # fmt: skip

SIMPLE: dict[str, tuple[str, ...]] = {
    INT: ("({INT} + 1)", "({INT} * 2)", "({INT} + {INT})", "coalesce({INT}, 0)", "length({STRING})", "size({ARRAY})", "day({DATE})"),
    BIGINT: ("({BIGINT} + 1)", "CAST({INT} AS BIGINT)", "coalesce({BIGINT}, 7)", "({BIGINT} + {INT})"),
    DECIMAL: ("({DECIMAL} + 1.50)", "CAST({INT} AS DECIMAL(10,2))", "({DECIMAL} * 2)"),
    DOUBLE: ("({DOUBLE} + 0.25)", "CAST({INT} AS DOUBLE)", "({DOUBLE} * 2)"),
    ROUGH: ("{DOUBLE}", "({DOUBLE} / 3)", "coalesce({ROUGH}, 0.5)"),
    STRING: ("upper({STRING})", "concat({STRING}, 'x')", "CAST({INT} AS STRING)", "coalesce({STRING}, 'n')", "CAST({BIGINT} AS STRING)"),
    BOOLEAN: (
        "({INT} > 0)", "({INT} <> 2)", "({INT} = {INT})", "({STRING} <> 'b')", "({INT} IS NOT NULL)", "({INT} >= 1)", "({DOUBLE} < 2)",
        "({STRING} IS NULL)", "({ROUGH} >= 0)", "({BIGINT} < 100)", "({DATE} > DATE '2024-02-27')", "({INT} IN (1, 2, 3))",
        "({DECIMAL} > 0)", "({STRING} >= 'a')", "(NOT {BOOLEAN})", "({BOOLEAN} OR {BOOLEAN})",
    ),
    DATE: ("({DATE} + 1)", "CAST({TIMESTAMP} AS DATE)"),
    TIMESTAMP: ("date_trunc('HOUR', {TIMESTAMP})", "CAST({DATE} AS TIMESTAMP)"),
    ARRAY: ("array({INT}, 1)", "array_distinct({ARRAY})"),
    MAP: ("map('a', {INT})",),
    STRUCT: ("named_struct('x', {INT}, 'y', {STRING})",),
}  # fmt: skip
"""Forms of queries that are about their structure."""

ANY = (
    "coalesce({T}, {T})", "CASE WHEN {BOOLEAN} THEN {T} ELSE {T} END", "CASE {INT} WHEN 1 THEN {T} WHEN 2 THEN {T} END",
    "if({BOOLEAN}, {T}, NULL)", "CASE WHEN {BOOLEAN} THEN {T} WHEN {INT} = 2 THEN {T} END",
)  # fmt: skip
"""Forms that every type has."""
COMPARED = ("nullif({T}, {T})",)
"""Forms of every type whose values can be compared."""

_HOLE = re.compile(r"\{(\w+)\}")


def filled(form: str, type_: str, fill: Callable[[str], Node]) -> Node:
    """The expression that a form becomes when its holes are filled."""
    pieces: list[str | Node] = []
    for number, part in enumerate(_HOLE.split(form)):
        if number % 2:
            pieces.append(fill(type_ if part == "T" else part))
        elif part:
            pieces.append(part)
    return Node(type_, tuple(pieces))


def expression(rng: Dice, type_: str, leaf: Leaf, depth: int) -> Node:
    """An expression of a type over what `leaf` offers, at most `depth` forms deep."""
    found = leaf(type_)
    if found is not None and (depth <= 0 or rng.chance(0.7 if rng.plain else 0.3)):
        return found if rng.chance(0.95 if rng.plain else 0.88) else literal(rng, type_)
    if depth < 0 or (depth == 0 and rng.chance(0.2)):
        return literal(rng, type_)
    forms = (SIMPLE if rng.plain else FORMS)[
        type_
    ]  # at depth 0 too: there is nothing of the type, but something that it can be made of
    if rng.chance(0.05 if rng.plain else 0.25):
        forms = ANY if type_ == MAP or rng.chance(0.8) else COMPARED
    form = rng.choice(_offered(forms, leaf, type_) or forms)
    return filled(form, type_, lambda hole: expression(rng, hole, leaf, depth - 1))


def literal(rng: Dice, type_: str) -> Node:
    return Node(type_, (rng.choice(LITERALS[type_]) if not rng.plain else LITERALS[type_][0],))


def _offered(forms: tuple[str, ...], leaf: Leaf, type_: str) -> list[str]:
    """The forms that have a hole for something that is there: an expression of literals alone tests nothing."""
    known: dict[str, bool] = {}
    kept = []
    for form in forms:
        holes = [type_ if hole == "T" else hole for hole in _HOLE.findall(form)]  # a set has no order to be repeated
        for hole in holes:
            if hole not in known:
                known[hole] = leaf(hole) is not None
        if any(known[hole] for hole in holes):
            kept.append(form)
    return kept

"""Values: the rows of a text that gives them no identities, told apart by what they are."""

from __future__ import annotations

from stepwell.algebra.fingerprints import fingerprint
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.relations import Column, Relation
from stepwell.model.types import DOUBLE, FLOAT, STRING, DataType, quote


def by_value(view: Relation, text: str, *, rounded: bool = False) -> str:
    """The rows of a text that has no identities: each by what it is, and equal ones by counting them.

    `rounded` takes floating point numbers for equal that differ after nine digits only.
    """
    names = [quote(column.name) for column in view.columns]
    named = f"SELECT * FROM ({text}) AS _sw_w({', '.join(names)})" if names else f"SELECT 1 FROM ({text})"
    items = [f"CAST({quote(each.name)} AS {each.type}) AS {quote(each.name)}" for each in view.columns]
    inner = f"SELECT {', '.join(items) or '1 AS _sw_one'} FROM ({named})"
    value = fingerprint([_rounded(column) if rounded else (quote(column.name), column.type) for column in view.columns])
    numbered = f"SELECT *, {value} AS _sw_value FROM ({inner})"
    number = "row_number() OVER (PARTITION BY _sw_value ORDER BY _sw_value)"
    identity = f"xxhash64(_sw_value, {number}) AS {ROW_ID}"
    identified = f"SELECT {', '.join([*names, identity])} FROM ({numbered})"
    return f"SELECT *, {ROW_ID} AS {ROW_VERSION} FROM ({identified})"


def value_difference(view: Relation, new: str, old: str) -> str:
    """new − old, both of them rows by value."""
    names = [quote(column.name) for column in view.columns]
    listed = ", ".join([*names, ROW_ID])
    kept = ", ".join([*(f"any_value({name}) AS {name}" for name in names), ROW_ID])
    both = f"SELECT {listed}, 1L AS {DIFF} FROM ({new}) UNION ALL SELECT {listed}, -1L AS {DIFF} FROM ({old})"
    total = f"sum({DIFF})"
    return f"SELECT {kept}, {total} AS {DIFF} FROM ({both}) GROUP BY {ROW_ID} HAVING {total} <> 0"


def _rounded(column: Column) -> tuple[str, DataType]:
    name = quote(column.name)
    if column.type not in (FLOAT, DOUBLE):
        return name, column.type
    return f"CAST(CAST(format_string('%.8e', CAST({name} AS DOUBLE)) AS STRING) AS STRING)", STRING

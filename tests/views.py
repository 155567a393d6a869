"""Views against plain Spark: the one definition of correct, for the tests of every rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import stepwell
from models import canonical

FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for a session that compares: rows this few are not worth compiling for."""


def answer(db: stepwell.Database, text: str) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    result = db.sql(text)
    return result.tuples() if isinstance(result, stepwell.Rows) else [tuple(row) for row in result.collect()]


def contents(db: stepwell.Database, query: str) -> Counter[Any]:
    """The rows of a query as a bag."""
    return Counter(tuple(rounded(value) for value in row) for row in answer(db, query))


def rounded(value: Any) -> Any:
    """A value to compare by; floating point to twelve digits, for Spark adds in any order."""
    if isinstance(value, float):
        return canonical(float(f"{value:.12e}")) if value == value and value not in (0.0,) else canonical(value + 0.0)
    if isinstance(value, list):
        return tuple(rounded(each) for each in value)
    return canonical(value)


def wrong_views(db: stepwell.Database, queries: Mapping[str, str]) -> list[str]:
    """The views that differ from their query, computed by plain Spark from what they read; a failed view differs."""
    for name, value in FEW_ROWS.items():
        db.spark.conf.set(name, value)
    states = {name: (state, reason) for name, state, _, reason in answer(db, "SHOW MATERIALIZED VIEWS")}
    found = []
    for name, query in queries.items():
        if states[name][0] != "running":
            found.append(f"{name} is {states[name]}")
            continue
        stored, expected = contents(db, f"SELECT * FROM {name}"), contents(db, query)
        if stored != expected:
            found.append(f"{name}: missing {dict(expected - stored)}, unexpected {dict(stored - expected)}")
    return found

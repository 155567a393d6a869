"""Views against plain Spark: the one definition of correct, for the tests of every rule."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import stepwell
from models import canonical
from plain import Plain
from stepwell.engine.meanings import MEANINGS
from stepwell.model.relations import Relation

FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for a session that compares: rows this few are not worth compiling for."""

_EXACTLY = "yyyy-MM-dd HH:mm:ss.SSSSSS"

AT_ONCE = 12
"""How many views are compared by one job of Spark: planning costs more than computing, and a job plans once for all."""

FEW = 3
"""Up to so many views, what they read is not read beforehand."""


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


STRICT = "WITH (refresh_policy = 'incremental strict')"


def creates(queries: Mapping[str, str], options: str = "") -> str:
    """A script that makes these views, at one barrier."""
    return "; ".join(f"CREATE MATERIALIZED VIEW {name} {options} AS {query}" for name, query in queries.items())


def wrong_views(db: stepwell.Database, queries: Mapping[str, str]) -> list[str]:
    """The views that differ from their query, computed by plain Spark from what they read; a failed view differs."""
    for name, value in FEW_ROWS.items():
        db.spark.conf.set(name, value)
    states = {name: (state, reason) for name, state, _, reason in answer(db, "SHOW MATERIALIZED VIEWS")}
    found = [f"{name} is {states[name]}" for name in queries if states[name][0] != "running"]
    running = [(name, query) for name, query in queries.items() if states[name][0] == "running"]
    known = {relation.name: relation for relation in db.relations()}
    beside = _held_beside(db, running, known) if len(running) > FEW else None
    for some in _some(running):
        for name, query in _suspects(db, some, known, beside):
            stored, expected = contents(db, f"SELECT * FROM {name}"), contents(db, query)
            if stored != expected:
                found.append(f"{name}: missing {dict(expected - stored)}, unexpected {dict(stored - expected)}")
    return found


def _held_beside(db: stepwell.Database, views: Sequence[tuple[str, str]], known: Mapping[str, Relation]) -> Plain:
    """Plain Spark, in which all that some queries read is held as rows: each is read once, not once a query."""
    plain = Plain(db.spark)
    for setting in MEANINGS:
        plain.spark.conf.set(setting, db.spark.conf.get(setting) or "")
    words = {word for _, query in views for word in re.findall(r"\w+", query)}
    for name in known.keys() & words:
        frame = db.sql(f"SELECT * FROM {name}")
        assert not isinstance(frame, stepwell.Rows | None)
        plain.set(name, frame.toArrow(), frame.schema)
    return plain


def _some(views: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    return [list(views[at : at + AT_ONCE]) for at in range(0, len(views), AT_ONCE)]


def _suspects(
    db: stepwell.Database, views: list[tuple[str, str]], known: Mapping[str, Relation], beside: Plain | None
) -> list[tuple[str, str]]:
    """Those of some views that do not hold the rows of their query, as one query over all of them sees it.

    What cannot be computed together, or beside, such as queries of which one fails, is all suspect.
    """
    if len(views) == 1:
        return views
    held = {name: _as_json(name, f"SELECT * FROM {name}", known) for name, _ in views}
    expected = {name: _as_json(name, query, known) for name, query in views}
    try:
        there = _bags(answer(db, " UNION ALL ".join(held.values())))
        text = " UNION ALL ".join(expected.values())
        right = _bags([tuple(row) for row in beside.query(text).collect()] if beside else answer(db, text))
    except (stepwell.StepwellError, PySparkException, Py4JJavaError):
        return views
    return [each for each in views if there.get(each[0]) != right.get(each[0])]


def _as_json(name: str, query: str, known: Mapping[str, Relation]) -> str:
    """A query for the rows of another, each as a text beside the name of a view."""
    types = [str(column.type) for column in known[name].columns]
    columns = ", ".join(f"c{number}" for number in range(len(types)))
    values = ", ".join(
        f"CAST(c{number} AS STRING) AS c{number}" if type_.startswith("DECIMAL") else f"c{number}"
        for number, type_ in enumerate(types)
    )
    row = f"to_json(struct({values}), map('ignoreNullFields', 'false', 'timestampFormat', '{_EXACTLY}'))"
    return f"SELECT '{name}' AS name, {row} AS row FROM ({query}) AS q({columns})"


def _bags(rows: Sequence[tuple[str, str]]) -> dict[str, Counter[str]]:
    bags: dict[str, Counter[str]] = {}
    for name, row in rows:
        bags.setdefault(name, Counter())[_canonical_text(row)] += 1
    return bags


def _canonical_text(row: str) -> str:
    """A row of JSON with its floating point numbers rounded."""
    return row if "." not in row and "E" not in row else repr(_rounded_json(json.loads(row)))


def _rounded_json(value: Any) -> Any:
    match value:
        case float():
            return rounded(value)
        case list():
            return [_rounded_json(each) for each in value]
        case dict():
            return {name: _rounded_json(each) for name, each in value.items()}
    return value

"""Results as text: tables for people, CSV and JSON for programs."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stepwell.model.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS = ("table", "csv", "json")


def render(result: DataFrame | Rows, format_: str) -> Iterator[str]:
    """The lines of a result, in one of FORMATS or `expanded`: a line a column."""
    columns = list(result.columns)
    rows: Iterable[Sequence[Any]] = result.tuples() if isinstance(result, Rows) else _rows(result, format_)
    if format_ == "json":
        for row in rows:
            yield json.dumps(dict(zip(columns, map(to_json, row), strict=True)), ensure_ascii=False)
    elif format_ == "csv":
        yield _csv_line(columns)
        for row in rows:
            yield _csv_line(["" if value is None else to_text(value) for value in row])
    elif format_ == "expanded":
        width = max(map(len, columns), default=0)
        count = 0
        for count, row in enumerate(rows, start=1):
            yield f"-[ row {count} ]-"
            for name, value in zip(columns, row, strict=True):
                yield f"{name.ljust(width)} | {'NULL' if value is None else to_text(value)}"
        yield f"({count} row{'' if count == 1 else 's'})"
    else:
        shown = Rows(columns, [["NULL" if value is None else to_text(value) for value in row] for row in rows])
        yield from str(shown).splitlines()
        yield f"({shown.count()} row{'' if shown.count() == 1 else 's'})"


def to_text(value: Any) -> str:
    """A value as people write it; nested ones as JSON."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime.datetime():
            naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
            return naive.isoformat(sep=" ")
        case bytes() | bytearray():
            return bytes(value).hex()
        case dict() | list() | tuple():
            return json.dumps(to_json(value), ensure_ascii=False)
    return str(value)


def to_json(value: Any) -> Any:
    """A value as JSON has it; what JSON has not is text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case decimal.Decimal():
            return str(value)
        case _ if hasattr(value, "asDict"):
            return {key: to_json(each) for key, each in value.asDict().items()}
        case dict():
            return {to_text(key): to_json(each) for key, each in value.items()}
        case list() | tuple():
            return [to_json(each) for each in value]
    return to_text(value)


def _rows(frame: DataFrame, format_: str) -> Iterator[Sequence[Any]]:
    """A table is measured before it is printed, so it is collected; the others flow."""
    rows = frame.collect() if format_ in ("table", "expanded") else frame.toLocalIterator()
    for row in rows:
        yield tuple(row)


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()

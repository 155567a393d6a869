"""`stepwell report`: a warehouse as one page: bars, the graph of views, the last epochs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import Any

import click

from stepwell.cli import fail, warehouse_options
from stepwell.database import Database, connect, look_at, translated
from stepwell.model.errors import StepwellError, WarehouseError, mask
from stepwell.model.relations import Relation
from stepwell.model.types import STRING, quote
from stepwell.web import Bar, Level, Report, ReportEpoch, ReportNode, render_report

SYMBOLS, BARS, EPOCHS, ROWS = 12, 1500, 40, 5
"""The busiest symbols, the newest bars of each, the last epochs, and a few rows of each relation are on the page."""

LONGEST = 200
"""Characters of a value that are shown."""

_PRICES = ("open", "high", "low", "close")


@click.command(short_help="Write a page about a warehouse.")
@click.option("--out", default="report.html", show_default=True, metavar="FILE", help="The file to write.")
@warehouse_options
def command(out: str, warehouse: str, catalog: str | None, spark: str | None) -> None:
    """Write one HTML file with the bars, the graph of views and the last epochs. It needs no network."""
    try:
        look_at(warehouse, catalog=catalog).close()
        with connect(warehouse, catalog=catalog, spark=spark) as database:
            write_report(database, Path(out), title=f"stepwell: {mask(warehouse)}")
    except (StepwellError, KeyboardInterrupt) as error:
        fail(error)
        return
    click.echo(f"wrote {out}", err=True)


def write_report(database: Database, out: Path, *, title: str) -> None:
    """Write the page."""
    with translated():
        page = render_report(report_of(database, title))
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise WarehouseError(f'cannot write "{out}": {error.strerror}', hint="Name another file with --out.") from error


def report_of(database: Database, title: str) -> Report:
    """What there is to say about a warehouse now."""
    relations = database.relations()
    now = datetime.now(UTC)
    return Report(
        title,
        f"{now:%Y-%m-%d %H:%M:%S} UTC",
        str(database.warehouse),
        database.epoch,
        tuple(_levels(database, relations)),
        tuple(_nodes(database, relations)),
        tuple(_epochs(database)),
    )


def _levels(database: Database, relations: Sequence[Relation]) -> Iterator[Level]:
    for relation in relations:
        names = {column.name.lower(): column.name for column in relation.columns}
        time = relation.time_column
        if relation.definition.view is None or time is None or not names.keys() >= set(_PRICES):
            continue
        symbol = next((column.name for column in relation.columns if column.type == STRING), None)
        volume = quote(names["volume"]) if "volume" in names else "0"
        key = quote(symbol) if symbol else "''"
        prices = ", ".join(f"CAST({quote(names[each])} AS DOUBLE)" for each in _PRICES)
        busiest = f"SELECT {key} AS k FROM {quote(relation.name)} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {SYMBOLS}"
        chosen = [row[0] for row in database.sql(busiest).collect()]
        numbered = (
            f"SELECT {key} AS k, unix_seconds(CAST({quote(time)} AS TIMESTAMP)) AS t, {prices},"
            f" CAST({volume} AS DOUBLE) AS v,"
            f" row_number() OVER (PARTITION BY {key} ORDER BY {quote(time)} DESC) AS n FROM {quote(relation.name)}"
        )
        rows = database.sql(f"SELECT * FROM ({numbered}) WHERE n <= {BARS} ORDER BY k, t").collect()
        corrected = _corrected(database, relation, key, time)
        bars: dict[str, list[Bar]] = {each: [] for each in chosen}
        for row in rows:
            known = bars.get(row[0])
            if known is None or None in tuple(row)[:6] or not all(isfinite(each) for each in row[2:6]):
                continue
            if not known or known[-1].time < row[1]:  # bars shorter than a second cannot be told apart here
                known.append(Bar(row[1], row[2], row[3], row[4], row[5], row[6] or 0.0, (row[0], row[1]) in corrected))
        yield Level(relation.name, relation.name, {name: tuple(each) for name, each in bars.items()})


def _corrected(database: Database, relation: Relation, key: str, time: str) -> set[tuple[Any, int]]:
    """The bars that have changed after later ones were there already, by more than trades are usually late."""
    oldest = database.sql("SELECT epoch FROM stepwell.epochs").collect()
    if not oldest:
        return set()
    query = (
        f"SELECT {key} AS k, unix_seconds(CAST({quote(time)} AS TIMESTAMP)) AS t, _diff, _epoch"
        f" FROM changes({quote(relation.name)}, {oldest[0][0]}) ORDER BY _epoch"
    )
    newest: int | None = None
    seen, found, epoch = 0, set(), None
    for name, at, diff, number in (tuple(row) for row in database.sql(query).collect()):
        if number != epoch:
            newest, epoch = seen or None, number
        seen = max(seen, at)
        if diff < 0 and newest is not None and at < newest - 5:
            found.add((name, at))
    return found


def _nodes(database: Database, relations: Sequence[Relation]) -> Iterator[ReportNode]:
    marks = {row[0]: row for row in database.sql("SHOW WATERMARKS").collect()}
    states = {row[0]: row[3] for row in database.sql("SELECT * FROM stepwell.views").collect()}
    stored = {row[0]: row for row in database.sql("SELECT name, rows, behind FROM stepwell.tables").collect()}
    parents: dict[str, list[str]] = {}
    for row in database.sql("SELECT name, parent FROM stepwell.dependencies").collect():
        parents.setdefault(row[0], []).append(row[1])
    rules: dict[str, Counter[str]] = {}
    for row in database.sql("SELECT name, rule FROM stepwell.refreshes").collect():
        rules.setdefault(row[0], Counter())[row[1]] += 1
    rows, late = _first_rows(database, relations), _late_rows(database)
    costs: dict[str, list[tuple[int, float, int]]] = {}
    for row in database.sql("SELECT epoch, name, microseconds, rows_in FROM stepwell.refreshes").collect():
        costs.setdefault(row[1], []).append((row[0], row[2] / 1000, row[3]))
    ahead = max((row[4] for row in marks.values() if row[4] is not None), default=None)
    for relation in relations:
        mark = marks.get(relation.name)
        lag = None
        if mark is not None and mark[4] is not None and ahead is not None and "infinity" not in mark[3]:
            lag = str(timedelta(seconds=(ahead - mark[4]) // 1_000_000))
        yield ReportNode(
            relation.name,
            relation.kind.value,
            states.get(relation.name),
            relation.time_column,
            mark[3] if mark else None,
            lag,
            stored[relation.name][1] if relation.name in stored else None,
            tuple(f"{rule} ({times}x)" for rule, times in rules.get(relation.name, Counter()).most_common()),
            tuple(parents.get(relation.name, ())),
            stored[relation.name][2] if relation.name in stored else None,
            relation.view.text if relation.definition.view is not None else None,
            tuple((column.name, str(column.type)) for column in relation.columns),
            tuple(rows.get(relation.name, ())),
            tuple(costs.get(relation.name, ())[-EPOCHS:]),
            late.get(relation.name, 0) if _can_be_late(relation) else None,
            tuple(_lineage(database, relation)),
        )


def _first_rows(database: Database, relations: Sequence[Relation]) -> dict[str, list[tuple[str, ...]]]:
    """A few rows of each relation, by one query."""
    parts = []
    for number, relation in enumerate(relations):
        values = ", ".join(f"CAST({quote(column.name)} AS STRING)" for column in relation.columns)
        some = f"(SELECT * FROM {quote(relation.name)} LIMIT {ROWS})"
        parts.append(f"SELECT {number} AS relation, array({values}) AS shown FROM {some}")
    found: dict[str, list[tuple[str, ...]]] = {}
    if parts:
        for number, shown in (tuple(row) for row in database.sql(" UNION ALL ".join(parts)).collect()):
            texts = tuple("NULL" if value is None else str(value)[:LONGEST] for value in shown)
            found.setdefault(relations[number].name, []).append(texts)
    return found


def _late_rows(database: Database) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, inserted, retracted in (
        tuple(row)
        for row in database.sql("SELECT name, rows_inserted, rows_retracted FROM stepwell.late_rows").collect()
    ):
        counts[name] += inserted + retracted
    return counts


def _can_be_late(relation: Relation) -> bool:
    return relation.definition.view is not None and relation.view.emission.tolerance is not None


def _lineage(database: Database, relation: Relation) -> Iterator[str]:
    if relation.definition.view is not None:
        for row in database.sql(f"SHOW LINEAGE FOR {quote(relation.name)}").collect():
            yield str(row["path"])


def _epochs(database: Database) -> Iterator[ReportEpoch]:
    work: dict[int, tuple[int, set[str]]] = {}
    for number, name, jobs in (
        tuple(row) for row in database.sql("SELECT epoch, name, jobs FROM stepwell.refreshes").collect()
    ):
        known = work.get(number, (0, set()))
        work[number] = known[0] + jobs, known[1] | {name}
    query = "SELECT epoch, readable_at, rows_inserted, rows_retracted, microseconds FROM stepwell.epochs"
    for number, at, inserted, retracted, took in [tuple(row) for row in database.sql(query).collect()][-EPOCHS:]:
        jobs, names = work.get(number, (0, set()))
        yield ReportEpoch(number, f"{at:%H:%M:%S}", inserted, retracted, jobs, (took or 0) / 1000, len(names))

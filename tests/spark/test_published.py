"""What outside readers see: every kind of view, after every kind of change, by plain deltalake, Polars and DuckDB."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

import stepwell
from limited import limit
from stepwell.cli import main
from stepwell.model.types import quote
from views import answer

SCRIPT = """
CREATE TABLE orders (id INT PRIMARY KEY, shop STRING, amount INT, at TIMESTAMP, tags ARRAY<STRING>,
                     WATERMARK FOR at AS at - INTERVAL 1 MINUTE);
CREATE TABLE shops (shop STRING, city STRING);
CREATE TABLE log (line STRING);
CREATE MATERIALIZED VIEW large AS SELECT id, amount FROM orders WHERE amount >= 3;
CREATE MATERIALIZED VIEW tagged AS SELECT id, explode(tags) AS tag FROM orders;
CREATE MATERIALIZED VIEW placed AS SELECT o.id, s.city FROM orders AS o LEFT JOIN shops AS s ON o.shop = s.shop;
CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total, avg(amount) AS mean FROM orders GROUP BY shop;
CREATE MATERIALIZED VIEW over_totals AS SELECT max(total) AS most FROM totals;
CREATE MATERIALIZED VIEW kinds AS SELECT shop, count(DISTINCT amount) AS n FROM orders GROUP BY shop;
CREATE MATERIALIZED VIEW ranked AS
  SELECT id, row_number() OVER (PARTITION BY shop ORDER BY amount DESC, id) AS place FROM orders;
CREATE MATERIALIZED VIEW best AS SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 2;
CREATE MATERIALIZED VIEW amounts AS SELECT amount FROM orders UNION SELECT -1;
CREATE MATERIALIZED VIEW busy AS SELECT shop, count(*) AS n FROM orders GROUP BY shop HAVING count(*) > 2;
CREATE MATERIALIZED VIEW minutes AS SELECT window(at, '1 minute').start AS minute, count(*) AS n FROM orders
  GROUP BY window(at, '1 minute') EMIT ON WINDOW CLOSE;
CREATE MATERIALIZED VIEW sometimes AS SELECT shop, count(*) AS n FROM orders GROUP BY shop
  EMIT PERIODICALLY INTERVAL '1 hour';
CREATE MATERIALIZED VIEW prompt AS SELECT window(at, '1 minute').start AS minute, sum(amount) AS total FROM orders
  GROUP BY window(at, '1 minute') ALLOW LATENESS INTERVAL 0 SECONDS
"""


def order(id_: int, minute: int, amount: int) -> str:
    return f"({id_}, 'shop{id_ % 2}', {amount}, TIMESTAMP '2024-05-01 10:{minute:02}:00', array('a', 'b{id_ % 3}'))"


CHANGES = {
    "insert": f"INSERT INTO orders VALUES {', '.join(order(each, each, each) for each in range(6))};"
    " INSERT INTO shops VALUES ('shop0', 'Oslo')",
    "late row": f"INSERT INTO orders VALUES {order(20, 20, 9)}, {order(30, 1, 7)}; INSERT INTO log VALUES ('a'), ('a')",
    "update": "UPDATE orders SET amount = 2 WHERE id IN (4, 5); UPDATE shops SET city = 'Bergen'",
    "late row after it was closed": f"INSERT INTO orders VALUES {order(40, 2, 8)}",
    "delete and upsert": f"""BEGIN; DELETE FROM orders WHERE id = 20 OR amount = 0;
        INSERT INTO orders VALUES {order(1, 2, 50)}, {order(31, 31, 1)}; COMMIT""",
    "rename and more columns": "ALTER MATERIALIZED VIEW best RENAME TO dearest; ALTER TABLE log RENAME TO lines;"
    " ALTER TABLE shops ADD COLUMN since INT; INSERT INTO shops VALUES ('shop1', 'Rome', 1990)",
    "replace": "CREATE OR REPLACE MATERIALIZED VIEW large AS SELECT shop, id FROM orders WHERE amount >= 2;"
    " CREATE OR REPLACE MATERIALIZED VIEW kinds AS SELECT shop, string(count(DISTINCT amount)) AS n FROM orders GROUP BY shop",
    "compaction": "OPTIMIZE ranked; OPTIMIZE orders; OPTIMIZE totals",
    "emission": "FLUSH",
    "truncate": "TRUNCATE TABLE orders",
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published") / "warehouse"


@pytest.fixture(scope="module")
def db(warehouse: Path) -> Iterator[stepwell.Database]:
    with stepwell.connect(warehouse) as database:
        database.sql(SCRIPT)
        yield database


def shown(value: Any) -> str | None:
    """A value as Spark writes it."""
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return None if value is None else str(value)


def read_by_deltalake(path: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    found = DeltaTable(path).to_pyarrow_table()
    return found.column_names, [tuple(row.values()) for row in found.to_pylist()]


def read_by_polars(path: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    found = polars.read_delta(path)
    return found.columns, found.rows()


def read_by_duckdb(path: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    found = duckdb.from_arrow(DeltaTable(path).to_pyarrow_dataset())
    return found.columns, found.fetchall()


def contents(db: stepwell.Database) -> dict[str, tuple[list[str], Counter[tuple[str | None, ...]]]]:
    """What stepwell itself shows of every relation, by one query."""
    parts, columns = [], {}
    for relation in db.relations():
        names = [column.name for column in relation.columns]
        texts = ", ".join(f"CAST({quote(name)} AS STRING)" for name in names)
        parts.append(f"SELECT '{relation.name}', array({texts}) FROM {quote(relation.name)}")
        columns[relation.name] = names
    found: dict[str, Counter[tuple[str | None, ...]]] = {name: Counter() for name in columns}
    for name, values in answer(db, " UNION ALL ".join(parts)):
        found[name][tuple(values)] += 1
    return {name: (columns[name], found[name]) for name in columns}


def wrong_tables(db: stepwell.Database, warehouse: Path) -> list[str]:
    """The relations that an outside reader sees otherwise than stepwell shows them."""
    paths = dict(answer(db, "SELECT name, path FROM stepwell.tables"))
    wrong = []
    for name, (columns, rows) in contents(db).items():
        assert (warehouse / "published" / name).samefile(paths[name])
        for read in (read_by_deltalake, read_by_polars, read_by_duckdb):
            names, found = read(str(warehouse / "published" / name))
            if names != columns or Counter(tuple(map(shown, row)) for row in found) != rows:
                wrong.append(f"{name} by {read.__name__}: {names} {found}, but {dict(rows)}")
    return wrong


@pytest.mark.parametrize("change", CHANGES)
def test_after_every_change_outside_readers_see_every_view_as_stepwell_does(
    db: stepwell.Database, warehouse: Path, change: str
) -> None:
    db.sql(CHANGES[change])
    assert wrong_tables(db, warehouse) == []
    assert set(answer(db, "SELECT behind FROM stepwell.tables")) == {(0,)}
    assert {each.name for each in (warehouse / "published").iterdir()} == {each.name for each in db.relations()}


def test_what_is_too_much_for_an_epoch_lags_says_so_and_is_published_beside_it(
    db: stepwell.Database, warehouse: Path
) -> None:
    db.sql("SET publish_lag = '1 day'")
    limit(db, copied_rows=0)
    db.sql(f"INSERT INTO orders VALUES {order(1, 40, 1)}, {order(2, 41, 2)}, {order(3, 42, 3)}")
    db.sql("UPDATE orders SET amount = amount + 1 WHERE id < 3")
    late = dict(answer(db, "SELECT name, behind FROM stepwell.tables"))
    assert late["ranked"] >= 1
    assert late["lines"] == 0, "it has not changed"
    assert wrong_tables(db, warehouse) != []
    said = CliRunner().invoke(main, ["path", "RANKED", "-w", str(warehouse)])
    assert said.stdout.strip() == dict(answer(db, "SELECT name, path FROM stepwell.tables"))["ranked"]
    assert "behind; FLUSH PUBLISH" in said.stderr
    assert (
        f"delta      ranked: {late['ranked']} epoch"
        in CliRunner().invoke(main, ["status", "-w", str(warehouse)]).stdout
    )
    assert "its Delta table is" in CliRunner().invoke(main, ["doctor", "-w", str(warehouse)]).stdout
    db.sql("FLUSH ranked PUBLISH")
    behind = dict(answer(db, "SELECT name, behind FROM stepwell.tables"))
    assert behind["ranked"] == 0
    assert behind["totals"] > 0
    db.sql("SET publish_lag = '0 seconds'")
    until = time.monotonic() + 120
    while any(answer(db, "SELECT behind FROM stepwell.tables WHERE behind > 0")) and time.monotonic() < until:
        time.sleep(0.2)
    assert wrong_tables(db, warehouse) == [], db.notes


def test_closing_leaves_nothing_behind(db: stepwell.Database, warehouse: Path) -> None:
    db.sql("SET publish_lag = '1 day'")
    db.sql("UPDATE orders SET amount = 77 WHERE id = 3")
    expected = contents(db)
    assert dict(answer(db, "SELECT name, behind FROM stepwell.tables"))["orders"] > 0
    db.close()
    for name, (_, rows) in expected.items():
        _, found = read_by_deltalake(str(warehouse / "published" / name))
        assert Counter(tuple(map(shown, row)) for row in found) == rows, name


def test_a_name_that_is_not_there_has_no_path(warehouse: Path) -> None:
    said = CliRunner().invoke(main, ["path", "rankd", "-w", str(warehouse)])
    assert said.exit_code == 1
    assert 'Did you mean "ranked"?' in said.stderr

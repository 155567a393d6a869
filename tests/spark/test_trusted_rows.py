"""Numbers that order statistics get wrong: NaN is greater than every number, and −0.0 equals 0.0, in files too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stepwell
from stepwell.model.limits import Limits
from stepwell.storage import leaves, parquet
from views import answer

NAN, ZERO = float("nan"), -0.0
ROWS = [(1, 1.0), (2, NAN), (3, ZERO), (4, 9.0), (5, 0.0), (6, None)]
COLUMNS = "id INT, x DOUBLE, y FLOAT, s STRUCT<x: DOUBLE>, a ARRAY<FLOAT>, m MAP<STRING, STRUCT<x: DOUBLE>>"


@pytest.fixture(params=["driver", "spark", "driver, as it used to"])
def filled(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A table whose files were written by the driver, by Spark, or with all statistics there are."""
    limits = Limits(small_result_bytes=-2) if request.param == "spark" else None
    if "used to" in request.param:
        monkeypatch.setattr(parquet, "leaves", lambda schema: ((path, False) for path, _ in leaves(schema)))
    with stepwell.connect(tmp_path / "w", _limits=limits) as db:
        db.sql(f"CREATE TABLE t ({COLUMNS})")
        for part in (ROWS[:4], ROWS[4:]):
            db.insert("t", [(id_, x, x, {"x": x}, [x], {"k": {"x": x}}) for id_, x in part])
        yield db


def ids(db: stepwell.Database, text: str) -> list[int]:
    return sorted(row[0] for row in answer(db, text))


CONDITIONS = [
    ("{} > 100", [2]),
    ("{} = 0", [3, 5]),
    ("{} = -0.0D", [3, 5]),
    ("{} IN (0, 9)", [3, 4, 5]),
    ("{} >= 0 AND {} <= 0", [3, 5]),
    ("{} = CAST('NaN' AS DOUBLE)", [2]),
    ("NOT ({} <= 9)", [2]),
    ("{} IS NULL", [6]),
]


def test_filters_find_nan_and_negative_zero(filled: stepwell.Database) -> None:
    for when in ("as inserted", "after OPTIMIZE"):
        for text, want in CONDITIONS:
            for column in ("x", "y", "s.x"):
                condition = text.replace("{}", column)
                assert ids(filled, f"SELECT id FROM t WHERE {condition}") == want, (condition, when)
        filled.sql("OPTIMIZE t")


def test_views_and_changes_find_them_too(filled: stepwell.Database) -> None:
    filled.sql("CREATE MATERIALIZED VIEW large AS SELECT id FROM t WHERE x > 5")
    filled.sql("CREATE MATERIALIZED VIEW zeros AS SELECT id FROM t WHERE s.x = 0")
    assert ids(filled, "SELECT id FROM large") == [2, 4]
    assert ids(filled, "SELECT id FROM zeros") == [3, 5]
    filled.sql("UPDATE t SET y = 7 WHERE x = 0")
    assert ids(filled, "SELECT id FROM t WHERE y = 7") == [3, 5]
    filled.sql("DELETE FROM t WHERE y > 100")
    assert ids(filled, "SELECT id FROM t") == [1, 3, 4, 5, 6]
    assert ids(filled, "SELECT id FROM large") == [4]


def test_a_number_comes_back_as_it_was_written(filled: stepwell.Database) -> None:
    found = dict(answer(filled, "SELECT id, concat_ws(' ', CAST(x AS STRING), CAST(y AS STRING)) FROM t"))
    assert found == {1: "1.0 1.0", 2: "NaN NaN", 3: "-0.0 -0.0", 4: "9.0 9.0", 5: "0.0 0.0", 6: ""}


@pytest.mark.parametrize("writer", ["driver", "spark"])
def test_floats_have_no_statistics_dictionary_or_bloom_filter(tmp_path: Path, writer: str) -> None:
    limits = Limits(small_result_bytes=-2) if writer == "spark" else None
    with stepwell.connect(tmp_path / "w", _limits=limits) as db:
        db.sql(f"CREATE TABLE t ({COLUMNS}, PRIMARY KEY (id))")
        db.insert("t", [(id_, 1.0, 1.0, {"x": 1.0}, [1.0], {"k": {"x": 1.0}}) for id_ in range(1000)])
    (file,) = (tmp_path / "w" / "data" / "1" / "rows").rglob("*.parquet")
    group = pq.read_metadata(file).row_group(0)
    floats = set()
    for column in (group.column(index) for index in range(group.num_columns)):
        if column.physical_type in ("FLOAT", "DOUBLE"):
            floats.add(column.path_in_schema)
            assert not column.has_dictionary_page
            assert column.statistics is None or not column.statistics.has_min_max
        elif "." not in column.path_in_schema:
            assert column.statistics.has_min_max, column.path_in_schema
    assert floats == {"x", "y", "s.x", "a.list.element", "m.key_value.value.x"}


def test_leaves_are_named_as_parquet_names_them(tmp_path: Path) -> None:
    deep = pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.float64()), ("l", pa.list_(pa.list_(pa.float32())))])))
    schema = pa.schema([("a", pa.int32()), ("deep", deep), ("s", pa.struct([("t", pa.struct([("u", pa.float32())]))]))])
    pq.write_table(schema.empty_table(), tmp_path / "f.parquet")
    footer = pq.read_metadata(tmp_path / "f.parquet").schema
    written = [footer.column(index) for index in range(len(footer))]
    assert list(leaves(schema)) == [(each.path, each.physical_type in ("FLOAT", "DOUBLE")) for each in written]

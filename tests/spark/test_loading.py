"""Files into tables: in their order, once for a label, and with errors that name the line."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import stepwell
from stepwell.model.errors import BadLineError, LabelError, StepwellError
from stepwell.model.files import ROW_ID
from views import answer

RUNS = 8


def csv_file(path: Path, rows: list[tuple[Any, ...]], head: str = "k,v") -> None:
    path.write_text(head + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))


def arrived(db: stepwell.Database, table: str) -> list[tuple[Any, ...]]:
    """All rows in the order of their numbers, read from the files themselves; the numbers are told apart."""
    [number] = [id_ for name, id_ in answer(db, "SELECT name, id FROM stepwell.tables") if name == table]
    files = sorted((Path(db._runtime.warehouse.root) / f"data/{number}/rows").rglob("*.parquet"))
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    rows.sort(key=lambda row: row[ROW_ID])
    assert len({row[ROW_ID] for row in rows}) == len(rows)
    return [tuple(value for name, value in row.items() if not name.startswith("_")) for row in rows]


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_rows_arrive_in_the_order_of_files_and_of_rows_in_them(
    db: stepwell.Database, tmp_path: Path, format_: str, record_property: Any
) -> None:
    """Whatever the number and sizes of the files, and however Spark cuts and packs them."""
    ran = 0

    @settings(max_examples=RUNS, phases=[Phase.generate])
    @given(
        st.lists(st.integers(0, 40), min_size=1, max_size=24),
        st.sampled_from(["134217728", "64", "300"]),
    )
    def check(sizes: list[int], split: str) -> None:
        nonlocal ran
        ran += 1
        folder = tmp_path / f"{format_}{ran}"
        folder.mkdir()
        expected = []
        for number, size in enumerate(sizes):
            rows = [(number * 1000 + index, f"row {index} of {number}") for index in range(size)]
            expected += rows
            path = folder / f"{number:03}.{format_}"
            if format_ == "parquet":
                table = pa.table({"k": pa.array([row[0] for row in rows], pa.int64()), "v": [row[1] for row in rows]})
                pq.write_table(table.cast(pa.schema([("k", pa.int64()), ("v", pa.string())])), path, row_group_size=7)
            elif format_ == "csv":
                csv_file(path, rows, "k,v" if number % 2 else "k,v ".strip())
            else:
                path.write_text("".join(json.dumps({"v": value, "k": key}) + "\n" for key, value in rows))
        table_name = f"t{ran}"
        db.sql(f"CREATE TABLE {table_name} (k BIGINT, v STRING)")
        db.spark.conf.set("spark.sql.files.maxPartitionBytes", split)
        try:
            [(inserted, _, _, files, skipped)] = answer(db, f"COPY {table_name} FROM '{folder}'")
        finally:
            db.spark.conf.unset("spark.sql.files.maxPartitionBytes")
        assert (inserted, files, skipped) == (len(expected), len(sizes), 0)
        assert arrived(db, table_name) == expected

    check()
    record_property(f"{format_} files loaded in order, examples", ran)
    assert ran >= RUNS


def test_the_last_row_of_a_key_wins_across_files(db: stepwell.Database, tmp_path: Path) -> None:
    for number in range(20):  # more than are read one by one
        csv_file(tmp_path / f"{number:02}.csv", [(1, f"a{number}"), (number + 10, "x"), (1, f"b{number}")])
    db.sql("CREATE TABLE keyed (k INT PRIMARY KEY, v STRING)")
    db.sql(f"COPY keyed FROM '{tmp_path}/*.csv'")
    assert answer(db, "SELECT v FROM keyed WHERE k = 1") == [("b19",)]
    assert answer(db, "SELECT count(*) FROM keyed") == [(21,)]
    db.sql(f"COPY keyed FROM '{tmp_path}/03.csv'")
    assert answer(db, "SELECT v FROM keyed WHERE k = 1") == [("b3",)]


def test_many_files_of_several_shapes_keep_their_order_and_name_their_lines(
    db: stepwell.Database, tmp_path: Path
) -> None:
    """Some shapes have one file, some a few, some many: each is read its own way."""
    for number in range(24):
        if number in (3, 9):
            csv_file(tmp_path / f"{number:02}.csv", [(f"x{number}", number)], "v,k")
        elif number == 5:
            csv_file(tmp_path / f"{number:02}.csv", [(number,)], "k")
        else:
            csv_file(tmp_path / f"{number:02}.csv", [(number, f"x{number}")])
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    db.sql(f"COPY t FROM '{tmp_path}/*.csv'")
    assert arrived(db, "t") == [(number, None if number == 5 else f"x{number}") for number in range(24)]
    (tmp_path / "09.csv").write_text("v,k\nx9,9\nx,nine\n")
    with pytest.raises(BadLineError, match=r'line 3 of ".*/09.csv"'):
        db.sql(f"COPY t FROM '{tmp_path}/*.csv'")


def test_a_seeded_disorder_would_be_seen(
    db: stepwell.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of the order fails if files are not put in order."""
    from stepwell.engine.write import loading

    monkeypatch.setattr(loading.Loading, "_in_order", lambda self, rows: rows.orderBy("v"))
    for number in range(20):
        csv_file(tmp_path / f"{number:02}.csv", [(number * 2 + index, f"{99 - number}") for index in range(2)])
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    db.sql(f"COPY t FROM '{tmp_path}/*.csv'")
    assert [row[0] for row in arrived(db, "t")] != list(range(40))


def test_a_bad_line_is_named_and_nothing_is_loaded(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    csv_file(tmp_path / "a.csv", [(1, "a")])
    (tmp_path / "b.csv").write_text("k,v\n1,a\n\n2,b\nthree,c\n4\n")
    with pytest.raises(BadLineError) as caught:
        db.sql(f"COPY t FROM '{tmp_path}/a.csv', '{tmp_path}/b.csv'")
    assert f'line 5 of "{tmp_path}/b.csv"' in str(caught.value)
    assert "three,c" in str(caught.value)
    (tmp_path / "b.csv").write_text("k,v\n1,a\n4,5,6\n")
    with pytest.raises(BadLineError, match="It has 3 values, and there are 2 columns"):
        db.sql(f"COPY t FROM '{tmp_path}/b.csv'")
    (tmp_path / "c.json").write_text('{"k": 1}\n{"k": "x"}\n')
    with pytest.raises(BadLineError, match=r'line 2 of ".*c.json"'):
        db.sql(f"COPY t FROM '{tmp_path}/c.json'")
    assert answer(db, "SELECT count(*) FROM t") == [(0,)]
    assert not list((tmp_path / "warehouse/data/1/rows").rglob("*.parquet"))


def test_bad_lines_can_be_left_out_and_are_counted(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    for number in range(18):
        (tmp_path / f"{number:02}.csv").write_text(f"k,v\n{number},a\nx,b\n{number},c,d\n")
    [(inserted, retracted, _, files, skipped)] = answer(db, f"COPY t FROM '{tmp_path}/*.csv' (ON_ERROR skip)")
    assert (inserted, retracted, files, skipped) == (18, 0, 18, 36)
    result = db.sql(f"COPY t FROM '{tmp_path}/00.csv' (ON_ERROR skip)")
    assert isinstance(result, stepwell.Rows)
    assert result.notes == ["left out 2 lines that could not be read"]


def test_a_label_loads_once(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING); CREATE TABLE u (k BIGINT, v STRING)")
    csv_file(tmp_path / "a.csv", [(1, "a"), (2, "b")])
    csv_file(tmp_path / "b.csv", [(3, "c")])
    copy = f"COPY t FROM '{tmp_path}/a.csv' WITH (label = 'load-7')"
    assert answer(db, copy)[0][0] == 2
    again = db.sql(copy)
    assert isinstance(again, stepwell.Rows)
    assert again.tuples()[0][:3] == (0, 0, None)
    assert "is there already" in again.notes[0]
    with pytest.raises(LabelError, match="other files"):
        db.sql(f"COPY t FROM '{tmp_path}/b.csv' WITH (label = 'load-7')")
    with pytest.raises(LabelError, match="another table"):
        db.sql(f"COPY u FROM '{tmp_path}/a.csv' WITH (label = 'load-7')")
    (tmp_path / "a.csv").write_text("k,v\n1,a\n2,b\n9,z\n")  # another file under the same name
    with pytest.raises(LabelError):
        db.sql(copy)
    (tmp_path / "none.csv").write_text("k,v\n")
    empty = f"COPY t FROM '{tmp_path}/none.csv' (LABEL 'empty')"
    db.sql(empty)
    assert "is there already" in db.sql(empty).notes[0]
    assert answer(db, "SELECT label, name, files, rows FROM stepwell.loads") == [
        ("load-7", "t", 1, 2),
        ("empty", "t", 1, 0),
    ]
    assert answer(db, "SELECT count(*) FROM t") == [(2,)]


def test_a_label_in_a_transaction_is_there_if_the_transaction_is(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    csv_file(tmp_path / "a.csv", [(1, "a")])
    copy = f"COPY t FROM '{tmp_path}/a.csv' (LABEL 'x')"
    db.sql(f"BEGIN; {copy}; ROLLBACK")
    assert answer(db, "SELECT * FROM stepwell.loads") == []
    db.sql(f"BEGIN; {copy}")
    with pytest.raises(LabelError, match="in this transaction already"):
        db.sql(copy)
    db.sql("COMMIT")
    assert answer(db, "SELECT label, rows FROM stepwell.loads") == [("x", 1)]
    assert answer(db, "SELECT count(*) FROM t") == [(1,)]


def test_of_many_who_load_under_one_label_one_does(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    csv_file(tmp_path / "a.csv", [(1, "a"), (2, "b")])
    counts: list[int] = []

    def load() -> None:
        with stepwell.connect(tmp_path / "warehouse") as other:
            counts.append(answer(other, f"COPY t FROM '{tmp_path}/a.csv' (LABEL 'same')")[0][0])

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counts) == [0, 0, 0, 2]
    assert answer(db, "SELECT count(*) FROM t") == [(2,)]


def test_parquet_columns_go_by_name(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING, d DOUBLE)")
    pq.write_table(pa.table({"V": ["a"], "k": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": pa.array([2], pa.int64()), "d": [0.5]}), tmp_path / "b.parquet")
    written = db.insert_parquet("t", [tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert written.tuples()[0][0] == 2
    assert arrived(db, "t") == [(1, "a", None), (2, None, 0.5)]
    assert (tmp_path / "a.parquet").exists()
    pq.write_table(pa.table({"k": [1], "w": [2]}), tmp_path / "c.parquet")
    with pytest.raises(StepwellError, match='column "w" does not exist') as caught:
        db.insert_parquet("t", tmp_path / "c.parquet")
    assert "c.parquet" in str(caught.value)
    db.sql(f"COPY t (k) FROM '{tmp_path}/c.parquet'")
    pq.write_table(pa.table({"k": [1.5]}), tmp_path / "d.parquet")
    db.sql("CREATE TABLE small (k TINYINT NOT NULL)")
    pq.write_table(pa.table({"k": [1000]}), tmp_path / "e.parquet")
    pq.write_table(pa.table({"k": pa.array([None], pa.int8())}), tmp_path / "f.parquet")
    for name in ("e", "f"):
        with pytest.raises(StepwellError):
            db.insert_parquet("small", tmp_path / f"{name}.parquet")
    assert answer(db, "SELECT count(*) FROM small") == [(0,)]


def test_csv_as_others_write_it(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (a INT, b STRING, c TIMESTAMP, d BOOLEAN, e DECIMAL(10, 2))")
    (tmp_path / "a.csv").write_text('7;"say ""hi""; all";2026-01-02 03:04:05.5;true;1.25\n;"";-;;\n')
    db.sql(f"COPY t FROM '{tmp_path}/a.csv' (HEADER false, DELIMITER ';', NULL '-')")
    assert answer(db, "SELECT a, b, CAST(c AS STRING), d, e FROM t WHERE a = 7")[0][:3] == (
        7, 'say "hi"; all', "2026-01-02 03:04:05.5",
    )  # fmt: skip
    with gzip.open(tmp_path / "b.csv.gz", "wt") as stream:
        stream.write("b,a\n" + "".join(f"x,{number}\n" for number in range(100)))
    assert answer(db, f"COPY t FROM '{tmp_path}/b.csv.gz'")[0][0] == 100
    (tmp_path / "c.csv").write_text('a,b\n1,"two\nlines"\n')
    db.sql(f"COPY t FROM '{tmp_path}/c.csv' (MULTILINE)")
    assert answer(db, "SELECT b FROM t WHERE b LIKE 'two%'") == [("two\nlines",)]


def test_names_with_signs_that_mean_something_elsewhere(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    folder = tmp_path / "some files"
    folder.mkdir()
    for name in ("a b.csv", "50%20.csv", "[x]{y}.csv", "ü+&#.csv"):
        csv_file(folder / name, [(1, "a")])
    for number in range(20):
        csv_file(folder / f"many %{number:02}.csv", [(number, "m")])
    assert answer(db, f"COPY t FROM '{folder}'")[0][0] == 24
    assert [row[0] for row in arrived(db, "t") if row[1] == "m"] == list(range(20))


BAD = [
    ("COPY t FROM '{0}/none.csv'", "there is no file"),
    ("COPY t FROM '{0}/*.xyz' (FORMAT csv)", "there is no file"),
    ("COPY t FROM '{0}/a.txt'", "is not told by its name"),
    ("COPY t FROM '{0}/a.txt' (FORMAT parquet)", "is no Parquet file"),
    ("COPY t FROM '{0}/a.csv', '{0}/a.csv'", "is named twice"),
    ("COPY t FROM '{0}/a.csv', '{0}/a.parquet'", "of several formats"),
    ("COPY t FROM '{0}/other.csv'", 'column "w" does not exist'),
    ("COPY t (w) FROM '{0}/a.csv'", 'column "w" does not exist'),
    ("COPY t (k, k) FROM '{0}/a.csv'", "twice"),
    ("COPY nothing FROM '{0}/a.csv'", 'relation "nothing" does not exist'),
    ("COPY mv FROM '{0}/a.csv'", "cannot be written"),
    ("COPY stepwell.tables FROM '{0}/a.csv'", "cannot be written"),
    ("COPY t FROM '{0}/a.parquet' (ON_ERROR skip)", "on_error is for lines of text"),
    ("COPY nested FROM '{0}/nested.csv'", "CSV cannot hold"),
    ("COPY t FROM '{0}/parts'", "partitioned by values"),
]


def test_bad_input_is_refused_and_changes_nothing(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING); CREATE TABLE nested (k ARRAY<INT>)")
    db.sql("CREATE MATERIALIZED VIEW mv AS SELECT k FROM t")
    csv_file(tmp_path / "a.csv", [(1, "a")])
    csv_file(tmp_path / "other.csv", [(1, "a")], "k,w")
    csv_file(tmp_path / "nested.csv", [(1,)], "k")
    (tmp_path / "a.txt").write_text("k\n1\n")
    pq.write_table(pa.table({"k": [1]}), tmp_path / "a.parquet")
    (tmp_path / "parts/k=1").mkdir(parents=True)
    csv_file(tmp_path / "parts/k=1/a.csv", [("a",)], "v")
    for text, message in BAD:
        with pytest.raises(StepwellError) as caught:
            db.sql(text.format(tmp_path))
        assert message in str(caught.value), text
    assert answer(db, "SELECT count(*) FROM t") == [(0,)]


def test_what_is_loaded_reaches_the_views(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    db.sql("CREATE MATERIALIZED VIEW counts AS SELECT v, count(*) AS n FROM t GROUP BY v")
    csv_file(tmp_path / "a.csv", [(1, "a"), (2, "a"), (3, "b")])
    db.sql(f"COPY t FROM '{tmp_path}/a.csv'")
    assert sorted(answer(db, "SELECT * FROM counts")) == [("a", 2), ("b", 1)]


def test_fields_of_json_are_matched_without_case(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    (tmp_path / "a.json").write_text('{"K": 1, "V": "a", "other": 2}\n{"K": 2}\n')
    db.sql(f"COPY t FROM '{tmp_path}/a.json'")
    assert arrived(db, "t") == [(1, "a"), (2, None)]


def test_cancelling_nothing_harms_nothing(db: stepwell.Database) -> None:
    db.sql("CREATE TABLE t (k BIGINT)")
    db.cancel()
    db.insert("t", [(1,)])
    db.cancel()
    assert db.flush() == db.epoch
    assert answer(db, "SELECT k FROM t") == [(1,)]


def test_cancel_stops_a_load_and_nothing_is_applied(db: stepwell.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (k BIGINT, v STRING)")
    caught: list[StepwellError] = []

    def run() -> None:
        try:
            db.sql(
                "INSERT INTO t SELECT a.id, b.id FROM range(1000000) a CROSS JOIN range(1000000) b WHERE a.id % 7 = b.id % 11"
            )
        except StepwellError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not db.progress.tasks:
        assert thread.is_alive()
    while thread.is_alive():
        db.cancel()
        thread.join(0.5)
    assert caught[0].sqlstate == "57014"
    assert answer(db, "SELECT count(*) FROM t") == [(0,)]

"""Random histories of changes against a plain Python model: every epoch, and the changes between any two."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame

import stepwell
from models import Model, Row, Table, Values, canonical
from stepwell.engine.write import upsert
from stepwell.model.epochs import Epoch
from stepwell.model.limits import Limits
from stepwell.storage import scans

EXAMPLES = 200 if os.environ.get("STEPWELL_TORTURE") else 8

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # to shrink a history takes minutes: raise it by hand

PLAIN = ("a", "b", "m", "ts")
KEYED = ("id", "b", "m")
DAY = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

values: dict[str, st.SearchStrategy[Any]] = {
    "a": st.integers(0, 3),
    "id": st.integers(0, 4),
    "b": st.sampled_from([0.0, -0.0, float("nan"), float("inf"), 1.5, None]),
    "m": st.sampled_from([None, {}, {"x": 1}, {"x": 1, "y": None}]),
    "ts": st.sampled_from([None, *(DAY + datetime.timedelta(hours=9 * hour) for hour in range(6))]),
}


def rows_of(columns: tuple[str, ...]) -> st.SearchStrategy[list[Values]]:
    return st.lists(st.fixed_dictionaries({column: values[column] for column in columns}), min_size=1, max_size=4)


@dataclass(frozen=True)
class Step:
    """One thing done to the database and to the model."""

    name: str
    table: str = ""
    rows: tuple[Any, ...] = ()
    number: int = 0


numbers = st.integers(0, 4)
steps = st.one_of(
    st.builds(lambda rows: Step("insert", "t", tuple(rows)), rows_of(PLAIN)),
    st.builds(lambda rows: Step("insert", "k", tuple(rows)), rows_of(KEYED)),
    st.builds(lambda rows: Step("merge", "k", tuple(rows)), rows_of(KEYED)),
    st.builds(lambda table, number: Step("update", table, number=number), st.sampled_from("tk"), numbers),
    st.builds(lambda table, number: Step("negate", table, number=number), st.sampled_from("tk"), numbers),
    st.builds(lambda table, number: Step("delete", table, number=number), st.sampled_from("tk"), numbers),
    st.builds(lambda table: Step("truncate", table), st.sampled_from("tk")),
    st.builds(lambda table: Step("optimize", table), st.sampled_from("tk")),
    st.sampled_from([Step("begin"), Step("commit"), Step("rollback"), Step("reopen"), Step("begin"), Step("commit")]),
)
histories = st.lists(steps, min_size=3, max_size=14)


class Run:
    """A history being played to a database and to the model at once."""

    def __init__(self, warehouse: str, limits: Limits | None = None) -> None:
        self.warehouse = warehouse
        self.limits = limits
        self.db = stepwell.connect(warehouse, _limits=limits)
        self.db.sql(
            "CREATE TABLE t (a INT, b DOUBLE, m MAP<STRING, INT>, ts TIMESTAMP) CHUNK BY ts EVERY INTERVAL '1 day';"
            "CREATE TABLE k (id INT PRIMARY KEY, b DOUBLE, m MAP<STRING, INT>)"
        )
        self.model = Model({"t": Table(PLAIN, None), "k": Table(KEYED, "id")})
        self.saved: dict[str, Table] | None = None
        self.first = self.db.epoch

    def play(self, step: Step) -> None:
        before = self.db.epoch
        getattr(self, step.name)(step)
        for epoch in range(before + 1, self.db.epoch + 1):
            self.model.commit(epoch)

    def insert(self, step: Step) -> None:
        self.db.insert(step.table, [dict(row) for row in step.rows])
        self.model.tables[step.table].insert([dict(row) for row in step.rows])

    def merge(self, step: Step) -> None:
        rows = {row["id"]: row for row in step.rows}  # a source with one row a key
        frame = self.db.spark.createDataFrame(
            [(row["id"], row["b"], row["m"]) for row in rows.values()], "id INT, b DOUBLE, m MAP<STRING, INT>"
        )
        frame.createOrReplaceGlobalTempView("source_of_merge")
        self.db.sql(
            "MERGE INTO k USING global_temp.source_of_merge AS s ON k.id = s.id WHEN MATCHED AND s.id = 0 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT * "
            "WHEN NOT MATCHED BY SOURCE AND k.id = 4 THEN UPDATE SET m = NULL"
        )
        table = self.model.tables["k"]
        held = {row["id"] for row in table.rows.values()}
        table.update(lambda row: row["id"] not in rows and row["id"] == 4, lambda row: {"m": None})
        table.delete(lambda row: row["id"] in rows and row["id"] == 0)
        table.update(lambda row: row["id"] in rows, lambda row: {"b": rows[row["id"]]["b"]})
        table.insert([dict(row) for row in rows.values() if row["id"] not in held])

    def update(self, step: Step) -> None:
        column = "a" if step.table == "t" else "id"
        self.db.sql(f"UPDATE {step.table} SET m = map('u', {step.number}) WHERE {column} = {step.number}")
        self.model.tables[step.table].update(
            lambda row: bool(row[column] == step.number), lambda row: {"m": {"u": step.number}}
        )

    def negate(self, step: Step) -> None:
        column = "a" if step.table == "t" else "id"
        self.db.sql(f"UPDATE {step.table} AS x SET b = -x.b WHERE {column} >= {step.number}")
        self.model.tables[step.table].update(
            lambda row: bool(row[column] >= step.number), lambda row: {"b": None if row["b"] is None else -row["b"]}
        )

    def delete(self, step: Step) -> None:
        column = "a" if step.table == "t" else "id"
        self.db.sql(f"DELETE FROM {step.table} WHERE {column} IN (SELECT {step.number})")
        self.model.tables[step.table].delete(lambda row: bool(row[column] == step.number))

    def truncate(self, step: Step) -> None:
        self.db.sql(f"TRUNCATE TABLE {step.table}")
        self.model.tables[step.table].delete(lambda row: True)

    def begin(self, step: Step) -> None:
        if not self.db.in_transaction:
            self.db.sql("BEGIN")
            self.saved = self.model.save()

    def commit(self, step: Step) -> None:
        if self.db.in_transaction:
            self.db.sql("COMMIT")

    def rollback(self, step: Step) -> None:
        if self.db.in_transaction and self.saved is not None:
            self.db.sql("ROLLBACK")
            self.model.restore(self.saved)

    def optimize(self, step: Step) -> None:
        self.db.sql(f"OPTIMIZE {step.table}")

    def reopen(self, step: Step) -> None:
        if not self.db.in_transaction:
            self.db.close()
            self.db = stepwell.connect(self.warehouse, _limits=self.limits)

    def check(self) -> None:
        self.commit(Step("commit"))
        if self.db.epoch not in self.model.contents and self.db.epoch > self.first:
            self.model.commit(self.db.epoch)
        for name, table in self.model.tables.items():
            for epoch, contents in self.model.contents.items():
                assert rows_in(self.db.sql(f"SELECT * FROM {name} VERSION AS OF {epoch}"), table) == contents[name]
            found = changes_in(self.db.changes(name, after=self.first), table)
            expected = {
                (row, diff, epoch): count
                for epoch, changed in self.model.changes.items()
                for (row, diff), count in changed[name].items()
            }
            assert found == Counter(expected)
            self.check_published(name, table)

    def check_published(self, name: str, table: Table) -> None:
        """Plain Delta readers see exactly the content at the epoch that the last commit names."""
        shown = self.db.sql("SELECT name, id FROM stepwell.tables")
        assert isinstance(shown, stepwell.Rows)
        log = DeltaTable(f"{self.warehouse}/data/{dict(shown.tuples())[name]}/rows")
        epoch = int(next(entry["stepwell.epoch"] for entry in log.history() if "stepwell.epoch" in entry))
        read = log.to_pyarrow_table()
        assert tuple(read.column_names) == table.columns
        rows = Counter(
            tuple(canonical(dict(value) if isinstance(value, list) else value) for value in row.values())
            for row in read.to_pylist()
        )
        assert rows == self.model.contents.get(epoch, {}).get(name, Counter())


def rows_in(frame: DataFrame | stepwell.Rows, table: Table) -> Counter[Row]:
    assert tuple(frame.columns) == table.columns
    return Counter(tuple(canonical(_utc(value)) for value in row) for row in frame.collect())


def changes_in(frame: DataFrame, table: Table) -> Counter[tuple[Row, int, int]]:
    width = len(table.columns)
    return Counter(
        (tuple(canonical(_utc(value)) for value in row[:width]), row[width], row[width + 1]) for row in frame.collect()
    )


def _utc(value: Any) -> Any:
    return value.replace(tzinfo=datetime.UTC) if isinstance(value, datetime.datetime) else value


def play(history: list[Step], limits: Limits | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(f"{folder}/warehouse", limits)
        try:
            for step in history:
                run.play(step)
            run.check()
        finally:
            run.db.close()


_ran: Counter[str] = Counter()


@settings(max_examples=EXAMPLES, phases=PHASES)
@given(histories)
def test_the_tables_equal_the_model_at_every_epoch(history: list[Step]) -> None:
    _ran["by the driver"] += 1
    play(history)


@settings(max_examples=max(3, EXAMPLES // 4), phases=PHASES)
@given(histories)
def test_the_same_when_spark_writes_the_files(history: list[Step]) -> None:
    _ran["by Spark"] += 1
    play(history, Limits(small_result_bytes=-1))


def test_enough_histories_were_played(record_property: Callable[[str, object], None]) -> None:
    record_property("histories played", dict(_ran))
    assert _ran["by the driver"] >= EXAMPLES
    assert _ran["by Spark"] >= max(3, EXAMPLES // 4)


SEEDED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "retractions are ignored": lambda patch: patch.setattr(scans, "_RESOLVED", "-1L"),
    "a new row replaces nothing": lambda patch: patch.setattr(
        upsert, "upsert_delta", lambda relation, rows, existing: rows.withColumnRenamed("_sw_new", "_sw_id")
    ),
    "time travel sees the present": lambda patch: patch.setattr(
        "stepwell.engine.read.snapshots.content_at", _content_of_the_present
    ),
}


def _content_of_the_present(files: Any, epoch: Epoch) -> Any:
    from stepwell.plan import Content, content_at

    content = content_at(files, epoch)
    return Content(content.rows, content.changes, None)


@pytest.mark.parametrize("bug", SEEDED)
def test_a_seeded_bug_is_caught(bug: str) -> None:
    row = {"a": 1, "b": 1.5, "m": None, "ts": None}
    keyed = {"id": 1, "b": 1.5, "m": None}
    history = [
        *[Step("insert", "t", (row,)) for _ in range(9)],
        Step("insert", "k", (keyed,)),
        Step("insert", "k", ({**keyed, "b": 2.5},)),
        Step("update", "t", number=1),
        Step("delete", "k", number=1),
    ]
    play(history)
    with pytest.MonkeyPatch.context() as patch:
        SEEDED[bug](patch)
        with pytest.raises((AssertionError, stepwell.StepwellError)):
            play(history)

"""The database: one object that a program talks to."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from stepwell import engine
from stepwell.engine import SYSTEM_NAMESPACE, SYSTEM_TABLES, find_java, translated

from stepwell.engine import Damage, Onlooker, Progress, RunningStatement, Standing  # isort: skip
from stepwell.graph import DrawnRelation
from stepwell.model.clock import Clock
from stepwell.model.epochs import Epoch
from stepwell.model.errors import DatabaseClosedError, InvalidSettingError, SqlSyntaxError
from stepwell.model.functions import Function
from stepwell.model.limits import Limits
from stepwell.model.relations import Relation
from stepwell.model.rows import Rows
from stepwell.model.types import quote
from stepwell.plan.deployment import Deed, RunStep, not_in_file
from stepwell.sql import Arguments, Dialect, bind_arguments, parse, runs_of
from stepwell.sql.statements import CheckpointTo, RestoreFrom, ShowTables, Slice, Statement
from stepwell.storage import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = [
    "SYSTEM_NAMESPACE", "SYSTEM_TABLES", "Damage", "Database", "Deed", "Onlooker", "Progress", "RunStep",
    "RunningStatement", "Standing", "connect", "find_java", "look_at", "not_in_file", "translated",
]  # fmt: skip

_Called = TypeVar("_Called", bound="Callable[..., Any]")


class Database:
    """An open warehouse. Usable from several threads, but a transaction belongs to all of them together."""

    def __init__(self, runtime: engine.Runtime, dialect: Dialect = Dialect.SPARK) -> None:
        self._runtime = runtime
        self._dialect = dialect
        self._closed = False
        self._leader = engine.Leader(runtime)
        self._writer = engine.Writer(runtime, self._leader)
        self._leader.start_if_needed()

    def sql(self, text: str, args: Arguments | None = None) -> DataFrame | Rows:
        """Run the statements of `text`, one after the other, and answer with the result of the last.

        `args` are the values of its parameters: a dict for `:name`, a list for `?`; bound, never written into the text.
        Consecutive CREATEs are one step: all of them are there afterwards, or none, and one epoch builds them.
        """
        with self.statement() as statement:
            statements = self.parse(text)
            runs = runs_of(statements)
            if not runs:
                raise SqlSyntaxError("there is no statement in this text")
            statement.arguments = bind_arguments(statements, args)
            try:
                *before, last = runs
                for run in before:
                    self.execute(*run)
                return self.execute(*last)
            finally:
                statement.arguments = {}

    def table(self, name: str) -> DataFrame:
        """A table, view or system table as a Spark DataFrame, as it is at the newest readable epoch."""
        parts = ".".join(quote(part) for part in name.split("."))
        with translated(), self.statement():
            text = f"SELECT * FROM {parts}"
            return engine.answer_query(self._runtime, Slice(text, 0, len(text)), self._writer.snapshot)

    def parse(self, text: str) -> list[Statement]:
        """The statements of `text`, in the dialect that this database was opened with."""
        return parse(text, self._dialect)

    def execute(self, *run: Statement) -> DataFrame | Rows:
        """Run one parsed statement, or CREATEs that go together (`sql.runs_of`)."""
        word = run[0].slice.text.split(None, 1)[0].upper()
        with translated(), self.statement(), self._runtime.doing(f"running {word}"):
            self._runtime.require_wanted()
            return engine.run_together(self._runtime, self._writer, self._leader, run, self._dialect)

    def rehearse(self, statements: Sequence[Statement], folder: str = ".") -> list[RunStep]:
        """What a run of these statements would do, without doing it; the error of the first that would fail.

        Relative paths in COPY are looked up from `folder`.
        """
        with self.statement():
            return engine.rehearse(self._runtime, statements, folder)

    def lead(self) -> None:
        """See to it that somebody runs the barriers: this process, unless another does."""
        self._require_open()
        self._leader.ensure_led()

    def insert(self, table: str, data: Any, *, label: str | None = None) -> Rows:
        """Insert an Arrow table, a pandas or Spark DataFrame, or rows (tuples, dicts); columns match by name.

        With a `label` it happens once, however often it is asked for; the label with other rows is an error.
        """
        with engine.naming_relations(self._runtime), translated(), self.statement(), self._runtime.doing("inserting"):
            staging = engine.stage_data(self._runtime, table.removeprefix("main."), data, label)
            return engine.once(lambda: self._writer.write(staging), label, self._writer.staged_labels)

    def insert_stream(
        self,
        stream: DataFrame,
        table: str,
        *,
        name: str,
        every: str | None = None,
        checkpoint: str | None = None,
        once: bool = False,
    ) -> StreamingQuery:
        """Insert what a Spark stream brings (Kafka, files, rate), each micro-batch once whatever is killed when.

        Started again under the same `name`, it goes on where it was. `every` is how often it looks, such as
        "5 seconds"; with `once` it ends when all that is there was read. `checkpoint` is where Spark remembers what it
        has read, by default in the warehouse.
        """
        with translated(), self.statement():
            return engine.start_stream(
                self._runtime,
                stream,
                table.removeprefix("main."),
                lambda batch, label: self.insert(table, batch, label=label),
                name=name,
                every=every,
                checkpoint=checkpoint,
                once=once,
            )

    def insert_parquet(
        self, table: str, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, label: str | None = None
    ) -> Rows:
        """Insert the rows of Parquet files, in the order of the files and of the rows in them.

        A path is a file, a folder or a pattern. The files are read and left alone. With a `label` a load happens once,
        however often it is asked for.
        """
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        with engine.naming_relations(self._runtime), self.statement():
            return engine.copy_parquet(self._runtime, self._writer, table, given, label)

    def function(self, name: str, *, version: int, returns: str = "STRING") -> Callable[[_Called], _Called]:
        """Register a Python function, as a decorator; queries and views may call it by `name` from then on.

        It must give the same for the same values, always. A view is maintained with the version that it was created
        with, so whoever opens the warehouse registers that version again: here, or with `connect(functions=[…])`.
        """

        def register(call: _Called) -> _Called:
            self._require_open()
            engine.register_function(self._runtime, Function(name, version, call, returns))
            return call

        return register

    def changes(self, table: str, after: int, upto: int | None = None) -> DataFrame:
        """What the epochs (after, upto] did to a relation: its rows with `_diff` and `_epoch`."""
        with engine.naming_relations(self._runtime), self.statement():
            return engine.answer_changes(self._runtime, table, after, upto, self._writer.snapshot)

    def flush(self) -> Epoch:
        """Wait until everything written so far can be read; the epoch that can be read then."""
        with self.statement():
            self._leader.emit()
        return self.epoch

    def refresh(
        self, view: str, start: object = None, end: object = None, *, cascade: bool = False, force: bool = False
    ) -> Rows:
        """Bring a deferred view up to date, in the whole buckets from `start` to `end`, or everywhere behind its lag.

        With `cascade` the deferred views below it first; `force` computes also what no log calls stale.
        """
        with translated(), self.statement(), self._runtime.doing(f'refreshing "{view}"'):
            return engine.refresh_view(self._runtime, self._leader, view, (start, end), cascade=cascade, force=force)

    def checkpoint(self, path: str | os.PathLike[str]) -> Rows:
        """Copy the whole database, at the newest readable epoch, to a folder or URL; work goes on meanwhile."""
        return self._say(CheckpointTo(os.fspath(path)))

    def restore(self, path: str | os.PathLike[str], epoch: int | None = None) -> Rows:
        """Fill this warehouse, which must be empty, from the checkpoint of an epoch or the newest."""
        return self._say(RestoreFrom(os.fspath(path), epoch))

    def _say(self, body: CheckpointTo | RestoreFrom) -> Rows:
        text = type(body).__name__
        done = self.execute(Statement(body, Slice(text, 0, len(text))))
        assert isinstance(done, Rows)
        return done

    def advance_watermark(self, table: str, upto: object) -> list[str]:
        """Claim that no row of a table before `upto` is still to come: a datetime, or a number where time is one.

        Returns once the windows that this closes can be read: the views whose watermark has moved, parents before
        children. A watermark never moves back: that is said, and ignored.
        """
        with self.statement():
            epoch = engine.advance_watermark(self._runtime, table, upto)
            if epoch is None:
                return []
            self._leader.wait_written(epoch)
            return engine.moved_views(self._runtime, epoch)

    # -- statements in flight -----------------------------------------------------------------------------------------

    def statement(self) -> AbstractContextManager[RunningStatement]:
        """Make what this thread does inside the block one statement, reading its result included.

        It has its own progress and is cancelled by itself; every call above is such a statement without being told.
        """
        self._require_open()
        return self._runtime.running.begin()

    def cancel(self, statement: RunningStatement | None = None) -> None:
        """Stop a statement, or all that are in flight; what is acknowledged already stays so and becomes readable."""
        for each in self._runtime.running.in_flight() if statement is None else [statement]:
            each.cancel()
        self._leader.notify()

    @property
    def running(self) -> list[RunningStatement]:
        """The statements in flight in all threads, the oldest first."""
        return self._runtime.running.in_flight()

    def progress_of(self, statement: RunningStatement) -> Progress:
        """What a statement is at, for a person who waits for it."""
        return self._runtime.running.progress(statement)

    @property
    def progress(self) -> Progress:
        """What the oldest statement in flight is at."""
        return self._runtime.running.progress()

    # -- what there is to know ----------------------------------------------------------------------------------------

    @property
    def epoch(self) -> Epoch:
        """The newest epoch that can be read."""
        return engine.readable_epoch(self._runtime)

    def relations(self) -> list[Relation]:
        """The tables and views that users have made, parents before children."""
        return engine.user_relations(self._runtime)

    def nodes(self) -> list[DrawnRelation]:
        """The same, to be drawn."""
        return engine.graph_nodes(self._runtime)

    @property
    def warehouse(self) -> str:
        """Where the warehouse is."""
        return self._runtime.warehouse.url

    @property
    def spark(self) -> SparkSession:
        """The Spark session that this database works in."""
        return self._runtime.spark.session

    @property
    def in_transaction(self) -> bool:
        return self._writer.in_transaction

    @property
    def notes(self) -> list[str]:
        """What went wrong in the background without anybody having to wait for it."""
        return list(self._runtime.notes)

    def close(self) -> None:
        """Roll back an open transaction, make the rest readable, give the lease back. Spark goes on running."""
        if self._closed:
            return
        self._closed = True
        self._writer.abandon()
        self._leader.leave_jobs()
        try:
            if self._leader.leads:
                self._leader.flush()
                self._leader.publish_before_closing()
        finally:
            self._leader.stop()
        self._runtime.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Database({self._runtime.warehouse.url!r}, {'closed' if self._closed else f'epoch {self.epoch}'})"

    def _repr_html_(self) -> str:
        """Where the warehouse stands and what is in it, for a notebook."""
        if self._closed:
            return "<p>a closed stepwell database</p>"
        place = html.escape(self._runtime.warehouse.url)
        shown = engine.answer_inspection(self._runtime, ShowTables())
        return f"<p>stepwell database <code>{place}</code>, epoch {self.epoch}</p>{shown._repr_html_()}"

    def _require_open(self) -> None:
        if self._closed:
            raise DatabaseClosedError("this database is closed", hint="connect() again.")


def connect(
    warehouse: str | os.PathLike[str] = "warehouse",
    *,
    catalog: str | None = None,
    spark: SparkSession | str | None = None,
    clock: Clock | None = None,
    dialect: str = "spark",
    functions: Sequence[Function] = (),
    _limits: Limits | None = None,
) -> Database:
    """Open a warehouse, a folder or a URL, and create it if it is not there.

    `catalog` is a database URL, by default SQLite inside the warehouse; `spark` a session or a master URL, by default a
    local Spark, started when a statement first needs it. With `dialect` "postgres", statements are as PostgreSQL
    writes them, as far as they can be carried over. `functions` are those in Python that views call.
    """
    try:
        spoken = Dialect(dialect)
    except ValueError as error:
        raise InvalidSettingError(f'there is no dialect "{dialect}"', hint="There are spark and postgres.") from error
    place = Warehouse(os.fspath(warehouse))
    place.create()
    runtime = engine.open_runtime(place, catalog, spark, clock, _limits)
    for function in functions:  # before anything is maintained here
        runtime.spark.register(function)
    return Database(runtime, spoken)


def look_at(warehouse: str | os.PathLike[str], *, catalog: str | None = None) -> Onlooker:
    """Look at a warehouse that is there, by its catalog and files alone: nothing is created, led or started."""
    return Onlooker(engine.open_existing(os.fspath(warehouse), catalog))

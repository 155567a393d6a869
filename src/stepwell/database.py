"""The database: one object that a program talks to."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from stepwell.catalog import Catalog, control, open_catalog, relations, settings, sqlite_url, writes
from stepwell.clock import Clock, SystemClock
from stepwell.durations import format_duration, parse_duration
from stepwell.engine import (
    EXTERNAL_CODE,
    Leader,
    Loading,
    Runtime,
    Snapshot,
    Spark,
    Staging,
    advance_watermark,
    alter_view,
    compact,
    create_view,
    differences,
    discard,
    drop_relations,
    failed_in,
    give_back,
    inspect,
    is_system,
    load_in,
    mark_for_repair,
    plain_name,
    refuse_system,
    relation_called,
    require_built,
    require_files,
    require_resumed,
    run_query,
    stage_data,
    stage_statement,
    stopped_waiting,
    system_rows,
    translated,
    vacuum,
    verify,
    view_called,
)
from stepwell.epochs import FIRST_EPOCH, Epoch
from stepwell.errors import (
    AlreadyLoadedError,
    CancelledError,
    ConflictError,
    DatabaseClosedError,
    InvalidDefinitionError,
    InvalidSettingError,
    LabelError,
    ReadOnlyError,
    ReservedNameError,
    SqlSyntaxError,
    StepwellError,
    TransactionStateError,
    UndefinedTableError,
    WarehouseError,
    nearest,
    warn,
)
from stepwell.failpoints import failpoint
from stepwell.files import HIDDEN_PREFIX, total
from stepwell.functions import Function
from stepwell.loads import Format, LoadOptions
from stepwell.relations import Definition, Relation, RelationKind
from stepwell.rows import Rows
from stepwell.sql import Dialect, parse, refuse_outside
from stepwell.sql.statements import (
    AddColumns,
    AlterView,
    Begin,
    Body,
    Commit,
    Copy,
    CreateTable,
    CreateView,
    Ddl,
    Delete,
    Describe,
    DropRelations,
    ExplainCreate,
    ExplainQuery,
    ExplainRefresh,
    Flush,
    Insert,
    Merge,
    Name,
    Optimize,
    Query,
    RenameTable,
    Rollback,
    SetOption,
    ShowCreate,
    ShowDependencies,
    ShowLineage,
    ShowTables,
    ShowViews,
    ShowWatermarks,
    Slice,
    Statement,
    Truncate,
    Update,
    Vacuum,
    Verify,
    ViewAction,
)
from stepwell.storage import DeltaLogs, Warehouse
from stepwell.types import whole_number
from stepwell.views import RelationId
from stepwell.writes import RelationWrite, Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Called = TypeVar("_Called", bound="Callable[..., Any]")

_TRIES = 10
"""How often a statement in conflict is run before its user hears of it."""

_DATABASE_SETTINGS = {"barrier_interval": "0 seconds", "retention": "7 days"}
_SESSION_SETTINGS = {EXTERNAL_CODE: "false"}
_SWITCHES = {"true": True, "on": True, "false": False, "off": False}


@dataclass(frozen=True, slots=True)
class Progress:
    """What a database is at: in words, the rows it is about if that is known, and Spark's tasks in flight."""

    what: str
    rows: int | None
    tasks_done: int
    tasks: int


class Database:
    """An open warehouse. Usable from several threads, but a transaction belongs to all of them together."""

    def __init__(self, runtime: Runtime, dialect: Dialect = Dialect.SPARK) -> None:
        self._runtime = runtime
        self._dialect = dialect
        self._transaction: dict[RelationId, RelationWrite] | None = None
        self._closed = False
        self._leader = Leader(runtime, self._setting)
        self._leader.start_if_needed()

    # -- statements ---------------------------------------------------------------------------------------------------

    def sql(self, text: str) -> DataFrame | Rows:
        """Run the statements of `text`, one after the other, and answer with the result of the last."""
        self._begin()
        statements = self.parse(text)
        if not statements:
            raise SqlSyntaxError("there is no statement in this text")
        result: DataFrame | Rows = Rows([], [])
        for statement in statements:
            result = self.execute(statement)
        return result

    def parse(self, text: str) -> list[Statement]:
        """The statements of `text`, in the dialect that this database was opened with."""
        return parse(text, self._dialect)

    def execute(self, statement: Statement) -> DataFrame | Rows:
        """Run one parsed statement."""
        self._begin()
        try:
            with self._runtime.doing(f"running {statement.slice.text.split(None, 1)[0].upper()}"), translated():
                return self._run(statement.body)
        except StepwellError as error:
            if _is_one_line(statement):
                error.at(statement.slice.place)
            raise

    def insert(self, table: str, data: Any) -> Rows:
        """Insert an Arrow table, a pandas or Spark DataFrame, or rows (tuples, dicts); columns match by name."""
        self._begin()
        with translated():
            return self._write(stage_data(self._runtime, table.removeprefix("main."), data))

    def insert_parquet(
        self, table: str, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, label: str | None = None
    ) -> Rows:
        """Insert the rows of Parquet files, in the order of the files and of the rows in them.

        A path is a file, a folder or a pattern. The files are read and left alone. With a `label` a load happens once,
        however often it is asked for.
        """
        self._begin()
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        name = Name((table.removeprefix("main."),), Slice(table, 0, len(table)))
        options = LoadOptions(format=Format.PARQUET, label=label)
        return self._copy(Copy(name, None, tuple(os.fspath(path) for path in given), options))

    def function(self, name: str, *, version: int, returns: str = "STRING") -> Callable[[_Called], _Called]:
        """Register a Python function, as a decorator; queries and views may call it by `name` from then on.

        It must give the same for the same values, always. A view is maintained with the version that it was created
        with, so whoever opens the warehouse registers that version again: here, or with `connect(functions=[…])`.
        """

        def register(call: _Called) -> _Called:
            self._register(Function(name, version, call, returns))
            return call

        return register

    def _register(self, function: Function) -> None:
        self._require_open()
        with self._runtime.catalog.read() as tx:
            known = relations.get_all(tx)
        for each in known:
            versions = dict(each.view.functions) if each.definition.view and not each.is_hidden else {}
            if versions.get(function.key, function.version) != function.version:
                raise InvalidDefinitionError(
                    f'{each.kind} "{each.name}" was created with version {versions[function.key]} of function '
                    f'"{function.name}", and this is version {function.version}',
                    hint=f"Register it under another name, or drop {each.name} first.",
                    sqlstate="55006",
                )
        self._runtime.spark.register(function)

    def cancel(self) -> None:
        """Stop what other threads are running here; what is acknowledged already stays so and becomes readable."""
        self._runtime.cancelling.set()
        self._leader.notify()
        if self._runtime.spark.is_started:
            self._runtime.spark.session.interruptAll()

    @property
    def progress(self) -> Progress:
        """What is going on here, for a person who waits."""
        activity = self._runtime.activity
        what = "starting Spark" if self._runtime.spark.is_starting else activity.what
        return Progress(what, activity.rows, *self._runtime.spark.tasks())

    def changes(self, table: str, after: int, upto: int | None = None) -> DataFrame:
        """What the epochs (after, upto] did to a relation: its rows with `_diff` and `_epoch`."""
        self._require_open()
        until = "" if upto is None else f", {int(upto)}"
        quoted = table.replace("`", "``")
        text = f"SELECT * FROM changes(`{quoted}`, {int(after)}{until})"
        return self._query(Slice(text, 0, len(text)))

    def flush(self) -> Epoch:
        """Wait until everything written so far can be read; the epoch that can be read then."""
        self._begin()
        self._leader.emit()
        return self.epoch

    def advance_watermark(self, table: str, upto: object) -> Epoch:
        """Claim that no row of a table before `upto` is still to come: a datetime, or a number where time is one.

        Returns once the windows that this closes can be read. A watermark never moves back: that is said, and ignored.
        """
        self._begin()
        epoch = advance_watermark(self._runtime, table, upto)
        if epoch is not None:
            self._wait(epoch)
        return self.epoch

    @property
    def epoch(self) -> Epoch:
        """The newest epoch that can be read."""
        with self._runtime.catalog.read() as tx:
            return control.look(tx).readable_epoch

    def relations(self) -> list[Relation]:
        """The tables and views that users have made, parents before children."""
        with self._runtime.catalog.read() as tx:
            known = load_in(self._runtime, tx)
        return [known.by_id[id_] for id_ in known.graph.order()]

    @property
    def warehouse(self) -> str:
        """Where the warehouse is."""
        return self._runtime.warehouse.url

    @property
    def runtime(self) -> Runtime:
        """The parts it is made of, for the command line's own use."""
        return self._runtime

    @property
    def spark(self) -> SparkSession:
        """The Spark session that this database works in."""
        return self._runtime.spark.session

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    @property
    def notes(self) -> list[str]:
        """What went wrong in the background without anybody having to wait for it."""
        return list(self._runtime.notes)

    def close(self) -> None:
        """Roll back an open transaction, make the rest readable, give the lease back. Spark goes on running."""
        if self._closed:
            return
        self._closed = True
        self._runtime.cancelling.clear()
        self._rollback()
        try:
            if self._leader.leads:
                self._leader.flush()
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
        shown = inspect(self._runtime, ShowTables())
        return f"<p>stepwell database <code>{place}</code>, epoch {self.epoch}</p>{shown._repr_html_()}"

    # -- what each statement does -------------------------------------------------------------------------------------

    def _run(self, body: Body) -> DataFrame | Rows:
        match body:
            case Query(text):
                return system_rows(self._runtime, text) or self._query(text)
            case ExplainQuery(text, extended):
                return self._explain(text, extended)
            case Insert() | Update() | Delete() | Merge() | Truncate():
                return self._write(stage_statement(self._runtime, body))
            case CreateTable() | DropRelations() | RenameTable() | AddColumns() | CreateView() | AlterView():
                return self._define(body)
            case Verify(name, repair):
                return self._verify(name, repair=repair)
            case (
                ShowTables()
                | ShowCreate()
                | Describe()
                | ShowViews()
                | ShowWatermarks()
                | ShowDependencies()
                | ShowLineage()
            ):
                return inspect(self._runtime, body)
            case ExplainCreate(create):
                refuse_outside(create.query)
                return inspect(self._runtime, body)
            case ExplainRefresh():
                return inspect(self._runtime, body)
            case Copy():
                return self._copy(body)
            case Begin():
                if self._transaction is not None:
                    raise TransactionStateError("a transaction is open already", hint="COMMIT or ROLLBACK it first.")
                self._transaction = {}
            case Commit():
                return self._commit()
            case Rollback():
                self._require_transaction()
                self._rollback()
            case Flush():
                return Rows(["epoch"], [(self.flush(),)])
            case SetOption(name, value):
                return self._set(name, value)
            case Optimize(name):
                return self._optimize(name)
            case Vacuum():
                return Rows(["files_removed"], [(vacuum(self._runtime, self._setting("retention")),)])
        return Rows([], [])

    def _query(self, text: Slice) -> DataFrame:
        for attempt in range(_TRIES):
            snapshot = self._snapshot()
            frame = run_query(self._runtime, snapshot, text)
            try:
                snapshot.require_whole()
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
            else:
                return frame
        raise AssertionError("the last attempt returns or raises")

    def _explain(self, text: Slice, extended: bool) -> Rows:
        prefix = "EXPLAIN EXTENDED " if extended else "EXPLAIN "
        frame = run_query(self._runtime, self._snapshot(), text, prefix)
        return Rows(["plan"], [(line,) for row in frame.collect() for line in row[0].splitlines()])

    def _write(self, staging: Staging) -> Rows:
        """Run a write until nothing it has read was changed meanwhile."""
        for attempt in range(_TRIES):
            snapshot = self._snapshot(for_write=True)
            write = staging(snapshot)
            try:
                snapshot.require_whole()
                if self._transaction is not None:
                    before = self._transaction.get(write.relation)
                    self._transaction[write.relation] = before.then(write) if before else write
                    return self._written(write, None)
                return self._acknowledge((write,), write)
            except ConflictError:
                discard(self._runtime, write)
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _copy(self, copy: Copy) -> Rows:
        """Load files; a load whose label is known is done already."""
        loading = Loading(self._runtime, copy)
        staged = [label.text for write in (self._transaction or {}).values() for label in write.labels]
        if copy.options.label in staged:
            raise LabelError(f'the label "{copy.options.label}" is used in this transaction already')
        try:
            inserted, retracted, epoch = self._write(loading).tuples()[0]
            lines = "1 line" if loading.skipped == 1 else f"{loading.skipped} lines"
            notes = [f"left out {lines} that could not be read"] if loading.skipped else []
        except AlreadyLoadedError as error:
            inserted, retracted, epoch, notes = 0, 0, None, [error.message]
        columns = ["inserted", "retracted", "epoch", "files", "skipped"]
        return Rows(columns, [(inserted, retracted, epoch, len(loading.files), loading.skipped)], notes)

    def _acknowledge(self, parts: tuple[RelationWrite, ...], shown: RelationWrite) -> Rows:
        write = Write(tuple(part for part in parts if part.files or part.labels))
        if write.is_empty:
            return self._written(shown, None)
        try:
            self._runtime.require_wanted()
        except CancelledError:
            for part in parts:
                discard(self._runtime, part)
            raise
        failpoint("acknowledge.before")
        wants_barrier = not self._setting("barrier_interval")
        try:
            with self._runtime.catalog.write() as tx:
                receipt = writes.acknowledge(tx, write, self._runtime.clock.now(), wants_barrier=wants_barrier)
                for part in parts:
                    require_files(self._runtime, part)
        except (ConflictError, UndefinedTableError):
            # Refused for certain. After any other error the catalog may have them all the same: then they must stay.
            for part in parts:
                discard(self._runtime, part)
            raise
        failpoint("acknowledge.after")
        if wants_barrier:
            self._wait(Epoch(receipt.epoch))
            for said in failed_in(self._runtime, Epoch(receipt.epoch)):
                warn(said)
        else:
            self._leader.ensure_led()
        return self._written(shown, receipt.epoch)

    def _wait(self, epoch: Epoch) -> None:
        while True:
            try:
                return self._leader.wait_readable(epoch)
            except ConflictError:  # of looking and asking; what was written is acknowledged and must not be repeated
                continue
            except KeyboardInterrupt as error:
                raise stopped_waiting(epoch) from error

    def _written(self, write: RelationWrite, epoch: int | None) -> Rows:
        counts = total(write.files)
        return Rows(["inserted", "retracted", "epoch"], [(counts.inserted, counts.retracted, epoch)])

    def _commit(self) -> Rows:
        parts = tuple(self._require_transaction().values())
        self._transaction = None
        shown = RelationWrite(RelationId(0), tuple(file for part in parts for file in part.files))
        return self._acknowledge(parts, shown)

    def _rollback(self) -> None:
        parts, self._transaction = (self._transaction or {}).values(), None
        for part in parts:
            discard(self._runtime, part)
            if part.numbers is not None:
                give_back(self._runtime, part.relation, *part.numbers)

    def _define(self, body: Ddl) -> Rows:
        if self._transaction is not None:
            raise TransactionStateError(
                "definitions cannot be changed inside a transaction", hint="COMMIT first.", sqlstate="25001"
            )
        if isinstance(body, CreateView):
            self._new_name(body.name)
            refuse_outside(body.query)
            built = create_view(self._runtime, body)
            if built is not None:
                self._wait(built)
                require_built(self._runtime, body.name.last)
            return Rows([], [])
        now = self._runtime.clock.now()
        with self._runtime.catalog.write() as tx:
            control.lock(tx)
            match body:
                case CreateTable():
                    name = self._new_name(body.name)
                    if body.if_not_exists and relations.find(tx, name):
                        return Rows([], [])
                    definition = Definition(key=body.key, chunking=body.chunking, watermark=body.watermark)
                    try:
                        relations.create(tx, name, definition, body.columns)
                    except StepwellError as error:
                        raise error.at(body.name.slice.place) from None
                case DropRelations():
                    for each in body.names:
                        refuse_system(each)
                    drop_relations(self._runtime, tx, body)
                case AlterView():
                    alter_view(self._runtime, tx, body)
                case RenameTable():
                    relations.rename(tx, relation_called(tx, body.name).id, self._new_name(body.new_name))
                case AddColumns():
                    relation = relation_called(tx, body.name)
                    if relation.kind != RelationKind.TABLE:
                        raise ReadOnlyError(
                            f'{relation.kind} "{relation.name}" has the columns of its query',
                            place=body.name.slice.place,
                            hint="CREATE OR REPLACE it.",
                        )
                    relations.add_columns(tx, relation, body.columns)
            epoch = control.look(tx).open_epoch
            writes.request_barrier(tx, epoch, now)
        self._wait(epoch)
        if isinstance(body, AlterView) and body.action == ViewAction.RESUME:
            require_resumed(self._runtime, body.name)
        return Rows([], [])

    def _new_name(self, name: Name) -> str:
        if is_system(name):
            raise ReadOnlyError(
                f'"{name}" would be a system table', place=name.slice.place, hint="Choose another name."
            )
        if name.last.lower().startswith(HIDDEN_PREFIX):
            raise ReservedNameError(f'names that begin with "{HIDDEN_PREFIX}" are reserved', place=name.slice.place)
        return plain_name(name)

    def _set(self, name: str, value: str) -> Rows:
        if name == EXTERNAL_CODE:
            if value.lower() not in _SWITCHES:
                raise InvalidSettingError(f"{name} is true or false")
            self._runtime.permissions.external_code = _SWITCHES[value.lower()]
            return Rows([], [])
        known = _DATABASE_SETTINGS | _SESSION_SETTINGS
        if name not in _DATABASE_SETTINGS and self._dialect != Dialect.SPARK:
            return Rows([], [], notes=[f'there is no setting "{name}": ignored'])
        if name not in _DATABASE_SETTINGS:
            raise InvalidSettingError(
                f'there is no setting "{name}"',
                hint=nearest(name, known) or f"There are {', '.join(known)}.",
            )
        if whole_number(value.strip()) == 0:
            value = "0 seconds"
        if parse_duration(value) < 0:
            raise InvalidSettingError(f"{name} cannot be negative")
        value = format_duration(parse_duration(value))
        with self._runtime.catalog.write() as tx:
            settings.put(tx, name, value)
        self._leader.interval_changed()
        return Rows([], [])

    def _setting(self, name: str) -> int:
        """A setting of the database, in microseconds, as whoever set it last has it."""
        with self._runtime.catalog.read() as tx:
            return parse_duration(settings.get(tx, name) or _DATABASE_SETTINGS[name])

    def _optimize(self, name: Name) -> Rows:
        relation = self._relation(name)
        self._leader.flush()
        self._leader.wait_idle()
        compact(self._runtime, relation.id, fold_now=True)
        return Rows(["name", "epoch"], [(relation.name, self.epoch)])

    def _verify(self, name: Name, *, repair: bool) -> Rows:
        with self._runtime.catalog.read() as tx:
            view = view_called(tx, name)
        verdict = verify(self._runtime, view)
        if repair and not verdict.is_ok:
            mark_for_repair(self._runtime, view)
            with self._runtime.catalog.write() as tx:
                epoch = control.lock(tx).open_epoch
                writes.request_barrier(tx, epoch, self._runtime.clock.now())
            self._wait(epoch)
        columns = ["view", "epoch", "ok", "rows", "missing", "unexpected"]
        row = (view.name, verdict.epoch, verdict.is_ok, verdict.rows, verdict.missing, verdict.unexpected)
        return Rows(columns, [row], notes=differences(view, verdict))

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _relation(self, name: Name) -> Relation:
        with self._runtime.catalog.read() as tx:
            return relation_called(tx, name)

    def _snapshot(self, *, for_write: bool = False) -> Snapshot:
        """What a statement sees: the newest readable epoch; to write, or in a transaction, all that is acknowledged."""
        if self._transaction is None and not for_write:
            return Snapshot(self._runtime)
        staged = {id_: write.files for id_, write in (self._transaction or {}).items()}
        return Snapshot(self._runtime, staged=staged)

    def _require_transaction(self) -> dict[RelationId, RelationWrite]:
        if self._transaction is None:
            raise TransactionStateError("no transaction is open", hint="BEGIN one first.", sqlstate="25P01")
        return self._transaction

    def _begin(self) -> None:
        """Before anything is done: what was cancelled is over."""
        self._require_open()
        self._runtime.cancelling.clear()

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
    runtime = open_runtime(place, catalog, spark, clock)
    for function in functions:  # before anything is maintained here
        runtime.spark.register(function)
    return Database(runtime, spoken)


def open_runtime(
    place: Warehouse, catalog: str | None, spark: SparkSession | str | None = None, clock: Clock | None = None
) -> Runtime:
    """The parts of a database, put together."""
    opened: Catalog = open_catalog(catalog or sqlite_url(f"{place.root}/catalog.db"))
    with opened.read() as tx:
        unused = control.look(tx).open_epoch == FIRST_EPOCH and not relations.known_ids(tx)
    if unused and place.list(f"{place.root}/data"):
        opened.close()
        raise WarehouseError(
            f'the warehouse "{place.url}" holds data that the catalog "{opened.url}" knows nothing of',
            hint="Open it with the catalog it was made with, or choose an empty folder.",
        )
    return Runtime(opened, place, clock or SystemClock(), Spark(spark), DeltaLogs(place))


def _is_one_line(statement: Statement) -> bool:
    """Whether pointing at the whole statement says anything."""
    return "\n" not in statement.slice.text and len(statement.slice.text) < 100

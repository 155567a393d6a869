"""Queries: the user's text, bound to the files of a snapshot and handed to Spark."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from stepwell.engine.failures import translated
from stepwell.engine.read.deferred import FACES, DeferredReads, Face
from stepwell.engine.read.snapshots import Snapshot
from stepwell.engine.read.stopped import require_there, stopped
from stepwell.engine.read.system import SYSTEM_NAMESPACE, system_frame
from stepwell.engine.runtime import EXTERNAL_CODE, Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import (
    ConflictError,
    Place,
    SqlSyntaxError,
    StepwellError,
    UndefinedTableError,
    UnsupportedError,
    warn,
)
from stepwell.model.files import DIFF, EPOCH, HIDDEN_PREFIX
from stepwell.model.relations import Relation, RelationKind
from stepwell.model.rows import Rows
from stepwell.model.types import quote, whole_number
from stepwell.model.views import placeholder
from stepwell.rules.lateness import AT, SIGN
from stepwell.sql import (
    QUERY,
    AsOf,
    Composition,
    Reference,
    find_references,
    is_file,
    not_allowed,
    outside_code,
    refuse_outside,
    window_calls,
)
from stepwell.sql.statements import Name, Slice

"""How often relations are looked up before the user hears that they keep changing."""

_SAMPLE = re.compile(
    r"\s*(/\*.*?\*/\s*)?TABLESAMPLE\s*\([^)]*\)(\s*REPEATABLE\s*\(\s*\d+\s*\))?", re.IGNORECASE | re.DOTALL
)


class Binding:
    """Names in a text, bound to temporary views of what they mean. Leaving the block takes the views away again."""

    def __init__(self, runtime: Runtime, snapshot: Snapshot) -> None:
        self._runtime = runtime
        self._snapshot = snapshot
        self._views: list[str] = []
        self._bound: dict[tuple[object, ...], str] = {}
        running = runtime.running.current
        self._arguments = running.arguments if running is not None else {}
        self.replacements: dict[Slice, str] = {}
        self.bytes = 0
        """How much the relations bound so far hold: what reading all of them would read."""

    def __enter__(self) -> Binding:
        return self

    def __exit__(self, *_: object) -> None:
        for view in self._views:
            self._runtime.spark.session.catalog.dropTempView(view)

    def bind(self, text: Slice | None, prefix: str = QUERY) -> None:
        """Bind every relation that `text` names."""
        if text is None:
            return
        code = None if self._runtime.switches.external_code else outside_code(text)
        if code is not None:
            raise not_allowed(code, EXTERNAL_CODE)
        self.replacements.update(window_calls(text))
        for where, (name, _) in self._arguments.items():
            if where.source == text.source and text.start <= where.start and where.end <= text.end:
                self.replacements[where] = f":{name}"
        references = find_references(text, prefix)
        self._require_known(references)
        for reference in references:
            if is_file(reference.name):
                if not self._runtime.switches.external_code:
                    raise not_allowed(reference.name.slice, EXTERNAL_CODE)
                continue
            if len(reference.name.parts) > 1 and reference.name.parts[0].lower() == "global_temp":
                continue
            try:
                view = self._view(reference)
            except StepwellError as error:
                raise error.at(reference.name.slice.place) from None
            where, sample = _with_sample(reference)
            alias = "" if reference.aliased else f" AS {quote(reference.name.last)}"
            self.replacements[where] = view + sample + alias

    def _require_known(self, references: Sequence[Reference]) -> None:
        """Fail at the first name that means nothing, before Spark is started for the others."""
        for reference in references:
            name = reference.name
            if len(name.parts) > 1 or "$" in name.last or is_file(name):
                continue
            try:
                self._snapshot.relation(plain_name(name))
            except StepwellError as error:
                raise error.at(name.slice.place) from None

    def add_view(self, frame: DataFrame) -> str:
        """A temporary view of `frame`, for text of our own."""
        view = self._runtime.temporary_name()
        frame.createOrReplaceTempView(view)
        self._views.append(view)
        return view

    def run(self, composition: Composition) -> DataFrame:
        """Let Spark analyze the text; nothing is computed yet."""
        self._runtime.require_wanted()
        spark = self._runtime.spark
        spark.let_read_files(self._runtime.switches.external_code)
        with translated(composition):
            return spark.session.sql(composition.text, args=dict(self._arguments.values()) or None)

    def _view(self, reference: Reference) -> str:
        parts = tuple(part.lower() for part in reference.name.parts)
        key = (parts, reference.as_of and (reference.as_of.kind, reference.as_of.value), reference.changes)
        if key not in self._bound:
            with translated():
                self._bound[key] = self.add_view(self._frame(reference))
        return self._bound[key]

    def _frame(self, reference: Reference) -> DataFrame:
        name, parts = reference.name, [part.lower() for part in reference.name.parts]
        if parts[0] == SYSTEM_NAMESPACE and len(parts) == 2:
            if reference.as_of or reference.changes:
                raise UnsupportedError(f'system table "{name}" shows the present only')
            return system_frame(self._runtime, name)
        snapshot = self._snapshot
        relation_name = plain_name(name)
        if reference.changes:
            relation = snapshot.relation(relation_name)
            if relation.kind == RelationKind.VIEW:
                raise UnsupportedError(f'view "{relation.name}" has no changes of its own')
            require_there(self._runtime, relation, None)
            frame = snapshot.changes(relation, reference.changes.after, reference.changes.upto)
            return frame.select(*(quote(column.name) for column in relation.columns), DIFF, EPOCH)
        epoch = self._epoch(reference.as_of) if reference.as_of else None
        if "$" in relation_name:
            return self._face(reference, relation_name, epoch)
        relation = snapshot.relation(relation_name) if epoch is None else snapshot.relation_at(relation_name, epoch)
        if relation.kind == RelationKind.VIEW:
            return self._plain_view(relation, epoch)
        return self._stored(relation, epoch, [column.name for column in relation.columns])

    def _face(self, reference: Reference, name: str, epoch: Epoch | None) -> DataFrame:
        """A view as something else than its rows: what is stored of it, its query, or what came too late for it."""
        base, _, face = name.rpartition("$")
        relation = self._snapshot.relation(base) if epoch is None else self._snapshot.relation_at(base, epoch)
        faces = [each.value for each in FACES] if relation.deferral is not None else ["late"]
        if face.lower() not in faces:
            offered = " and ".join(f"{base}${each}" for each in faces)
            raise UndefinedTableError(f'{relation.kind} "{base}" has no face "{face}"', hint=f"There is {offered}.")
        if relation.deferral is not None:
            return self._deferred(relation, epoch, Face(face.lower()))
        return self._late(reference, relation, base, name)

    def _deferred(
        self, view: Relation, epoch: Epoch | None, face: Face, columns: Sequence[str] | None = None
    ) -> DataFrame:
        """Columns of a face of a deferred view; inside a transaction, too, it is that of the newest readable epoch."""
        runtime = self._runtime
        reads = DeferredReads(runtime, runtime.spark.under(()), self._snapshot.epoch if epoch is None else epoch)
        rows = reads.face(view, face)
        if columns is None:
            columns = [name for name in rows.columns if not name.startswith(HIDDEN_PREFIX)]
        rows = rows.select(*(quote(name) for name in columns))
        self.bytes += reads.bytes
        if rows.sparkSession is runtime.spark.session:
            return rows
        name = runtime.temporary_name()  # the user's session has other settings: the view means what it did
        rows.createOrReplaceGlobalTempView(name)
        return runtime.spark.session.table(f"global_temp.{name}")

    def _late(self, reference: Reference, relation: Relation, base: str, name: str) -> DataFrame:
        """`view$late`: the changes that came too late for a view, with their signs and epochs."""
        if reference.as_of:
            raise UnsupportedError(f'"{name}" shows the present only', hint="Its _epoch says when each row came.")
        judge = None
        if relation.definition.view is not None:
            parts = [self._snapshot.relation_numbered(id_) for id_ in relation.view.blocks]
            judge = next((each.view.judge for each in (relation, *parts) if each.view.judge), None)
        if judge is None:
            raise UndefinedTableError(
                f'nothing comes too late for {relation.kind} "{base}"',
                hint="Only a view with EMIT AFTER WATERMARK or ALLOW LATENESS has late rows.",
            )
        ledger = self._snapshot.relation_numbered(judge.ledger)
        shown = [quote(column.name) for column in ledger.columns if not column.name.startswith(HIDDEN_PREFIX)]
        rows = self._snapshot.rows(ledger, self._snapshot.content(ledger, None))
        return rows.selectExpr(*shown, f"{SIGN} AS {DIFF}", f"{AT} AS {EPOCH}")

    def _stored(self, relation: Relation, epoch: Epoch | None, columns: Sequence[str]) -> DataFrame:
        if relation.deferral is not None:
            return self._deferred(relation, epoch, Face.USER, columns)
        require_there(self._runtime, relation, epoch)
        if epoch is None and (said := stopped(self._runtime, relation)):
            warn(said)
        content = self._snapshot.content(relation, epoch)
        self.bytes += content.bytes
        return self._snapshot.rows(relation, content).select(*(quote(name) for name in columns))

    def _plain_view(self, view: Relation, epoch: Epoch | None) -> DataFrame:
        """What a plain view stands for, with all that it reads at one epoch."""
        text = view.view.bound
        for source in view.view.inputs:
            relation = self._snapshot.relation_numbered(source.relation, epoch)
            name = self.add_view(self._stored(relation, epoch, source.columns))
            text = re.sub(rf"\b{placeholder(source.relation)}\b", name, text)
        refuse_outside(Slice(text, 0, len(text)))
        return self._runtime.spark.session.sql(text)

    def _epoch(self, as_of: AsOf) -> Epoch:
        if as_of.kind == "version":
            number = whole_number(as_of.value)
            if number is None:
                raise SqlSyntaxError("an epoch is a number", place=as_of.place)
            return Epoch(number)
        return self._snapshot.epoch_at(_moment(as_of.value, as_of.place))


def _with_sample(reference: Reference) -> tuple[Slice, str]:
    """What to replace: a TABLESAMPLE stands between a relation and its alias, so one of our own goes behind it."""
    where = reference.slice
    match = None if reference.aliased else _SAMPLE.match(where.source, where.end)
    return (Slice(where.source, where.start, match.end()), match.group()) if match else (where, "")


def run_query(runtime: Runtime, snapshot: Snapshot, text: Slice, prefix: str = "") -> DataFrame:
    """The answer to a query, as Spark's own lazy DataFrame; `prefix` may ask to EXPLAIN it instead."""
    with Binding(runtime, snapshot) as binding:
        binding.bind(text)
        return binding.run(Composition().add(prefix).add_slice(text, binding.replacements))


def answer_query(runtime: Runtime, text: Slice, look: Callable[[], Snapshot]) -> DataFrame:
    """The answer to a query on what `look` finds, looked at again if it was changed while it was looked up."""
    tries = runtime.limits.conflict_tries
    for attempt in range(tries):
        snapshot = look()
        frame = run_query(runtime, snapshot, text)
        try:
            snapshot.require_whole()
        except ConflictError:
            if attempt == tries - 1:
                raise
        else:
            return frame
    raise AssertionError("the last attempt returns or raises")


def answer_changes(
    runtime: Runtime, table: str, after: int, upto: int | None, look: Callable[[], Snapshot]
) -> DataFrame:
    """The changes of a relation in the epochs (after, upto], as a program asks for them."""
    until = "" if upto is None else f", {int(upto)}"
    text = f"SELECT * FROM changes({quote(table)}, {int(after)}{until})"
    return answer_query(runtime, Slice(text, 0, len(text)), look)


def explain_query(runtime: Runtime, snapshot: Snapshot, text: Slice, *, extended: bool) -> Rows:
    """What Spark says of how it would run a query."""
    frame = run_query(runtime, snapshot, text, "EXPLAIN EXTENDED " if extended else "EXPLAIN ")
    return Rows(["plan"], [(line,) for row in frame.collect() for line in row[0].splitlines()])


def try_out(runtime: Runtime, text: Slice) -> None:
    """Compute a query and keep nothing of it: an error comes now, and not when it is too late."""
    frame = run_query(runtime, Snapshot(runtime), text)
    with translated():
        frame.write.format("noop").mode("overwrite").save()


def plain_name(name: Name) -> str:
    """A relation's name without its namespace, which can only be `main`."""
    if len(name.parts) > 2 or (len(name.parts) == 2 and name.parts[0].lower() != "main"):
        raise UndefinedTableError(
            f'relation "{name}" does not exist',
            place=name.slice.place,
            hint='There is one namespace, "main", besides "stepwell" with the system tables.',
        )
    return name.last


def _moment(text: str, place: Place) -> int:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise SqlSyntaxError(
            f'"{text}" is not a time',
            place=place,
            hint="Write it as '2026-01-31 12:00:00'; UTC unless it says otherwise.",
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return round(moment.timestamp() * 1_000_000)

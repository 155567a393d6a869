"""Watermarks in an epoch: how far its rows bring the tables, and that the views.

Changes are judged by where the watermarks stand at the start of an epoch, windows are published by where they stand at
its end. Both are known before the first view is maintained: the footers of the files tell how far their rows reach.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from stepwell.algebra.expressions import Named
from stepwell.algebra.printing import print_expression
from stepwell.catalog import Transaction, control, files, relations, watermarks, writes
from stepwell.engine.definitions import Definitions, load, load_in
from stepwell.engine.failures import translated
from stepwell.engine.read.deferred import buckets_of, stale_labels
from stepwell.engine.runtime import Runtime
from stepwell.graph import WatermarkTracker
from stepwell.model.epochs import Epoch
from stepwell.model.errors import InvalidDefinitionError, warn
from stepwell.model.files import DIFF, DataFile
from stepwell.model.intervals import Interval, common
from stepwell.model.relations import Relation, WatermarkRule, is_integer_time
from stepwell.model.types import quote
from stepwell.model.views import RelationId
from stepwell.model.watermarks import FOREVER, NEVER, HeldTransfer, MarkRecord, Transfer, moment_of, written
from stepwell.rules.lateness import is_before
from stepwell.storage import scan_delta, time_reach


@dataclass(frozen=True)
class Marks:
    """The watermarks of an epoch: those it began with, and those it ends with."""

    before: Mapping[RelationId, MarkRecord]
    after: WatermarkTracker[RelationId]
    tables: Sequence[MarkRecord]
    now: int

    def record(self, id_: RelationId) -> MarkRecord:
        """Where a view stood when it was last maintained."""
        return self.before.get(id_) or MarkRecord(id_)

    def moves(self, id_: RelationId) -> bool:
        """Whether the watermark of a view has moved since it was last maintained."""
        return id_ in self.after and self.after[id_] > self.record(id_).mark

    def is_due(self, view: Relation) -> bool:
        """Whether a view that emits by the clock has to show all that is known of it."""
        record = self.record(view.id)
        if record.emitted_epoch is None or record.emitted_at is None:
            return True
        if record.requested is not None and record.requested > record.emitted_epoch:
            return True
        return self.now - record.emitted_at >= view.view.emission.every

    def settled(self, ids: Iterable[RelationId], emitted: Mapping[RelationId, Epoch]) -> list[MarkRecord]:
        """What to remember: the tables, and those views that have followed."""
        found = [each for each in self.tables if each != self.before.get(RelationId(each.relation))]
        for id_ in ids:
            record = self.record(id_)
            new = record
            if id_ in self.after:
                new = dataclasses.replace(record, mark=self.after[id_], incoming=self.after.incoming(id_))
            if id_ in emitted:
                new = dataclasses.replace(new, emitted_epoch=emitted[id_], emitted_at=self.now)
            if new != record:
                found.append(new)
        return found


def advance(
    runtime: Runtime,
    definitions: Definitions,
    epoch: Epoch,
    deltas: Mapping[RelationId, Sequence[DataFile]],
    stopped: AbstractSet[RelationId],
) -> Marks:
    """The watermarks after an epoch with these changes; the views that are `stopped` stay where they are."""
    with runtime.catalog.read() as tx:
        before = watermarks.get_all_at(tx, epoch)
    now = runtime.clock.now()
    tables = []
    for id_, relation in definitions.by_id.items():
        rule = relation.definition.watermark
        if rule is not None:
            record = before.get(id_) or MarkRecord(id_, seen_at=now)
            tables.append(_followed(runtime, relation, rule, record, deltas.get(id_, ()), now))
    marks = {id_: record.mark for id_, record in before.items()}
    marks.update({RelationId(each.relation): each.mark for each in tables})
    silent = {each.relation for each in tables if each.idle} | stopped
    parents = {
        id_: [parent for parent in known if parent not in silent or parent in stopped]
        for id_, known in definitions.timed.items()
        if id_ not in stopped
    }
    through: dict[RelationId, Transfer | HeldTransfer] = {}
    for id_, relation in definitions.by_id.items():
        if relation.is_maintained and (transfer := relation.view.transfer) is not None:
            held = _held(runtime, definitions, relation, epoch, marks.get(id_, NEVER)) if relation.deferral else FOREVER
            through[id_] = transfer if held == FOREVER else HeldTransfer(transfer, held)
    order = [id_ for id_ in definitions.order.order() if id_ in definitions.timed]
    return Marks(before, WatermarkTracker(order, parents, through, marks), tables, now)


def _held(runtime: Runtime, definitions: Definitions, view: Relation, epoch: Epoch, mark: int) -> int:
    """How far a deferred view has no bucket that a refresh has still to fill, counted from where its watermark stands.

    What is stale behind the watermark is late, and does not hold it.
    """
    assert view.deferral is not None
    labels = buckets_of(view.deferral).storable
    ahead = Interval(max(mark, labels.start), labels.end) if mark < labels.end else None
    with runtime.catalog.read() as tx:
        stale = common(stale_labels(tx, definitions, view, epoch), (ahead,)) if ahead is not None else ()
    if not stale:
        return FOREVER
    return NEVER if stale[0].start == labels.start else stale[0].start


def _followed(
    runtime: Runtime, table: Relation, rule: WatermarkRule, record: MarkRecord, new: Sequence[DataFile], now: int
) -> MarkRecord:
    """A table's watermark after these files: it follows the rows that come, and never moves back."""
    mark, ahead = max(record.mark, NEVER if record.requested is None else record.requested), 0
    seen_at, nulls = record.seen_at, 0
    if new:
        reach = time_reach(runtime.warehouse, table, new, table.column(rule.column).name)
        inserted = [file for file in new if not file.statistics.retracted]
        high, seen_at = reach.high, now
        nulls = time_reach(runtime.warehouse, table, inserted, table.column(rule.column).name).nulls
        limit = FOREVER if rule.max_future is None else now + rule.max_future
        takes_back = len(inserted) < len(new)
        if high is not None and (high > limit or (takes_back and high - rule.delay > mark)):
            high, ahead = _within(runtime, table, rule.column, new, limit)  # of the rows that come, not those that go
        if high is not None:
            mark = max(mark, max(high - rule.delay, NEVER + 1))
    idle = rule.idle_timeout is not None and seen_at is not None and now - seen_at >= rule.idle_timeout
    return dataclasses.replace(
        record,
        mark=mark,
        incoming=mark,
        seen_at=seen_at,
        idle=idle,
        rows_ahead=record.rows_ahead + ahead,
        null_times=record.null_times + nulls,
    )


def _within(
    runtime: Runtime, table: Relation, column: str, new: Sequence[DataFile], limit: int
) -> tuple[int | None, int]:
    """The last moment of some rows that lies within a limit, and how many come after it."""
    type_ = table.column(column).type
    near = print_expression(is_before(Named(quote(column), str(type_)), limit + 1)) if limit < FOREVER else "true"
    far = f"NOT {near}"
    with translated():
        rows = scan_delta(runtime.spark.session, runtime.warehouse, table, new).where(f"{DIFF} > 0")
        found = rows.selectExpr(f"max(IF({far}, NULL, {quote(column)}))", f"count_if({far})").first()
    assert found is not None
    return (None if found[0] is None else moment_of(found[0])), found[1]


def advance_watermark(runtime: Runtime, name: str, upto: object) -> Epoch | None:
    """Ask for a table's watermark to be at least so far; the epoch that does it, None if it is there already."""
    with runtime.catalog.write() as tx:
        open_epoch = control.lock(tx).open_epoch
        table = relations.get(tx, name)
        rule = table.definition.watermark
        if rule is None:
            raise InvalidDefinitionError(
                f'{table.kind} "{table.name}" declares no watermark',
                hint="A table does with WATERMARK FOR column AS column - INTERVAL '5 seconds'; views follow.",
            )
        integer = is_integer_time(table.column(rule.column).type)
        mark = _moment(table, rule, upto, integer=integer)
        record = watermarks.get_all(tx).get(table.id)
        if record is not None and mark <= record.mark:
            if mark < record.mark:
                stands = written(record.mark, integer=integer)
                warn(f'the watermark of "{table.name}" stands at {stands} already and never moves back')
            return None
        watermarks.request(tx, table.id, mark)
        writes.request_barrier(tx, open_epoch, runtime.clock.now())
        return open_epoch


def moved_views(runtime: Runtime, epoch: Epoch) -> list[str]:
    """The views whose watermark an epoch has moved, parents before children."""
    with runtime.catalog.read() as tx:
        before, after = (watermarks.get_all_at(tx, at) for at in (Epoch(epoch - 1), epoch))
        known = load_in(runtime, tx)
    stood = {id_: record.mark for id_, record in before.items()}
    return [
        known.name(id_)
        for id_ in known.graph.order()
        if known.by_id[id_].is_maintained and id_ in after and after[id_].mark > stood.get(id_, NEVER)
    ]


def _moment(table: Relation, rule: WatermarkRule, value: object, *, integer: bool) -> int:
    try:
        mark = moment_of(value)
    except TypeError:
        mark = NEVER
    if mark == NEVER or isinstance(value, int) != integer or not NEVER < mark < FOREVER:
        wanted = "a whole number" if integer else "a date or a datetime"
        raise InvalidDefinitionError(
            f'{value!r} is no moment of "{table.name}"',
            detail=f'Its time column "{rule.column}" is {table.column(rule.column).type}.',
            hint=f"Give {wanted}.",
            sqlstate="22007",
        )
    return mark


def request_emission(runtime: Runtime) -> Epoch | None:
    """Let the views that emit by the clock show what they have; the epoch that does it, None if none waits."""
    definitions = load(runtime)
    periodic = [each for each in definitions.by_id.values() if each.id in definitions.periodic]
    if not periodic:
        return None
    with runtime.catalog.write() as tx:
        open_epoch = control.lock(tx).open_epoch
        records = watermarks.get_all(tx)
        waiting = [each for each in periodic if _has_more(tx, each, records.get(each.id), open_epoch)]
        for each in waiting:
            watermarks.request(tx, each.id, open_epoch)
        if not waiting:
            return None
        writes.request_barrier(tx, open_epoch, runtime.clock.now())
        return open_epoch


def is_timer_due(runtime: Runtime) -> bool:
    """Whether time alone asks for a barrier: a view has waited its interval, or a table has gone idle."""
    definitions = runtime.definitions.known
    if definitions is not None and not definitions.periodic and not definitions.idling:
        return False
    now = runtime.clock.now()
    with runtime.catalog.read() as tx:
        definitions = load_in(runtime, tx)
        if not definitions.periodic and not definitions.idling:
            return False
        records = watermarks.get_all(tx)
        for id_, timeout in definitions.idling.items():
            record = records.get(id_)
            if record is None or record.seen_at is None or record.idle:
                continue
            if now - record.seen_at >= timeout:
                return True
        open_epoch = control.look(tx).open_epoch
        for id_ in definitions.periodic:
            record, view = records.get(id_), definitions.by_id[id_]
            waits = record is not None and now - (record.emitted_at or 0) >= view.view.emission.every
            if waits and _has_more(tx, view, record, open_epoch):
                return True
    return False


def _has_more(tx: Transaction, view: Relation, record: MarkRecord | None, upto: int) -> bool:
    """Whether more is known of a view than it shows."""
    if record is None or record.emitted_epoch is None or view.view.live is None:
        return False
    return bool(files.logged_between(tx, view.view.live, Epoch(record.emitted_epoch), Epoch(upto)))

"""Refreshing a continuous aggregate, in three transactions.

The first chooses how far to go and raises the threshold to there, so that from then on every write below it is logged.
The second moves the logs of what the view reads to the logs of all views that read it. Then batch by batch, the newest
first, the buckets that the log names are computed at an epoch that has all writes from before the threshold was
raised; what differs from the rows that are stored is written, and enters like a write, in one transaction with the log
less what that epoch has seen.

A refresh is a job, and each of its transactions goes through only while that job holds the view: nobody else stores
rows of it meanwhile. All batches, and with CASCADE all levels, see one epoch, which stays readable until the job ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stepwell.catalog import Transaction, control, deferrals, files, jobs, pins, relations, writes
from stepwell.engine.definitions import load, load_in
from stepwell.engine.failures import translated
from stepwell.engine.maintain.materializing import Made, touched_chunks, whole_buckets
from stepwell.engine.read.deferred import DeferredReads, StoredSince, buckets_of
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.staging import discard
from stepwell.model.buckets import Buckets
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError, UndefinedTableError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import LATEST, total
from stepwell.model.intervals import Interval, Intervals, common
from stepwell.model.invalidations import Invalidation, InvalidationLog, cut, merged, touched, within
from stepwell.model.jobs import JobId, JobProgress, RefreshRequest
from stepwell.model.relations import Relation
from stepwell.model.views import RelationId
from stepwell.model.watermarks import FOREVER, NEVER
from stepwell.model.writes import EVERYTHING, RelationWrite, Write
from stepwell.plan import content_at
from stepwell.storage import reach_of

Wait = Callable[[Epoch], None]
"""Returns once an epoch can be read."""


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh has done: batches, rows that came and went, and up to which label the view is complete."""

    view: str
    batches: int = 0
    inserted: int = 0
    retracted: int = 0
    completed: int = NEVER
    epoch: Epoch | None = None


@dataclass(frozen=True, slots=True)
class Materializer:
    """The right to store rows of views: a job that holds them, under the term of the leader that carries it out."""

    job: JobId
    term: int

    def keep(self, tx: Transaction, progress: JobProgress) -> None:
        """Go on in this transaction; an error if the job is to stop, or another process leads."""
        jobs.keep(tx, self.job, self.term, progress)

    @property
    def holder(self) -> str:
        return jobs.holder(self.job, self.term)


def refresh(
    runtime: Runtime, request: RefreshRequest, materializer: Materializer, wait: Wait, *, by_policy: bool = False
) -> list[RefreshReport]:
    """Bring views up to date inside a window of time, parents first, all as of one epoch."""
    cut_at = _Cut(runtime, materializer, wait)
    try:
        return [
            _Refreshing(runtime, _view(runtime, id_), request, cut_at, by_policy=by_policy).run()
            for id_ in request.levels
        ]
    finally:
        with runtime.catalog.write() as tx:
            pins.unpin_all(tx, materializer.holder)


def _view(runtime: Runtime, id_: RelationId) -> Relation:
    found = load(runtime).by_id.get(id_)
    if found is None:
        raise UndefinedTableError("the view was dropped meanwhile")
    return found


class _Cut:
    """The one epoch that a refresh sees, chosen when it is first needed, and what was stored as of it since."""

    def __init__(self, runtime: Runtime, materializer: Materializer, wait: Wait) -> None:
        self._runtime = runtime
        self.materializer = materializer
        self.wait = wait
        self.refreshed: dict[RelationId, StoredSince] = {}
        self._epoch: Epoch | None = None

    def epoch(self, opened: Epoch) -> Epoch:
        """An epoch that has all that was acknowledged before `opened` was the open one; the same for all levels.

        What changed below a level is logged against the threshold of the lowest one, which was raised first.
        """
        if self._epoch is None:
            self.wait(opened)
            with self._runtime.catalog.write() as tx:
                self._epoch = control.lock(tx).readable_epoch
                pins.pin(tx, self._epoch, self.materializer.holder, self._runtime.clock.now())
        return self._epoch


class _Refreshing:
    """The refresh of one view."""

    def __init__(
        self, runtime: Runtime, view: Relation, request: RefreshRequest, cut_at: _Cut, *, by_policy: bool
    ) -> None:
        assert view.deferral is not None
        self._runtime, self._view, self._cut, self._force = runtime, view, cut_at, request.force
        self._source = load(runtime).by_id[view.deferral.source]
        self._deferral = view.deferral
        self._buckets: Buckets = buckets_of(view.deferral)
        self._window, self._by_policy = request.window, by_policy

    def run(self) -> RefreshReport:
        self._keep("looking what is stale")
        wanted = self._wanted()
        if wanted is None:
            return RefreshReport(self._view.name)
        with self._runtime.catalog.write() as tx:
            opened = deferrals.raise_threshold(tx, self._deferral.source, self._deferral.column, wanted.end)
        failpoint("refresh.threshold")
        with self._runtime.catalog.write() as tx:
            deferrals.move_logs(tx, self._deferral, self._runtime.limits.log_entries)
            if self._force:
                self._take_for_invalid(tx, wanted, opened)
            logged = touched(deferrals.view_log(tx, self._view.id))
            todo = common(self._buckets.stale(logged), (wanted,))
            if not todo:
                done = deferrals.completed(tx, self._view.id)
        failpoint("refresh.moved")
        if not todo:
            return RefreshReport(self._view.name, completed=done)
        return self._batches(todo, common(logged, (wanted,)), wanted, opened)

    def _keep(self, phase: str, done: int = 0, total: int | None = None) -> None:
        with self._runtime.catalog.write() as tx:
            self._cut.materializer.keep(tx, JobProgress(phase, done, total))

    def _take_for_invalid(self, tx: Transaction, wanted: Interval, epoch: Epoch) -> None:
        log = merged((*deferrals.view_log(tx, self._view.id), Invalidation(wanted, Epoch(epoch - 1))))
        deferrals.replace_log(tx, self._view.id, log)

    def _wanted(self) -> Interval | None:
        """The labels of the whole buckets inside the window and behind the lag; None if there are none."""
        deferral, now = self._deferral, self._runtime.clock.now()
        with self._runtime.catalog.read() as tx:
            source = load_in(self._runtime, tx).by_id[deferral.source]
            most = deferrals.completed(tx, source.id) if source.deferral is not None else FOREVER
            content = content_at(files.latest(tx, source.id), LATEST)
        if deferral.from_now:
            newest: int | None = now
        elif source.deferral is not None:
            newest = most if most != NEVER else None
        else:
            reach = reach_of(self._runtime.warehouse, source, content.files, deferral.column)
            newest = reach.high if reach.is_known else now
            if newest is not None and not deferral.integer:
                newest = min(newest, now + deferral.max_future)
        if newest is None or most == NEVER:
            return None
        window, lag = self._window, deferral.lag
        if self._by_policy:
            lag = lag if deferral.end_offset is None else max(lag, deferral.end_offset)
            if deferral.start_offset is not None:
                window = Interval(newest - deferral.start_offset, FOREVER)
        end = self._buckets.label(newest - lag)
        end = min(end, self._buckets.label(most)) if most != FOREVER else end
        inside = self._buckets.inside(window)
        if inside is None or inside.start >= end:
            return None
        return Interval(inside.start, min(inside.end, end))

    def _batches(self, todo: Intervals, logged: Intervals, wanted: Interval, opened: Epoch) -> RefreshReport:
        """Compute and store what is to be done, the newest buckets first; each batch counts by itself.

        Where chunks are kept apart, those that the log named when it was read are computed, and no more is cut from
        it: what another refresh moves there meanwhile stays for the next one.
        """
        seen = self._cut.epoch(opened)
        report = RefreshReport(self._view.name)
        bounded = common(todo, self._reach())
        pieces: list[Interval | None] = [*self._buckets.newest_first(bounded, self._deferral.batch)] or [None]
        for number, piece in enumerate(pieces, 1):
            self._runtime.require_wanted()
            # with the last one goes what lies before and between: there are no rows, and nothing is stored
            labels = todo if piece is None or number == len(pieces) else (piece,)
            if self._deferral.chunk:
                labels = common(logged, labels)
            progress = JobProgress(f'refreshing "{self._view.name}"', number, len(pieces))
            self._keep(progress.phase, number - 1, len(pieces))
            report = self._batch(piece, labels, wanted, seen, progress, report)
        assert report.epoch is not None
        self._cut.refreshed[self._view.id] = StoredSince(report.epoch, todo)
        return report

    def _reach(self) -> Intervals:
        """The labels of the buckets that can have rows, in the source or stored."""
        with self._runtime.catalog.read() as tx:
            known = load_in(self._runtime, tx)
            source = known.by_id[self._deferral.source]
            column = self._deferral.column
            while (inner := source.deferral) is not None:  # its rows are made of those below it
                source, column = known.by_id[inner.source], inner.column
            read, stored = (content_at(files.latest(tx, id_), LATEST).files for id_ in (source.id, self._view.id))
        reaches = [
            reach_of(self._runtime.warehouse, source, read, column),
            reach_of(self._runtime.warehouse, self._view, stored, self._deferral.label),
        ]
        if not all(each.is_known for each in reaches):
            return (self._buckets.storable,)
        ends = [(each.low, each.high) for each in reaches]
        found = [Interval(low, high + 1) for low, high in ends if low is not None and high is not None]
        return common(self._buckets.around(found), (self._buckets.storable,))

    def _batch(
        self,
        piece: Interval | None,
        labels: Intervals,
        wanted: Interval,
        seen: Epoch,
        progress: JobProgress,
        before: RefreshReport,
    ) -> RefreshReport:
        with self._runtime.catalog.read() as tx:
            position = writes.position_at(tx, control.look(tx).readable_epoch)
        made = self._difference(piece, common(labels, (piece,)), seen) if piece is not None else {self._view.id: []}
        failpoint("refresh.written")
        # what children have to compute again, they are told by the log that is handed down
        untold = ((self._deferral.label, ()),)
        write = Write(
            tuple(RelationWrite(id_, tuple(new), EVERYTHING, position, times=untold) for id_, new in made.items())
        )
        try:
            epoch = self._enter(write, labels, wanted, seen, progress)
        except StepwellError:
            for each in write.relations:
                discard(self._runtime, each)
            raise
        failpoint("refresh.batch")
        self._cut.wait(epoch)
        counts = total(made[self._view.id])
        return RefreshReport(
            before.view,
            before.batches + 1,
            before.inserted + counts.inserted,
            before.retracted + counts.retracted,
            wanted.end,
            epoch,
        )

    def _difference(self, piece: Interval, chunks: Intervals, epoch: Epoch) -> Made:
        """What the query gives for some buckets at an epoch less what is stored of them, as files."""
        reads = DeferredReads(self._runtime, self._runtime.spark.under(()), epoch, self._cut.refreshed)
        with self._runtime.doing(f'refreshing view "{self._view.name}"'), translated():
            if self._deferral.chunk:
                return touched_chunks(self._runtime, reads, self._view, chunks)
            return whole_buckets(self._runtime, reads, self._view, piece)

    def _enter(self, write: Write, labels: Intervals, wanted: Interval, seen: Epoch, progress: JobProgress) -> Epoch:
        """Let a batch count: its files, the log less what it has seen, and how far the view is complete, at once."""
        runtime, view = self._runtime, self._view
        with runtime.catalog.write() as tx:
            self._cut.materializer.keep(tx, progress)
            for each in (view, self._source):
                self._require_unchanged(tx, each)
            receipt = writes.acknowledge(tx, write, runtime.clock.now(), wants_barrier=True)
            log = deferrals.view_log(tx, view.id)
            left = cut(log, labels, seen)
            deferrals.replace_log(tx, view.id, left)
            deferrals.raise_completed(tx, view.id, wanted.end)
            handed = [each for each in within(log, labels) if each.epoch <= seen]
            for child, buckets in deferrals.readers(tx, view.id, self._deferral.label):
                deferrals.hand_down(tx, child, buckets, self._as_labels(handed), runtime.limits.log_entries)
            failpoint("refresh.enter.inside")
        return Epoch(receipt.epoch)

    def _as_labels(self, entries: list[Invalidation]) -> InvalidationLog:
        """What children are told: the buckets of some entries of the log."""
        found = [Invalidation(each, entry.epoch) for entry in entries for each in self._buckets.stale((entry.range,))]
        return merged(found)

    def _require_unchanged(self, tx: Transaction, relation: Relation) -> None:
        """DDL ends a refresh at its next batch: what it goes by is no longer so."""
        found = relations.by_id(tx, relation.id)
        if found is None:
            raise UndefinedTableError(f'{relation.kind} "{relation.name}" was dropped meanwhile')
        if found != relation:
            raise StepwellError(
                f'{relation.kind} "{relation.name}" was altered meanwhile',
                detail=f'What the refresh of "{self._view.name}" has stored before stays.',
                hint="REFRESH it again for the rest.",
                sqlstate="55000",
            )

"""Continuous aggregates as they are read: what is stored of them where that is fresh, and the rest computed.

The faces of a deferred view v: `v` shows what its query says, at every moment; `v$stored` what refreshes have stored;
`v$direct` computes the query, over the direct faces of deferred views below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import DataFrame, SparkSession

from stepwell.algebra.nodes import Fresh, Moment
from stepwell.algebra.printing import scan_name
from stepwell.catalog import Transaction, barriers, deferrals, files
from stepwell.engine.definitions import Definitions, load_in
from stepwell.engine.runtime import Runtime
from stepwell.model.buckets import Buckets
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.intervals import ALWAYS, Interval, Intervals, common, united, without
from stepwell.model.invalidations import touched
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import Deferral, RelationId
from stepwell.model.watermarks import FOREVER, NEVER
from stepwell.plan import Content, content_at
from stepwell.plan.programs import lowered, printed
from stepwell.rules.blocks import GroupBlock, restored, rows_of
from stepwell.rules.programs import Occasion
from stepwell.rules.recompute import build
from stepwell.storage import content_within, is_within, scan_content


class Face(StrEnum):
    """How a deferred view is looked at."""

    USER = "user"
    STORED = "stored"
    DIRECT = "direct"


FACES = (Face.STORED, Face.DIRECT)
"""Those that have a name of their own, behind a dollar sign."""


def buckets_of(deferral: Deferral) -> Buckets:
    return Buckets(deferral.transfer, deferral.integer)


def stale_labels(tx: Transaction, known: Definitions, view: Relation, at: Epoch | None) -> Intervals:
    """The labels of the buckets that cannot be taken from what is stored: at an epoch, or as all that is said now."""
    deferral = view.deferral
    assert deferral is not None
    watched = [(deferral.source, deferral.column), *((id_, deferrals.DIMENSION) for id_ in deferral.dimensions)]
    ranges = [each for id_, column in watched for each in touched(deferrals.source_log(tx, id_, column, at))]
    source = known.by_id[deferral.source]
    if source.deferral is not None:
        ranges += stale_labels(tx, known, source, at)
    buckets, done = buckets_of(deferral), deferrals.completed(tx, view.id, at)
    unfinished = (ALWAYS,) if done == NEVER else (Interval(done, FOREVER),)
    logged = touched(deferrals.view_log(tx, view.id, at))
    return united((*buckets.around(ranges), *logged, *unfinished, *without((ALWAYS,), (buckets.storable,))))


@dataclass(frozen=True, slots=True)
class StoredSince:
    """Buckets of a view that a refresh has computed as of an earlier epoch, and that are stored from `since` on."""

    since: Epoch
    labels: Intervals


class DeferredReads:
    """Deferred views at one epoch, in a session; of some views `refreshed` is stored since, as of that epoch."""

    def __init__(
        self,
        runtime: Runtime,
        session: SparkSession,
        epoch: Epoch,
        refreshed: Mapping[RelationId, StoredSince] | None = None,
    ) -> None:
        self._runtime = runtime
        self._session = session
        self._epoch = epoch
        self._refreshed = refreshed or {}
        self.bytes = 0
        """How much of stored relations was offered to Spark."""
        self.offered: list[str] = []
        """The files of sources and dimensions that were offered to Spark."""
        with runtime.catalog.read() as tx:
            self._known = load_in(runtime, tx, epoch)

    def face(self, view: Relation, face: Face, wanted: Intervals = (ALWAYS,), *, nulls: bool = True) -> DataFrame:
        """The rows of a view, or those of some labels, with identities; the bucket of no time with them or not."""
        deferral = view.deferral
        assert deferral is not None
        if face == Face.STORED or (face == Face.USER and deferral.materialized_only):
            return self._stored(view, wanted)
        if face == Face.DIRECT:
            return self.computed(view, wanted, Face.DIRECT, nulls=nulls)
        stale, since = self._stale(view), self._since(view)
        fresh = self._stored(view, without(without(wanted, stale), since.labels))
        if self._holds(view, deferral.label, common(wanted, since.labels), at=since.since):
            fresh = fresh.unionByName(self._stored(view, common(wanted, since.labels), since.since))
        if not self._has_input(view, common(wanted, stale), nulls=nulls):
            return fresh
        return fresh.unionByName(self.computed(view, common(wanted, stale), Face.USER, nulls=nulls))

    def _since(self, view: Relation) -> StoredSince:
        return self._refreshed.get(view.id, StoredSince(self._epoch, ()))

    def _stale(self, view: Relation) -> Intervals:
        """The labels of a view that are stored neither at the epoch nor, as of it, since."""
        with self._runtime.catalog.read() as tx:
            return without(stale_labels(tx, self._known, view, self._epoch), self._since(view).labels)

    def computed(self, view: Relation, labels: Intervals, source_face: Face, *, nulls: bool) -> DataFrame:
        """What the query of a view gives for some labels, over a face of its source if that is deferred."""
        deferral, block = view.deferral, restored(view.view.plan)
        if deferral is None or not isinstance(block, GroupBlock):
            raise StepwellError(
                f'view "{view.name}" was planned by another version of stepwell', hint="DROP it, and CREATE it again."
            )
        frames = {each.relation: self._input(view, each.relation, labels, source_face, nulls=nulls)
                  for each in view.view.inputs}  # fmt: skip
        program = lowered(build(block, Occasion(view.columns, frozenset(), Fresh(rows_of(block).tree))), block)
        with self._runtime.analyzing:
            self._offer(view, frames)
            rows = self._session.sql(printed(program))
        type_ = view.column(deferral.label).type
        return rows.drop(DIFF).where(is_within(deferral.label, type_, labels, nulls=nulls))

    def _offer(self, view: Relation, frames: Mapping[RelationId, DataFrame]) -> None:
        for each in view.view.inputs:
            names = [quote(name) for name in each.columns]
            frame = frames[each.relation].select(*names, ROW_ID)
            frame.createOrReplaceTempView(scan_name(each.relation, Moment.AFTER))

    def _input(
        self, view: Relation, id_: RelationId, labels: Intervals, source_face: Face, *, nulls: bool
    ) -> DataFrame:
        """What a view reads of a relation: of its source the times of some labels, of a dimension everything."""
        relation, deferral = self._known.by_id[id_], view.deferral
        assert deferral is not None
        if id_ != deferral.source:
            return self._scan(relation, self._content(relation))
        times = buckets_of(deferral).times(labels)
        if relation.deferral is not None:
            return self.face(relation, source_face, times, nulls=nulls)
        type_ = relation.column(deferral.column).type
        rows = self._scan(relation, self._within(relation, deferral.column, times, nulls=nulls))
        return rows.where(is_within(deferral.column, type_, times, nulls=nulls))

    def _has_input(self, view: Relation, labels: Intervals, *, nulls: bool) -> bool:
        """Whether there can be a row of the source for some labels: no bucket is made of nothing."""
        deferral = view.deferral
        assert deferral is not None
        source, times = self._known.by_id[deferral.source], buckets_of(deferral).times(labels)
        if source.deferral is not None:
            label, stale, since = source.deferral.label, self._stale(source), self._since(source)
            return (
                self._has_input(source, common(times, stale), nulls=nulls)
                or self._holds(source, label, without(without(times, stale), since.labels))
                or self._holds(source, label, common(times, since.labels), at=since.since)
            )
        return self._holds(source, deferral.column, times, nulls=nulls)

    def has_stored(self, view: Relation, labels: Intervals) -> bool:
        """Whether anything may be stored of a view for some labels."""
        assert view.deferral is not None
        return self._holds(view, view.deferral.label, labels)

    def _holds(
        self, relation: Relation, column: str, times: Intervals, *, nulls: bool = False, at: Epoch | None = None
    ) -> bool:
        return bool(self._within(relation, column, times, nulls=nulls, at=at).files)

    def _stored(self, view: Relation, labels: Intervals, at: Epoch | None = None) -> DataFrame:
        deferral = view.deferral
        assert deferral is not None
        rows = self._scan(view, self._within(view, deferral.label, labels, nulls=False, at=at), source=False)
        if labels == (ALWAYS,):
            return rows
        return rows.where(is_within(deferral.label, view.column(deferral.label).type, labels, nulls=False))

    def _within(
        self, relation: Relation, column: str, times: Intervals, *, nulls: bool, at: Epoch | None = None
    ) -> Content:
        content = self._content(relation, at)
        return content_within(self._runtime.warehouse, relation, content, column, times, nulls=nulls)

    def _content(self, relation: Relation, at: Epoch | None = None) -> Content:
        with self._runtime.catalog.read() as tx:
            at = barriers.require_readable(tx, self._epoch if at is None else at)
            return content_at(files.content(tx, relation.id, at), at)

    def _scan(self, relation: Relation, content: Content, *, source: bool = True) -> DataFrame:
        self.bytes += content.bytes
        if source:
            self.offered += [file.path for file in content.files]
        names = [*(quote(column.name) for column in relation.columns), ROW_ID, ROW_VERSION]
        rows = scan_content(self._session, self._runtime.warehouse, relation, content, self._runtime.limits)
        return rows.select(*names)

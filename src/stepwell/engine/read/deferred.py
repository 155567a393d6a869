"""Continuous aggregates as they are read: what is stored of them where that is fresh, and the rest computed.

The faces of a deferred view v: `v` shows what its query says, at every moment; `v$stored` what refreshes have stored;
`v$direct` computes the query, over the direct faces of deferred views below it. Where partial results are kept by
chunk, `v$state` shows those that are stored, which finished are `v$stored`, and `v$partial` computes them as a refresh
does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import DataFrame, SparkSession

from stepwell.algebra.expressions import Named
from stepwell.algebra.nodes import Fresh, Moment
from stepwell.algebra.printing import scan_name
from stepwell.algebra.states import part_names
from stepwell.catalog import Transaction, barriers, deferrals, files
from stepwell.engine.definitions import Definitions, load_in
from stepwell.engine.runtime import Runtime
from stepwell.model.buckets import Buckets
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError, UnsupportedError
from stepwell.model.files import DIFF, HIDDEN_PREFIX, ROW_ID, ROW_VERSION
from stepwell.model.intervals import ALWAYS, Interval, Intervals, common, united, without
from stepwell.model.invalidations import touched
from stepwell.model.relations import Column, Relation
from stepwell.model.types import parse_type, quote
from stepwell.model.views import Deferral, RelationId, placeholder
from stepwell.model.watermarks import FOREVER, NEVER
from stepwell.plan import Content, content_at
from stepwell.plan.order_free import is_order_free
from stepwell.plan.programs import lowered, printed
from stepwell.rules.blocks import GroupBlock, WindowBlock, inputs_of, restored, rows_of
from stepwell.rules.chunks import CHUNK, by_chunk, chunk_states, combined_rows
from stepwell.rules.groups import COUNT, states_of
from stepwell.rules.programs import STATE, Occasion, Program, key_names
from stepwell.rules.recompute import build
from stepwell.storage import chunk_number, content_within, is_within, scan_content


class Face(StrEnum):
    """How a deferred view is looked at."""

    USER = "user"
    STORED = "stored"
    DIRECT = "direct"
    STATE = "state"
    PARTIAL = "partial"


FACES = (Face.STORED, Face.DIRECT, Face.STATE, Face.PARTIAL)
"""Those that have a name of their own, behind a dollar sign."""


def buckets_of(deferral: Deferral) -> Buckets:
    return Buckets(deferral.transfer, deferral.integer, deferral.chunk)


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
    logged = buckets.stale(touched(deferrals.view_log(tx, view.id, at)))
    return united((*buckets.around(ranges), *logged, *unfinished, *without((ALWAYS,), (buckets.storable,))))


@dataclass(frozen=True, slots=True)
class StoredSince:
    """Buckets of a view that a refresh has computed as of an earlier epoch, and that are stored from `since` on."""

    since: Epoch
    labels: Intervals


def group_of(view: Relation) -> GroupBlock:
    """The GROUP BY that a deferred view is, or that its window functions are over."""
    block = restored(view.view.plan.get("grouped") or view.view.plan)
    if view.deferral is None or not isinstance(block, GroupBlock):
        raise StepwellError(
            f'view "{view.name}" was planned by another version of stepwell', hint="DROP it, and CREATE it again."
        )
    return block


def _windows_of(view: Relation) -> WindowBlock | None:
    """The window functions of a view over its groups, if it has any."""
    block = restored(view.view.plan)
    return block if isinstance(block, WindowBlock) else None


def group_by_chunk(view: Relation) -> GroupBlock:
    """The same with the chunk of the source as one key more."""
    assert view.deferral is not None
    block = by_chunk(group_of(view), int(view.deferral.source))
    assert block is not None, "that was asked when the view was created"
    return block


def state_names(group: GroupBlock) -> list[tuple[str, str]]:
    """The columns of partial results, each with the name that a user sees: that of its key or its result, numbered."""
    shown = {item.name: name for item, name in zip(group.items, group.names, strict=True) if isinstance(item, Named)}
    *keys, chunk = key_names(group)
    found = [(key, shown.get(key, key.removeprefix(HIDDEN_PREFIX))) for key in keys]
    found += [(chunk, "chunk"), (COUNT, "rows")]
    for index, state in enumerate(states_of(group)):
        said = shown.get(f"_sw_r{index}", f"r{index}")
        found += [(name, f"{said}_{number}") for number, name in enumerate(part_names(index, state))]
    return found


def _occasion(view: Relation, block: GroupBlock) -> Occasion:
    return Occasion(view.columns, frozenset(), Fresh(rows_of(block).tree))


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
        self.session = session
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
        if face in (Face.STATE, Face.PARTIAL):
            return self._states(view, face)
        if face == Face.STORED or (face == Face.USER and deferral.materialized_only):
            return self._stored(view, wanted)
        if face == Face.DIRECT:
            return self.direct(view, wanted, nulls=nulls)
        stale, since = self._stale(view), self._since(view)
        fresh = self._stored(view, without(without(wanted, stale), since.labels))
        if self._holds(view, deferral.label, common(wanted, since.labels), at=since.since):
            fresh = fresh.unionByName(self._stored(view, common(wanted, since.labels), since.since))
        if not self._has_input(view, common(wanted, stale), nulls=nulls):
            return fresh
        return fresh.unionByName(self.computed(view, common(wanted, stale), Face.USER, nulls=nulls))

    def _states(self, view: Relation, face: Face) -> DataFrame:
        """The partial results of a view under names that a user knows: those that are stored, or all, computed."""
        if view.view.state is None:
            raise UnsupportedError(
                f'view "{view.name}" keeps no partial results',
                detail="They are kept by chunk of the source, where a bucket can have several and all aggregates can be"
                " put together from parts. Other buckets are stored as a whole.",
                hint=f"{view.name}$stored shows those.",
            )
        shown = [f"{name} AS {quote(said)}" for name, said in state_names(group_by_chunk(view))]
        if face == Face.STATE:
            return self.stored_states(view, (ALWAYS,)).selectExpr(*shown)
        return self.chunk_states(view, (ALWAYS,), exact=True, nulls=True).selectExpr(*shown)

    def _since(self, view: Relation) -> StoredSince:
        return self._refreshed.get(view.id, StoredSince(self._epoch, ()))

    def _stale(self, view: Relation) -> Intervals:
        """The labels of a view that are stored neither at the epoch nor, as of it, since."""
        with self._runtime.catalog.read() as tx:
            return without(stale_labels(tx, self._known, view, self._epoch), self._since(view).labels)

    def computed(
        self, view: Relation, labels: Intervals, source_face: Face, *, nulls: bool, exact: bool = True
    ) -> DataFrame:
        """What the query of a view gives for some labels, over a face of its source if that is deferred.

        One that is not `exact` is faster, and fails when it is run if it meets a value that it cannot add.
        """
        deferral, block = view.deferral, group_of(view)
        assert deferral is not None
        times = buckets_of(deferral).times(labels)
        frames = self._inputs(view, times, source_face, nulls=nulls)
        windows = _windows_of(view)
        if windows is None:
            rows = self._evaluated(view, block, build(block, _occasion(view, block), exact=exact), frames)
        else:
            types = map(parse_type, view.view.plan["types"])
            columns = tuple(Column(name, type_) for name, type_ in zip(block.names, types, strict=True))
            program = build(block, Occasion(columns, frozenset(), Fresh(rows_of(block).tree)), exact=exact)
            rows = self._windowed(view, windows, self._evaluated(view, block, program, frames).drop(DIFF))
        type_ = view.column(deferral.label).type
        return rows.drop(DIFF).where(is_within(deferral.label, type_, labels, nulls=nulls))

    def _windowed(self, view: Relation, windows: WindowBlock, groups: DataFrame) -> DataFrame:
        """What window functions make of groups."""
        (inner,) = inputs_of(windows)
        occasion = Occasion(view.columns, frozenset(), Fresh(rows_of(windows).tree, windows.top))
        with self._runtime.analyzing:
            groups.createOrReplaceTempView(scan_name(inner, Moment.AFTER))
            return self.session.sql(printed(build(windows, occasion)))

    def direct(self, view: Relation, labels: Intervals = (ALWAYS,), *, nulls: bool = True) -> DataFrame:
        """What the user's text gives for some labels, run by Spark as it stands over the direct faces below.

        Where the text leaves an order open, that is made total first, by the algebra.
        """
        deferral = view.deferral
        assert deferral is not None
        if not self._is_order_free(view):
            return self.computed(view, labels, Face.DIRECT, nulls=nulls)
        times = buckets_of(deferral).times(labels)
        frames = self._inputs(view, times, Face.DIRECT, nulls=nulls)
        with self._runtime.analyzing:
            for each in view.view.inputs:
                frame = frames[each.relation].select(*(quote(name) for name in each.columns))
                frame.createOrReplaceTempView(placeholder(each.relation))
            rows = self.session.sql(view.view.bound).toDF(*(column.name for column in view.columns))
        type_ = view.column(deferral.label).type
        return rows.where(is_within(deferral.label, type_, labels, nulls=nulls))

    def _is_order_free(self, view: Relation) -> bool:
        """Whether the text of a view, and of those below it that are deferred, can be run as it stands."""
        assert view.deferral is not None
        source = self._known.by_id[view.deferral.source]
        windows = _windows_of(view)
        return (
            is_order_free(group_of(view))
            and (windows is None or is_order_free(windows))
            and (source.deferral is None or self._is_order_free(source))
        )

    def chunk_states(self, view: Relation, times: Intervals, *, exact: bool, nulls: bool = False) -> DataFrame:
        """The partial results of the rows of some times, by bucket, chunk and group, as they are stored."""
        deferral, block = view.deferral, group_by_chunk(view)
        assert deferral is not None
        frames = self._inputs(view, times, Face.USER, nulls=nulls)
        source = self._known.by_id[deferral.source]
        frames[source.id] = frames[source.id].withColumn(CHUNK, chunk_number(source))
        return self._evaluated(view, block, chunk_states(block, _occasion(view, block), exact=exact), frames)

    def combined(self, view: Relation, states: DataFrame) -> DataFrame:
        """The rows that partial results come to."""
        block = group_by_chunk(view)
        program = lowered(combined_rows(block, _occasion(view, block)), block)
        with self._runtime.analyzing:
            states.createOrReplaceTempView(STATE)
            return self.session.sql(printed(program)).drop(DIFF)

    def stored_states(self, view: Relation, labels: Intervals) -> DataFrame:
        """The partial results that are stored of some buckets."""
        state, label = self.state_of(view), self.state_of(view).key[0]
        content = self._within(state, label, labels, nulls=False)
        rows = self._scan(state, content, source=False)
        return rows.where(is_within(label, state.column(label).type, labels, nulls=False))

    def state_of(self, view: Relation) -> Relation:
        state = self._known.state_of(view)
        assert state is not None, "partial results are kept of views with chunks only"
        return state

    def _evaluated(
        self, view: Relation, block: GroupBlock, program: Program, frames: Mapping[RelationId, DataFrame]
    ) -> DataFrame:
        """The rows of a program of a view over some rows of what it reads."""
        with self._runtime.analyzing:
            for each in view.view.inputs:
                frame = frames[each.relation]
                held = [name for name in (CHUNK,) if name in frame.columns]
                frame = frame.select(*(quote(name) for name in each.columns), ROW_ID, *held)
                frame.createOrReplaceTempView(scan_name(each.relation, Moment.AFTER))
            return self.session.sql(printed(lowered(program, block)))

    def _inputs(
        self, view: Relation, times: Intervals, source_face: Face, *, nulls: bool
    ) -> dict[RelationId, DataFrame]:
        """What a view reads, by relation."""
        ids = [each.relation for each in view.view.inputs]
        return {id_: self._input(view, id_, times, source_face, nulls=nulls) for id_ in ids}

    def _input(self, view: Relation, id_: RelationId, times: Intervals, source_face: Face, *, nulls: bool) -> DataFrame:
        """What a view reads of a relation: of its source the rows of some times, of a dimension everything."""
        relation, deferral = self._known.by_id[id_], view.deferral
        assert deferral is not None
        if id_ != deferral.source:
            return self._scan(relation, self._content(relation))
        if relation.deferral is not None and source_face == Face.DIRECT and not self._is_order_free(view):
            return self.computed(relation, times, Face.DIRECT, nulls=nulls)  # with identities, all the way down
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

    def has_stored(self, relation: Relation, labels: Intervals) -> bool:
        """Whether anything may be stored for some labels of a view, or of its partial results."""
        label = relation.key[0] if relation.deferral is None else relation.deferral.label
        return self._holds(relation, label, labels)

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
        rows = scan_content(self.session, self._runtime.warehouse, relation, content, self._runtime.limits)
        return rows.select(*names)

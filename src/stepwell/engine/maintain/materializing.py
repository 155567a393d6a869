"""Materializing: what a batch of a refresh writes. What its buckets come to at an epoch, less what is stored of them.

Where a view keeps partial results, those of the touched chunks are computed anew, and the rows of their buckets are
finished from these and from the chunks that nothing has touched.
"""

from __future__ import annotations

from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from stepwell.algebra.aggregates import REFOLD
from stepwell.engine.read.deferred import DeferredReads, Face, buckets_of
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.results import write_result
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION, NewFile
from stepwell.model.intervals import Interval, Intervals
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import RelationId
from stepwell.storage import scan_delta

Made = dict[RelationId, list[NewFile]]
"""The files of a batch, by relation."""

_VERSION = [ROW_ID, ROW_VERSION]


def whole_buckets(runtime: Runtime, reads: DeferredReads, view: Relation, labels: Interval) -> Made:
    """The change of some buckets, each computed as a whole."""
    stored = reads.face(view, Face.STORED, (labels,)) if reads.has_stored(view, (labels,)) else None

    def change(exact: bool) -> Made:
        new = reads.computed(view, (labels,), Face.USER, nulls=False, exact=exact)
        return {view.id: _written(runtime, reads, view, new, stored)}

    return _fast_or_exact(change)


def touched_chunks(runtime: Runtime, reads: DeferredReads, view: Relation, times: Intervals) -> Made:
    """The change of the buckets that some chunks are in, where nothing but these chunks was touched."""
    return _fast_or_exact(lambda exact: _of_chunks(runtime, reads, view, times, exact=exact))


def _fast_or_exact(change: Callable[[bool], Made]) -> Made:
    """A change computed the fast way, or exactly if it meets a value that only so can be added."""
    try:
        return change(False)
    except (PySparkException, Py4JJavaError) as error:
        if REFOLD not in str(error):
            raise
    return change(True)


def _of_chunks(runtime: Runtime, reads: DeferredReads, view: Relation, times: Intervals, *, exact: bool) -> Made:
    assert view.deferral is not None
    state, width = reads.state_of(view), view.deferral.chunk
    labels = buckets_of(view.deferral).around(times)
    new = reads.chunk_states(view, times, exact=exact)
    there = reads.stored_states(view, labels) if reads.has_stored(state, labels) else None
    touched = " OR ".join(
        f"({state.key[1]} >= {each.start // width} AND {state.key[1]} < {-(-each.end // width)})" for each in times
    )
    files = _written(runtime, reads, state, new, there.where(touched) if there is not None else None)
    if not files:  # what was touched has come to the same
        return {view.id: [], state.id: []}
    change = scan_delta(reads.session, runtime.warehouse, state, [file.staged(state.id) for file in files])
    after, stored = change, None
    if there is not None:
        after = there.join(change.where(f"{DIFF} < 0").select(*_VERSION), _VERSION, "left_anti")
        after = after.unionByName(change.where(f"{DIFF} > 0").select(*after.columns))
        stored = reads.face(view, Face.STORED, labels)
    return {view.id: _written(runtime, reads, view, reads.combined(view, after), stored), state.id: files}


def _written(
    runtime: Runtime, reads: DeferredReads, relation: Relation, new: DataFrame, stored: DataFrame | None
) -> list[NewFile]:
    """new − stored, as files; all of it where nothing is stored."""
    names = [*(quote(column.name) for column in relation.columns), *_VERSION]
    if stored is None:
        return write_result(runtime, relation, new.select(*names), reads=reads.bytes)
    new = new.select(*names).persist()
    try:
        came = new.join(stored.select(*_VERSION), _VERSION, "left_anti").withColumn(DIFF, F.lit(1).cast("bigint"))
        went = stored.join(new.select(*_VERSION), _VERSION, "left_anti").withColumn(DIFF, F.lit(-1).cast("bigint"))
        changes = came.select(*names, DIFF).unionByName(went.select(*names, DIFF))
        return write_result(runtime, relation, changes, reads=reads.bytes, signed=True)
    finally:
        new.unpersist()

"""The barrier: how an epoch goes from open to readable, and how a crash in between is mended.

Close it; consolidate what several writers did to one relation; commit; publish; make it readable. Each step is one
transaction or can be repeated, so whoever comes next goes on from the last one that was reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from stepwell.catalog import barriers, files, leases, lives
from stepwell.catalog.barriers import Consolidated, Derived
from stepwell.engine.definitions import load, load_in
from stepwell.engine.failures import translated
from stepwell.engine.lead.publishing import publish_with_epoch
from stepwell.engine.maintain.maintenance import maintain
from stepwell.engine.read.consolidation import consolidate
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.results import write_result
from stepwell.model.epochs import Epoch, EpochState
from stepwell.model.errors import InternalError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import EPOCH, DataFile, NewFile
from stepwell.model.intervals import Intervals
from stepwell.model.relations import Relation
from stepwell.model.views import RelationId
from stepwell.plan import needs_consolidation
from stepwell.storage import scan_changes, touched_times


def run_barrier(runtime: Runtime, term: int) -> tuple[Epoch, list[RelationId]]:
    """Close the open epoch and make it readable; which relations it changed."""
    with runtime.catalog.write() as tx:
        epoch = barriers.close(tx, term, runtime.clock.now())
    failpoint("barrier.aligned")
    _commit(runtime, term, epoch)
    return epoch, _publish_and_finish(runtime, term, epoch)


def recover(runtime: Runtime, term: int) -> None:
    """Finish the epochs that somebody before us has begun to close."""
    with runtime.catalog.read() as tx:
        unfinished = barriers.unfinished(tx)
    for record in unfinished:
        if record.state == EpochState.ALIGNED:
            _commit_again(runtime, term, record.epoch)
        _publish_and_finish(runtime, term, record.epoch)


def _commit_again(runtime: Runtime, term: int, epoch: Epoch) -> None:
    """Commit an epoch that was begun before; one that stepwell is wrong about, without the views that stand aside.

    An epoch is maintained by what was in force at it. Where that cannot be done, a view that was paused, replaced or
    dropped since stays as it was before the epoch, so that everything else goes on.
    """
    try:
        _commit(runtime, term, epoch)
    except InternalError:
        with runtime.catalog.read() as tx:
            changed = lives.changed_since(tx, epoch)
        if not changed:
            raise
        _commit(runtime, term, epoch, changed)


def _commit(runtime: Runtime, term: int, epoch: Epoch, without: AbstractSet[RelationId] = frozenset()) -> None:
    with runtime.catalog.read() as tx:
        by_id = load_in(runtime, tx, epoch).by_id
        written = files.written_in(tx, epoch)
    consolidated = [
        Consolidated(tuple(group), tuple(_consolidate(runtime, by_id[id_], group, epoch)))
        for id_, group in written.items()
        if id_ in by_id and needs_consolidation(group)
    ]
    derived = _derive(runtime, epoch, written, consolidated, without)
    failpoint("barrier.commit.before")
    with runtime.catalog.write() as tx:
        barriers.commit(tx, term, epoch, consolidated, derived, runtime.clock.now(), runtime.limits.log_entries)
    failpoint("barrier.committed")


def _derive(
    runtime: Runtime,
    epoch: Epoch,
    written: dict[RelationId, list[DataFile]],
    consolidated: list[Consolidated],
    without: AbstractSet[RelationId],
) -> Derived:
    """What the epoch does to the views."""
    deltas: dict[RelationId, list[DataFile]] = dict(written)
    for each in consolidated:
        relation = RelationId(each.inputs[0].relation)
        deltas[relation] = [file.staged(relation) for file in each.outputs]
    made = maintain(runtime, epoch, deltas, without)
    known = load(runtime, epoch)
    hidden = frozenset(id_ for id_, relation in known.by_id.items() if relation.is_hidden)
    touched = {
        id_: _touched(runtime, known.by_id[id_], new, () if id_ in made.replaced else known.watched[id_])
        for id_, new in made.files.items()
        if id_ in known.watched and (new or id_ in made.replaced)
    }
    return Derived(made.files, made.refreshes, made.outcomes, made.marks, made.late, hidden, made.replaced, touched)


def _touched(
    runtime: Runtime, relation: Relation, new: Sequence[NewFile], columns: Iterable[str]
) -> dict[str, Intervals]:
    """The times that the files of a view touch, by time column."""
    staged = tuple(file.staged(relation.id) for file in new)
    return {name: touched_times(runtime.warehouse, relation, staged, name, runtime.limits) for name in columns}


def _publish_and_finish(runtime: Runtime, term: int, epoch: Epoch) -> list[RelationId]:
    with runtime.publishing:
        with runtime.catalog.write() as tx:
            leases.check(tx, term)
        with runtime.catalog.read() as tx:
            written = files.written_in(tx, epoch)
            there = load_in(runtime, tx, epoch).by_id.values()
            known = [each for each in there if each.is_stored and not each.is_hidden]
            unpublished = barriers.unpublished(tx)
        publications = []
        for relation in known:
            if relation.id in written or relation.id in unpublished:
                publication = publish_with_epoch(runtime, relation.id, epoch)
                if publication:
                    publications.append((relation.id, publication))
        failpoint("publish.after")
        with runtime.catalog.write() as tx:
            barriers.finish(tx, term, epoch, publications, runtime.clock.now())
    failpoint("barrier.readable")
    runtime.links.follow({relation.name: relation.id for relation in known})
    return list(written)


def _consolidate(runtime: Runtime, relation: Relation, group: list[DataFile], epoch: Epoch) -> list[NewFile]:
    """One changelog for what several writers acknowledged in one epoch."""
    with translated():
        session = runtime.spark.session
        whole = scan_changes(session, runtime.warehouse, relation, group, Epoch(epoch - 1), epoch).drop(EPOCH)
        delta = consolidate(whole)
        return write_result(runtime, relation, delta, reads=sum(file.statistics.bytes for file in group), signed=True)

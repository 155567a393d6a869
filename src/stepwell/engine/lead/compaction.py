"""Compaction as it is done: the merges and folds of the plan, committed only if their inputs are still there."""

from __future__ import annotations

from stepwell.catalog import control, files, relations
from stepwell.engine.failures import translated
from stepwell.engine.lead.publishing import publish_after_compaction
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.results import write_frame, write_result
from stepwell.model.epochs import Epoch
from stepwell.model.errors import ConflictError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DataFile, NewFile, Store
from stepwell.model.limits import Limits
from stepwell.model.relations import Relation
from stepwell.model.views import RelationId
from stepwell.plan import Content, FileMerge, Fold, choose_fold, choose_merge
from stepwell.storage import concatenate, scan_content, scan_files


def merge_small(runtime: Runtime, id_: RelationId) -> bool:
    """Do the merges of a relation that need no Spark; whether any was done."""
    done = False
    while True:
        relation, known, epoch = _look(runtime, id_)
        merge = choose_merge(known, epoch, runtime.limits, _width(relation)) if relation else None
        if relation is None or merge is None or not _is_small(merge, runtime.limits):
            break
        output = concatenate(runtime.warehouse, relation, merge.inputs, merge.store, f"{runtime.attempt()}.parquet")
        if not _supersede(runtime, relation, merge, [output]):
            break
        done = True
    if done and relation is not None:
        publish_after_compaction(runtime, id_)
    return done


def compact(runtime: Runtime, id_: RelationId, *, fold_now: bool = False) -> bool:
    """Do the merges and the fold that a relation needs, with Spark; `fold_now` however little is pending."""
    done = merge_small(runtime, id_)
    while not runtime.stopping.is_set():
        relation, known, epoch = _look(runtime, id_)
        if relation is None:
            return done
        fold = choose_fold(known, epoch, runtime.limits, now=fold_now)
        merge = choose_merge(known, epoch, runtime.limits, _width(relation)) if fold is None else None
        if fold is not None:
            changed = _fold(runtime, relation, fold)
        elif merge is not None:
            changed = _merge(runtime, relation, merge)
        else:
            return done
        if not changed:
            return done
        publish_after_compaction(runtime, id_)
        done = True
    return done


def needs_spark(runtime: Runtime, id_: RelationId) -> bool:
    """Whether a relation wants a compaction that `merge_small` cannot do."""
    relation, known, epoch = _look(runtime, id_)
    if relation is None:
        return False
    return (
        choose_fold(known, epoch, runtime.limits) is not None
        or choose_merge(known, epoch, runtime.limits, _width(relation)) is not None
    )


def _is_small(merge: FileMerge, limits: Limits) -> bool:
    """Whether the driver can put these files together; changes are always few enough, and their order is no matter."""
    return merge.store == Store.CHANGES or merge.rows <= limits.concatenated_rows


def _look(runtime: Runtime, id_: RelationId) -> tuple[Relation | None, list[DataFile], Epoch]:
    with runtime.catalog.read() as tx:
        epoch = control.look(tx).readable_epoch
        relation = relations.by_id(tx, id_)
        return relation, files.latest(tx, id_), epoch


def _width(relation: Relation) -> int | None:
    return relation.chunking.width if relation.chunking else None


def _merge(runtime: Runtime, relation: Relation, merge: FileMerge) -> bool:
    if _is_small(merge, runtime.limits):
        outputs = [concatenate(runtime.warehouse, relation, merge.inputs, merge.store, f"{runtime.attempt()}.parquet")]
    else:
        with translated():
            frame = scan_files(runtime.spark.session, runtime.warehouse, relation, merge.inputs)
            if not relation.chunking:
                frame = frame.coalesce(max(1, merge.rows // runtime.limits.settled_rows))
            outputs = write_frame(runtime, relation, merge.store, frame, signed=False)
    return _supersede(runtime, relation, merge, outputs)


def _fold(runtime: Runtime, relation: Relation, fold: Fold) -> bool:
    content = Content(fold.touched, fold.changes)
    with translated():
        frame = scan_content(runtime.spark.session, runtime.warehouse, relation, content, runtime.limits)
        outputs = write_result(runtime, relation, frame, reads=content.bytes)
    failpoint("fold.written")
    try:
        with runtime.catalog.write() as tx:
            files.close(tx, relation.id, content.files, outputs, fold.epoch, runtime.clock.now())
    except ConflictError:
        _delete(runtime, relation, outputs)
        return False
    failpoint("fold.committed")
    return True


def _supersede(runtime: Runtime, relation: Relation, merge: FileMerge, outputs: list[NewFile]) -> bool:
    failpoint("merge.written")
    try:
        with runtime.catalog.write() as tx:
            files.supersede(tx, relation.id, merge.inputs, outputs, runtime.clock.now())
    except ConflictError:
        _delete(runtime, relation, outputs)
        return False
    failpoint("merge.committed")
    return True


def _delete(runtime: Runtime, relation: Relation, outputs: list[NewFile]) -> None:
    for file in outputs:
        runtime.warehouse.delete(runtime.warehouse.path(relation.id, file.store, file.path))

"""Restoring a checkpoint into an empty warehouse: files first, then the whole catalog in one transaction.

The checkpoint is read to its last byte before anything is written. A mark in the warehouse says that a restore is under
way: if it fails, or its process dies, what it has copied is removed, by itself or by whoever opens the warehouse next.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepwell.catalog import exports, relations
from stepwell.engine.half_restored import clear, mark_of
from stepwell.engine.lead.publishing import publish_exactly
from stepwell.engine.processes import this_process
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import StepwellError
from stepwell.model.failpoints import failpoint
from stepwell.storage import CheckpointFolder, copy_file, write_whole


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored."""

    epoch: int
    relations: int
    files: int
    bytes: int


def restore(runtime: Runtime, path: str, epoch: int | None) -> RestoreReport:
    """Make an empty warehouse what the checkpoint of an epoch is of, or the newest; it goes on from there."""
    _require_empty(runtime)
    folder = CheckpointFolder(path)
    manifest = folder.choose(epoch)
    with runtime.doing("reading the checkpoint"):
        rows = exports.brought_up(folder.read_rows(manifest), manifest.revision)
        files = exports.files_of(rows)
        folder.require_whole(files)
    warehouse = runtime.warehouse
    write_whole(warehouse, mark_of(warehouse), [this_process().encode()])
    failpoint("restore.marked")
    try:
        for number, file in enumerate(files):
            with runtime.doing(f"copying file {number + 1} of {len(files)}"):
                copy_file(folder.place, warehouse, file, runtime.require_wanted)
            failpoint("restore.copied")
        with runtime.catalog.write() as tx:
            exports.take_over(tx, rows, runtime.clock.now())
            failpoint("restore.inside")
    except BaseException:
        clear(warehouse)
        raise
    failpoint("restore.committed")
    warehouse.delete(mark_of(warehouse))
    failpoint("restore.unmarked")
    with runtime.catalog.read() as tx:
        known = [each for each in relations.get_all(tx) if each.is_stored]
    for relation in known:
        publish_exactly(runtime, relation.id)
    shown = [each for each in known if not each.is_hidden]
    return RestoreReport(manifest.epoch, len(shown), manifest.files, manifest.bytes)


def _require_empty(runtime: Runtime) -> None:
    with runtime.catalog.read() as tx:
        is_unused = exports.is_unused(tx)
    if not is_unused or runtime.warehouse.list(f"{runtime.warehouse.root}/data"):
        raise StepwellError(
            f'the warehouse "{runtime.warehouse.url}" is not empty',
            detail="A checkpoint is restored into a warehouse in which nothing was ever created.",
            hint="Choose a folder that is not there yet, and a catalog of its own.",
            sqlstate="55000",
        )

"""Taking a checkpoint: the catalog as of one readable epoch, and every file that it names, while work goes on.

The epoch is pinned while its files are copied. Those that are there already are not copied again. A checkpoint is there
once its manifest is, which is written last; until then, and whatever happens, those from before are whole.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from stepwell.catalog import barriers, exports, jobs, migrate, pins
from stepwell.catalog.exports import Export
from stepwell.engine.runtime import Runtime
from stepwell.model.checkpoints import Manifest
from stepwell.model.failpoints import failpoint
from stepwell.model.files import Checksum
from stepwell.model.jobs import CheckpointRequest, JobId, JobProgress
from stepwell.storage import CheckpointFolder, copy_file
from stepwell.version import __version__


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """What a checkpoint has done: the epoch, and how many files and bytes it names and had to copy."""

    epoch: int
    files: int
    bytes: int
    copied_files: int
    copied_bytes: int


def take_checkpoint(runtime: Runtime, request: CheckpointRequest, job: JobId, term: int) -> CheckpointReport:
    """Copy the database at the newest readable epoch."""
    folder = CheckpointFolder(request.path)
    folder.create()
    with runtime.catalog.read() as tx:
        folder.require_of(exports.identity_of(tx))
    try:
        exported = _pinned(runtime, job, term)
        failpoint("checkpoint.pinned")
        return _copy(runtime, folder, exported, job, term)
    finally:
        with runtime.catalog.write() as tx:
            pins.unpin_all(tx, jobs.holder(job, term))


def _pinned(runtime: Runtime, job: JobId, term: int) -> Export:
    """The catalog at the newest readable epoch, which stays readable from here on."""
    while True:
        with runtime.catalog.read() as tx:
            exported = exports.export(tx)
        with runtime.catalog.write() as tx:
            jobs.keep(tx, job, term, JobProgress("copying files"))
            if barriers.oldest(tx) <= exported.since:  # else a vacuum was faster
                pins.pin(tx, exported.since, jobs.holder(job, term), runtime.clock.now())
                return exported


def _copy(runtime: Runtime, folder: CheckpointFolder, exported: Export, job: JobId, term: int) -> CheckpointReport:
    known = exported.files
    absent = folder.absent(known)
    sums: dict[int, int] = {}
    reported = 0
    for number, file in enumerate(absent):
        if number == 0 or reported >= runtime.limits.reported_bytes:
            reported = 0
            with runtime.catalog.write() as tx:
                jobs.keep(tx, job, term, JobProgress("copying files", number, len(absent)))
        sums[file.id] = copy_file(runtime.warehouse, folder.place, file, runtime.require_wanted)
        reported += file.statistics.bytes
        failpoint("checkpoint.copied")
    rows = {**exported.rows, "files": _with_checksums(folder, exported, sums)}
    with runtime.catalog.write() as tx:
        jobs.keep(tx, job, term, JobProgress("writing the catalog", len(absent), len(absent)))
    name, size, checksum = folder.write_rows(exported.epoch, rows)
    failpoint("checkpoint.catalog")
    total, copied = (sum(each.statistics.bytes for each in some) for some in (known, absent))
    manifest = Manifest(
        identity=rows[exports.CONTROL][0]["identity"],
        epoch=exported.epoch,
        taken_at=runtime.clock.now(),
        program=__version__,
        revision=migrate.newest_revision(),
        catalog=name,
        catalog_bytes=size,
        catalog_checksum=checksum,
        files=len(known),
        bytes=total,
    )
    with runtime.catalog.write() as tx:  # nobody else may have taken the job over
        jobs.keep(tx, job, term, JobProgress("writing the catalog", len(absent), len(absent)))
    folder.publish(manifest)
    failpoint("checkpoint.published")
    return CheckpointReport(exported.epoch, len(known), total, len(absent), copied)


def _with_checksums(folder: CheckpointFolder, exported: Export, sums: dict[int, int]) -> list[dict[str, Any]]:
    """The rows of files, those of a version that kept no checksums with the one that their copy has."""
    found = []
    for row, file in zip(exported.rows["files"], exported.files, strict=True):
        if row["checksum"] is None:
            whole = sums[file.id] if file.id in sums else folder.checksum(file)
            row = {**row, "checksum": list(astuple(Checksum(whole, 0, whole)))}
        found.append(row)
    return found

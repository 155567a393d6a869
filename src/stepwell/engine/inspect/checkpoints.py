"""CHECKPOINT and SHOW CHECKPOINTS as statements."""

from __future__ import annotations

import datetime

from stepwell.engine.inspect.refreshes import Waits, ask_for, run_job
from stepwell.engine.read.snapshots import readable_epoch
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import FIRST_EPOCH
from stepwell.model.errors import InvalidSettingError, StepwellError
from stepwell.model.jobs import CheckpointRequest
from stepwell.model.rows import Rows
from stepwell.storage import CheckpointFolder


def answer_checkpoint(runtime: Runtime, path: str, leader: Waits) -> Rows:
    """Copy the database to a place, and say what was copied; in the background only how the job is called."""
    folder = CheckpointFolder(path)
    here, there = f"{runtime.warehouse.root}/", f"{folder.place.root}/"
    if folder.place.is_local == runtime.warehouse.is_local and (there.startswith(here) or here == there):
        raise InvalidSettingError(
            f'a checkpoint cannot be inside the warehouse: "{folder.place.url}"',
            hint="Choose a folder elsewhere, best on another disk.",
        )
    leader.flush()
    if readable_epoch(runtime) < FIRST_EPOCH:
        raise StepwellError("there is nothing to copy yet: no epoch is readable", sqlstate="55000")
    folder.create()
    request = CheckpointRequest(folder.place.root if folder.place.is_local else path)  # whoever leads works elsewhere
    if runtime.switches.background:
        job = ask_for(runtime, request)
        leader.ensure_led()
        return Rows(["job"], [(job,)], notes=[f"job {job} goes on in the background; WAIT waits for it"])
    [report] = run_job(runtime, request, leader).outcome
    return Rows(list(report), [tuple(report.values())])


def show_checkpoints(path: str) -> Rows:
    """The checkpoints that are at a place."""
    rows = [
        (each.epoch, _instant(each.taken_at), each.files, each.bytes, each.program)
        for each in CheckpointFolder(path).manifests()
    ]
    return Rows(["epoch", "taken_at", "files", "bytes", "program"], rows)


def _instant(microseconds: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=microseconds)

"""What users say about jobs: CANCEL, PAUSE and RESUME, and WAIT until they have ended."""

from __future__ import annotations

from stepwell.catalog import Transaction, jobs
from stepwell.engine.define.creation import abandon_builds, view_called
from stepwell.engine.definitions import load_in
from stepwell.engine.inspect.refreshes import Waits, require_done
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import DependentsError, StepwellError
from stepwell.model.jobs import OPEN, BuildRequest, Job, JobId, JobState
from stepwell.sql.statements import ChangeJob, JobAction, WaitForJobs

_BECOMES = {
    JobAction.CANCEL: JobState.CANCELLED,
    JobAction.PAUSE: JobState.PAUSED,
    JobAction.RESUME: JobState.QUEUED,
}


def change_job(runtime: Runtime, body: ChangeJob) -> None:
    """Let an open job be cancelled, stand still or go on; one that runs hears of it at its next step."""
    with runtime.catalog.write() as tx:
        job = jobs.find(tx, JobId(body.number))
        if job is None:
            raise StepwellError(
                f"there is no job {body.number}", place=body.slice.place, hint="SHOW JOBS tells them.", sqlstate="42704"
            )
        if not _can(job, body.action):
            said = (job.wanted or job.state).value
            raise StepwellError(f"job {job.id} is {said} already", place=body.slice.place, sqlstate="55000")
        _require_nobody_waits(runtime, tx, job, body)
        jobs.want(tx, job, _BECOMES[body.action], runtime.clock.now())
    if isinstance(job.request, BuildRequest) and body.action == JobAction.CANCEL:
        abandon_builds(runtime, job.id)


def _require_nobody_waits(runtime: Runtime, tx: Transaction, job: Job, body: ChangeJob) -> None:
    """Views are not taken away from others that wait for them."""
    if body.action != JobAction.CANCEL or not isinstance(job.request, BuildRequest):
        return
    others = [each for each in jobs.get_open(tx) if isinstance(each.request, BuildRequest) and each.id != job.id]
    waiting = [each for each in others if set(job.request.views).intersection(each.request.holds)]
    if waiting:
        names = ", ".join(f'"{load_in(runtime, tx).name(each.request.shown)}"' for each in waiting
                          if isinstance(each.request, BuildRequest))  # fmt: skip
        raise DependentsError(
            f"job {job.id} cannot be cancelled: {names} waits for what it builds",
            place=body.slice.place,
            hint=f"CANCEL JOB {waiting[0].id} first.",
        )


def _can(job: Job, action: JobAction) -> bool:
    if job.state not in OPEN or job.wanted == JobState.CANCELLED:
        return False
    stands = JobState.PAUSED in (job.state, job.wanted)
    return action == JobAction.CANCEL or stands == (action == JobAction.RESUME)


def wait_for_jobs(runtime: Runtime, body: WaitForJobs, leader: Waits) -> None:
    """Return once the open jobs of a view, or all there are, have ended; an error if one of them has failed."""
    with runtime.catalog.read() as tx:
        view = view_called(tx, body.name) if body.name is not None else None
        found = [job for job in jobs.get_open(tx) if view is None or job.relation == view.id]
        if view is not None and not found:  # whoever waits wants to hear how it went
            found = [job for job in jobs.get_all(tx) if job.relation == view.id][-1:]
    standing = next((job for job in found if job.state == JobState.PAUSED), None)
    if standing is not None:
        raise StepwellError(
            f"job {standing.id} is paused", hint=f"RESUME JOB {standing.id} lets it go on.", sqlstate="55000"
        )
    for job in found:
        require_done(leader.wait_job(job.id, cancels=False))

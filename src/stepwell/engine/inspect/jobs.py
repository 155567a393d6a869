"""What users say about jobs: CANCEL, PAUSE and RESUME, and WAIT until they have ended."""

from __future__ import annotations

from stepwell.catalog import jobs
from stepwell.engine.define.creation import view_called
from stepwell.engine.inspect.refreshes import Waits, require_done
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import StepwellError
from stepwell.model.jobs import OPEN, Job, JobId, JobState
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
        jobs.want(tx, job, _BECOMES[body.action], runtime.clock.now())


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

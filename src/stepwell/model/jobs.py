"""Jobs: work that goes on beside statements and epochs, and outlives the process that asked for it.

Whoever leads carries them out, one at a time for each relation that a job holds. A job whose process dies goes on under
the next leader from what it has committed; one that was begun under an earlier term can commit nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NewType

from stepwell.model.epochs import Epoch
from stepwell.model.intervals import ALWAYS, Interval
from stepwell.model.views import RelationId

JobId = NewType("JobId", int)


class JobKind(StrEnum):
    """What is done."""

    REFRESH = "refresh"
    CHECKPOINT = "checkpoint"
    BUILD = "build"


class JobState(StrEnum):
    """How far a job is."""

    QUEUED = "queued"
    """It waits for its turn, for a relation that another job holds, or for its next attempt."""
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN = (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED)
"""Of these something is still to come."""


class AskedBy(StrEnum):
    """Who wants a job done: somebody who may be waiting for it, or the schedule of a view."""

    USER = "user"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """The refresh of a view inside a window of event time; `levels` are the views to refresh, parents first."""

    levels: tuple[RelationId, ...]
    window: Interval = ALWAYS
    force: bool = False

    @property
    def view(self) -> RelationId:
        return self.levels[-1]

    @property
    def kind(self) -> JobKind:
        return JobKind.REFRESH

    @property
    def relation(self) -> RelationId | None:
        """The relation that the job is shown with."""
        return self.view

    @property
    def holds(self) -> frozenset[RelationId | str]:
        """What no other job may work on meanwhile."""
        return frozenset(self.levels)

    def as_json(self) -> dict[str, Any]:
        return {"levels": list(self.levels), "window": [self.window.start, self.window.end], "force": self.force}

    @staticmethod
    def from_json(found: dict[str, Any]) -> RefreshRequest:
        levels = tuple(RelationId(each) for each in found["levels"])
        return RefreshRequest(levels, Interval(*found["window"]), bool(found["force"]))


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """A copy of the whole database at one epoch, into a folder or below a URL."""

    path: str

    @property
    def kind(self) -> JobKind:
        return JobKind.CHECKPOINT

    @property
    def relation(self) -> RelationId | None:
        return None

    @property
    def holds(self) -> frozenset[RelationId | str]:
        """One checkpoint at a time is written to a place."""
        return frozenset((self.path,))

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path}

    @staticmethod
    def from_json(found: dict[str, Any]) -> CheckpointRequest:
        return CheckpointRequest(found["path"])


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """The first rows of views that were created together, while everything else goes on.

    `views` are all that is built, hidden parts too, parents first; `shown` the one that the job is shown with. It
    begins after the builds of those that it `waits_for`. What is built so far is that of the epoch `position`.
    """

    views: tuple[RelationId, ...]
    shown: RelationId
    waits_for: tuple[RelationId, ...] = ()
    position: Epoch | None = None

    @property
    def kind(self) -> JobKind:
        return JobKind.BUILD

    @property
    def relation(self) -> RelationId | None:
        return self.shown

    @property
    def holds(self) -> frozenset[RelationId | str]:
        return frozenset((*self.views, *self.waits_for))

    def as_json(self) -> dict[str, Any]:
        return {
            "views": list(self.views),
            "shown": self.shown,
            "waits_for": list(self.waits_for),
            "position": self.position,
        }

    @staticmethod
    def from_json(found: dict[str, Any]) -> BuildRequest:
        views, waits_for = (tuple(RelationId(each) for each in found[name]) for name in ("views", "waits_for"))
        position = None if found["position"] is None else Epoch(found["position"])
        return BuildRequest(views, RelationId(found["shown"]), waits_for, position)


JobRequest = RefreshRequest | CheckpointRequest | BuildRequest
"""What a job is asked to do."""


def request_of(kind: JobKind, found: dict[str, Any]) -> JobRequest:
    """A request as the catalog keeps it."""
    match kind:
        case JobKind.REFRESH:
            return RefreshRequest.from_json(found)
        case JobKind.CHECKPOINT:
            return CheckpointRequest.from_json(found)
        case JobKind.BUILD:
            return BuildRequest.from_json(found)


@dataclass(frozen=True, slots=True)
class JobProgress:
    """What a job is at, in words, and how many of its steps are done; `total` is None until that is known."""

    phase: str = "waiting"
    done: int = 0
    total: int | None = None


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job has failed, as an error says it."""

    message: str
    detail: str | None = None
    hint: str | None = None
    sqlstate: str = "XX000"


@dataclass(frozen=True, slots=True)
class Job:
    """One job as the catalog knows it."""

    id: JobId
    kind: JobKind
    asked_by: AskedBy
    relation: RelationId | None
    request: JobRequest
    state: JobState
    progress: JobProgress
    attempts: int
    not_before: int
    created_at: int
    started_at: int | None = None
    ended_at: int | None = None
    wanted: JobState | None = None
    """What somebody wants a running job to be instead: paused or cancelled."""
    error: JobError | None = None
    """Why it has failed, or why its last attempt has."""
    outcome: tuple[dict[str, Any], ...] = ()
    """What it has done, once it is done."""

    @property
    def holds(self) -> frozenset[RelationId | str]:
        """What no other job may work on meanwhile."""
        return self.request.holds


def said_of_progress(job: Job) -> str:
    """What a job is at, in words."""
    progress = job.progress
    if job.state == JobState.QUEUED:
        return f"waiting for job {job.id} to begin"
    if job.state == JobState.PAUSED:
        return f"waiting for job {job.id}, which is paused"
    if not progress.total:
        return progress.phase
    step = {JobKind.REFRESH: "batch", JobKind.CHECKPOINT: "file", JobKind.BUILD: "view"}[job.kind]
    return f"{progress.phase}, {step} {min(progress.done + 1, progress.total)} of {progress.total}"


def startable(jobs: list[Job], now: int, at_once: int) -> list[Job]:
    """Of the open jobs those to begin now: the oldest first, no two with a relation in common, at most so many."""
    running = [job for job in jobs if job.state == JobState.RUNNING]
    held = {id_ for job in running for id_ in job.holds}
    found: list[Job] = []
    for job in sorted(jobs, key=lambda job: job.id):
        if job.state != JobState.QUEUED:
            continue
        if not (job.holds & held) and job.not_before <= now and len(running) + len(found) < at_once:
            found.append(job)
        held |= job.holds  # also while it waits: whoever came later waits behind it
    return found


def next_attempt(attempts: int, now: int, first_wait: int) -> int:
    """When a job that has failed so many times is tried again: each wait is twice the one before."""
    return now + (first_wait << max(0, attempts - 1))


def next_run(due: int, every: int, now: int) -> int:
    """When a schedule is due after the run that was due: runs that nobody led are one run."""
    return max(due + every, now + every - (now - due) % every)

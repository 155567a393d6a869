"""The leader's worker: it begins jobs that are asked for or due, each in a thread of its own, and hears of their end.

A job that fails is tried again if nobody waits for it. One that its leader leaves behind, dead or closed, is taken up
by the next, and goes on from what it has committed.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

from stepwell.catalog import jobs
from stepwell.engine.damages import naming_relations
from stepwell.engine.definitions import load
from stepwell.engine.failures import translated
from stepwell.engine.lead.checkpoints import take_checkpoint
from stepwell.engine.maintain.building import Builder, fail_builds
from stepwell.engine.maintain.deferred import Materializer, Wait, refresh
from stepwell.engine.running import RunningStatement
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import CancelledError, FencedError, StepwellError, UndefinedTableError
from stepwell.model.jobs import (
    AskedBy,
    BuildRequest,
    CheckpointRequest,
    Job,
    JobError,
    JobId,
    JobState,
    RefreshRequest,
    next_attempt,
    next_run,
    startable,
)


class JobWorker:
    """What one process does for jobs while it leads."""

    def __init__(self, runtime: Runtime, wait: Wait, ended: Callable[[], None]) -> None:
        self._runtime = runtime
        self._limits = runtime.limits
        self._wait = wait
        self._ended = ended
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._running: dict[JobId, tuple[threading.Thread, RunningStatement | None]] = {}
        self._thread: threading.Thread | None = None

    def lead(self, term: int, leads: Callable[[], bool]) -> None:
        """Look after jobs under a term, in a thread, for as long as it leads."""
        self._thread = threading.Thread(
            target=self._tend_all, args=(self._thread, term, leads), name="stepwell-jobs", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Look at once: somebody has asked for something."""
        self._woken.set()

    def stop(self) -> None:
        """Leave what is not done yet to the next leader, and return once nothing runs any more."""
        self._stopping.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()
        for _, statement in self._in_hand():
            if statement is not None:
                statement.cancel()
        for thread, _ in self._in_hand():
            thread.join()

    def _in_hand(self) -> list[tuple[threading.Thread, RunningStatement | None]]:
        with self._lock:
            return list(self._running.values())

    def _tend_all(self, before: threading.Thread | None, term: int, leads: Callable[[], bool]) -> None:
        if before is not None:
            before.join()
        adopted = False
        while leads() and not self._stopping.is_set():
            try:
                if not adopted:
                    with self._runtime.catalog.write() as tx:
                        jobs.adopt(tx, term)
                    adopted = True
                self._tend(term)
            except FencedError:
                return
            except Exception as error:  # a busy catalog: nothing is lost, and the next look tries again
                self._runtime.notes.append(f"jobs could not be looked after: {_reason(error).message}")
            self._woken.wait(self._limits.job_poll_seconds)
            self._woken.clear()

    def _tend(self, term: int) -> None:
        now = self._runtime.clock.now()
        with self._runtime.catalog.read() as tx:
            found, scheduled = jobs.get_open(tx), jobs.scheduled(tx)
        due = [view for view, at in scheduled.items() if at <= now]
        if due:
            self._ask_for(term, now)
            with self._runtime.catalog.read() as tx:
                found = jobs.get_open(tx)
        for job in found:
            statement = self._running.get(job.id, (None, None))[1]
            if job.wanted is not None and statement is not None:
                statement.cancel()
        for job in startable(found, now, self._limits.jobs_at_once):
            with self._runtime.catalog.write() as tx:
                claimed = jobs.claim(tx, job.id, term, now)
            if claimed:
                self._start(job, term)

    def _ask_for(self, term: int, now: int) -> None:
        """Ask for the refreshes that are due, unless an earlier one has still to come."""
        known = load(self._runtime)
        with self._runtime.catalog.write() as tx:
            waiting = {job.relation for job in jobs.get_open(tx) if job.asked_by == AskedBy.SCHEDULE}
            for id_, due in jobs.scheduled(tx).items():
                view = known.by_id.get(id_)
                if due > now or view is None or view.deferral is None or not view.deferral.schedule:
                    continue
                jobs.schedule(tx, id_, next_run(due, view.deferral.schedule, now))
                if id_ not in waiting:
                    jobs.add(tx, RefreshRequest((id_,)), AskedBy.SCHEDULE, now)
            jobs.forget_all_but(tx, self._limits.jobs_kept)

    def _start(self, job: Job, term: int) -> None:
        thread = threading.Thread(target=self._work, args=(job, term), name=f"stepwell-job-{job.id}", daemon=True)
        with self._lock:
            self._running[job.id] = thread, None
        thread.start()

    def _work(self, job: Job, term: int) -> None:
        try:
            with self._runtime.running.beside() as statement:
                with self._lock:
                    self._running[job.id] = threading.current_thread(), statement
                self._carry_out(job, term)
        except FencedError:  # another process leads, and does it
            pass
        except Exception as error:  # the row says that it runs: the next leader takes it up
            self._runtime.notes.append(f"job {job.id} was left behind: {_reason(error).message}")
        finally:
            with self._lock:
                self._running.pop(job.id, None)
            self._woken.set()
            self._ended()

    def _carry_out(self, job: Job, term: int) -> None:
        try:
            with naming_relations(self._runtime), translated():
                outcome = self._outcome(job, term)
        except FencedError:
            raise
        except CancelledError:
            self._stopped(job, term)
        except Exception as error:
            if self._stopping.is_set():  # whatever it was, it may be the end of this process: the next one sees
                return self._stopped(job, term)
            self._failed(job, term, error)
        else:
            with self._runtime.catalog.write() as tx:
                jobs.end(tx, job.id, term, JobState.DONE, self._runtime.clock.now(), outcome=outcome)

    def _outcome(self, job: Job, term: int) -> list[dict[str, Any]]:
        """Do what a job asks for, and say what was done."""
        match job.request:
            case RefreshRequest() as request:
                by_policy, materializer = job.asked_by == AskedBy.SCHEDULE, Materializer(job.id, term)
                reports = refresh(self._runtime, request, materializer, self._wait, by_policy=by_policy)
                return [dataclasses.asdict(each) for each in reports]
            case BuildRequest() as request:
                return [dataclasses.asdict(Builder(self._runtime, request, job.id, term, self._wait).run())]
            case CheckpointRequest() as request:
                return [dataclasses.asdict(take_checkpoint(self._runtime, request, job.id, term))]

    def _stopped(self, job: Job, term: int) -> None:
        """Somebody wants the job paused or cancelled, or this process ends and leaves it to the next."""
        with self._runtime.catalog.write() as tx:
            found = jobs.find(tx, job.id)
            wanted = found.wanted if found is not None and found.wanted is not None else JobState.QUEUED
            jobs.end(tx, job.id, term, wanted, self._runtime.clock.now())

    def _failed(self, job: Job, term: int, error: Exception) -> None:
        now, why = self._runtime.clock.now(), _reason(error)
        again = job.asked_by == AskedBy.SCHEDULE and job.attempts + 1 < self._limits.job_tries
        with self._runtime.catalog.write() as tx:
            if again and not isinstance(error, UndefinedTableError):
                at = next_attempt(job.attempts + 1, now, self._limits.job_retry_microseconds)
                jobs.retry(tx, job.id, term, at, why)
            else:
                jobs.end(tx, job.id, term, JobState.FAILED, now, error=why)
                if isinstance(job.request, BuildRequest):
                    fail_builds(tx, job, why.message)


def _reason(error: Exception) -> JobError:
    """What an error says, in a form that outlives this process."""
    if isinstance(error, StepwellError):
        return JobError(error.message, error.detail, error.hint, error.sqlstate)
    return JobError(f"{type(error).__name__}: {error}".splitlines()[0])

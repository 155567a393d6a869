"""The leader: the process that holds the lease runs the barrier loop, in a thread; everybody else asks and waits.

Waiting writers share a barrier. When a lease lapses, or its holder is known to be dead, a waiter takes it and first
finishes what the one before left undone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from stepwell.catalog import barriers, control, jobs, leases, writes
from stepwell.engine.define.replanning import replan
from stepwell.engine.lead import compaction
from stepwell.engine.lead.barrier import recover, run_barrier
from stepwell.engine.lead.jobs import JobWorker
from stepwell.engine.lead.publishing import Publisher, behind, publish_exactly
from stepwell.engine.lead.vacuum import vacuum
from stepwell.engine.maintain.event_time import is_timer_due, request_emission
from stepwell.engine.processes import is_alive, this_process
from stepwell.engine.runtime import Runtime
from stepwell.engine.settings import read_setting
from stepwell.model.epochs import Epoch
from stepwell.model.errors import (
    CancelledError,
    ConflictError,
    DatabaseClosedError,
    FencedError,
    InternalError,
    StepwellError,
    WarehouseError,
)
from stepwell.model.jobs import OPEN, Job, JobId, JobState, said_of_progress
from stepwell.model.views import RelationId


class Leader:
    """This process's part in the barrier loop."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._limits = runtime.limits
        self._tidy_at = time.monotonic() + self._limits.tidy_seconds
        self._holder = this_process()
        self._term: int | None = None
        self._changed = threading.Condition()
        self._wanted: int = 0
        self._readable: int = 0
        self._failure: BaseException | None = None
        self._seen: tuple[leases.Lease, float] | None = None
        self._thread: threading.Thread | None = None
        self._heart: threading.Thread | None = None
        self._compacting = threading.Thread(target=lambda: None)
        self._heavy: list[RelationId] = []
        self._publisher = Publisher(runtime)
        self._publishing = threading.Thread(target=lambda: None)
        self._publish_at = time.monotonic()
        self._jobs = JobWorker(runtime, self.wait_readable, self.notify)

    @property
    def leads(self) -> bool:
        return self._term is not None

    def start_if_needed(self) -> None:
        """Lead if a crash has left epochs unfinished or writes waiting, and nobody else does."""
        with self._runtime.catalog.read() as tx:
            unfinished, requested = barriers.unfinished(tx), barriers.has_requests(tx)
            waiting = bool(unfinished) or requested or barriers.has_input(tx)
            waiting = waiting or bool(jobs.get_open(tx)) or bool(jobs.scheduled(tx))
            epoch = control.look(tx).open_epoch
        if not waiting or not self._take_lease():
            return
        try:
            if requested:
                self.wait_readable(epoch)
            elif unfinished:
                self.wait_readable(unfinished[-1].epoch)
        except WarehouseError as error:  # what is readable can be read all the same, and the loop tries again
            self._runtime.notes.append(str(error))

    def wait_readable(self, epoch: Epoch) -> None:
        """Return once `epoch` can be read; see to it that somebody runs the barrier."""
        with self._runtime.running.waiting():
            self._wait_readable(epoch)

    def _wait_readable(self, epoch: Epoch) -> None:
        asked = False
        statement = self._runtime.running.current
        while not self._is_readable(epoch):
            if statement is not None and statement.is_cancelled:
                raise stopped_waiting(epoch)
            if self._runtime.stopping.is_set():  # nobody here would run the barrier any more
                raise DatabaseClosedError(
                    "the database was closed meanwhile",
                    detail=f"The write is acknowledged and becomes readable with epoch {epoch}.",
                )
            if self._term is None and not self._take_lease():
                if not asked:
                    with self._runtime.catalog.write() as tx:
                        writes.request_barrier(tx, epoch, self._runtime.clock.now())
                    asked = True
                time.sleep(self._limits.poll_seconds)
                continue
            with self._changed:
                self._wanted = max(self._wanted, epoch)
                self._failure = None
                self._changed.notify_all()
                self._changed.wait_for(
                    lambda: (
                        self._readable >= epoch
                        or self._failure is not None
                        or self._term is None
                        or (statement is not None and statement.is_cancelled)
                    ),
                    timeout=1,
                )
                failure = self._last_failure()
            if failure is not None and not isinstance(failure, FencedError) and not self._is_readable(epoch):
                if isinstance(failure, InternalError):
                    raise failure
                raise WarehouseError(
                    f"epoch {epoch} cannot be made readable yet",
                    detail=f"What was written is acknowledged and safe. {_first_line(failure)}",
                    hint="It becomes readable with the next barrier that succeeds; FLUSH asks for one.",
                ) from failure

    def wait_written(self, epoch: Epoch) -> None:
        """The same for somebody who has written: what is acknowledged is not repeated, whatever happens meanwhile."""
        while True:
            try:
                return self.wait_readable(epoch)
            except ConflictError:  # of looking and asking
                continue
            except KeyboardInterrupt as error:
                raise stopped_waiting(epoch) from error

    def wait_job(self, id_: JobId, *, cancels: bool = True) -> Job:
        """Return once a job has ended, well or not; who has asked for it cancels it by not waiting any more."""
        statement = self._runtime.running.current
        self._jobs.wake()
        try:
            while True:
                with self._runtime.catalog.read() as tx:
                    job = jobs.find(tx, id_)
                if job is None or job.state not in OPEN:
                    assert job is not None, "a job outlives whoever waits for it"
                    return job
                if self._runtime.stopping.is_set():
                    raise DatabaseClosedError("the database was closed meanwhile", detail=f"Job {id_} goes on later.")
                if statement is not None:
                    statement.what = said_of_progress(job)
                    if statement.is_cancelled:
                        raise KeyboardInterrupt
                self.ensure_led()
                with self._changed:
                    self._changed.wait(self._limits.poll_seconds)
        except KeyboardInterrupt as error:
            if not cancels:
                raise CancelledError("stopped waiting", detail=f"Job {id_} goes on.") from error
            with self._runtime.catalog.write() as tx:
                job = jobs.find(tx, id_)
                if job is not None and job.state in OPEN:
                    jobs.want(tx, job, JobState.CANCELLED, self._runtime.clock.now())
            self._jobs.wake()
            raise CancelledError(f"job {id_} was cancelled", detail="What it has committed before stays.") from error

    def leave_jobs(self) -> None:
        """Leave jobs that are not done yet to whoever leads next."""
        self._jobs.stop()

    def optimize(self, relation: RelationId) -> None:
        """Compact one relation wholly, once all that was written can be read."""
        self.flush()
        self.wait_idle()
        compaction.compact(self._runtime, relation, fold_now=True)
        publish_exactly(self._runtime, relation)

    def emit(self) -> None:
        """Let the views that emit by the clock show all that is known of them, and wait until it can be read."""
        self.flush()
        epoch = request_emission(self._runtime)
        if epoch is not None:
            self.wait_readable(epoch)

    def flush(self) -> None:
        """Close the open epoch if anything waits in it, and wait until all of it can be read."""
        with self._runtime.catalog.read() as tx:
            at = control.look(tx)
            pending = barriers.has_input(tx)
        self.wait_readable(at.open_epoch if pending else Epoch(at.open_epoch - 1))

    def publish(self, relation: RelationId | None = None) -> None:
        """Bring the Delta table of one relation, or those of all, to the newest readable epoch."""
        for each in behind(self._runtime) if relation is None else [relation]:
            publish_exactly(self._runtime, each)

    def publish_before_closing(self) -> None:
        """Leave no Delta table behind that this process can bring up to date without starting Spark for it."""
        try:
            for each in behind(self._runtime):
                publish_exactly(self._runtime, each, may_start_spark=False)
        except Exception as error:  # the rows are safe, and whoever leads next publishes them
            self._runtime.notes.append(f"publishing failed: {_first_line(error)}")

    def interval_changed(self) -> None:
        """Look at the barrier interval again; with one, the loop must run even while nobody waits."""
        if read_setting(self._runtime, "barrier_interval") and self._term is None:
            self._take_lease()
        self.notify()

    def ensure_led(self) -> None:
        """See to it that somebody runs the loop: a write that does not wait needs it all the same."""
        if self._term is None:
            self._take_lease()

    def wait_idle(self) -> None:
        """Return once no compaction and no publication is running in the background."""
        for busy in (self._compacting, self._publishing):
            if busy.is_alive():
                busy.join()

    def stop(self) -> None:
        """End the loop and give the lease back."""
        self.leave_jobs()
        self._runtime.stopping.set()
        self.notify()
        if self._thread is not None:
            self._thread.join()
        self.wait_idle()
        if self._heart is not None:
            self._heart.join()
        term, self._term = self._term, None
        if term is not None:
            with self._runtime.catalog.write() as tx:
                leases.release(tx, term)

    def _last_failure(self) -> BaseException | None:
        return self._failure

    def _is_readable(self, epoch: Epoch) -> bool:
        with self._runtime.catalog.read() as tx:
            return control.look(tx).readable_epoch >= epoch

    def notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _take_lease(self) -> bool:
        with self._changed:
            if self._term is not None:
                return True
            now = self._runtime.clock.now()
            with self._runtime.catalog.write() as tx:
                current = leases.look(tx)
                free = self._is_free(current, now)
                term = leases.take(tx, current, self._holder, now + self._limits.lease_microseconds) if free else None
            if term is None:
                return False
            self._term = term
            self._thread = threading.Thread(
                target=self._loop_after, args=(self._thread, term), name="stepwell-barrier", daemon=True
            )
            self._heart = threading.Thread(target=self._beat, args=(term,), name="stepwell-lease", daemon=True)
            self._thread.start()
            self._heart.start()
            self._jobs.lead(term, lambda: self._term == term and not self._runtime.stopping.is_set())
            return True

    def _is_free(self, lease: leases.Lease, now: int) -> bool:
        """Whether nobody leads: the lease was given back, is over, or its holder is dead or has long been silent."""
        if lease.holder is None or lease.expires_at <= now or not is_alive(lease.holder):
            return True
        if self._seen is None or self._seen[0] != lease:
            self._seen = lease, time.monotonic()
        # By the holder's clock it may run for hours yet; that it stands still for so long, our own clock tells.
        return time.monotonic() - self._seen[1] > self._limits.lease_microseconds / 1_000_000

    def _loop_after(self, before: threading.Thread | None, term: int) -> None:
        """Lead once the loop of an earlier term has ended; it may be amid an epoch that it can no longer commit."""
        if before is not None:
            before.join()
        self._loop(term)

    def _loop(self, term: int) -> None:
        recovered = False
        due = time.monotonic()
        while not self._runtime.stopping.is_set() and self._term == term:
            try:
                if not recovered:
                    recover(self._runtime, term)
                    with self._runtime.catalog.read() as tx:
                        self._arrived(control.look(tx).readable_epoch)
                    self._publisher.notice_all()
                    recovered = True
                interval = read_setting(self._runtime, "barrier_interval") / 1_000_000
                if self._wait_for_work(due if interval else None):
                    self._run(term)
                    due = time.monotonic() + interval
                elif interval and time.monotonic() >= due:
                    due = time.monotonic() + interval
                self._publish_in_background(term)
                if time.monotonic() >= self._tidy_at:
                    self._tidy_at = time.monotonic() + self._limits.tidy_seconds
                    self._vacuum()
            except FencedError as error:
                self._fail(term, error)
                self._lose(term)
            except BaseException as error:  # whatever it is, those who wait must hear of it, and the loop must go on
                self._fail(term, error)
                recovered = False
                self._pause()

    def _wait_for_work(self, due: float | None) -> bool:
        """Sleep until somebody asks for a barrier, or one is due and has something to do."""
        with self._changed:
            timeout = 0.25 if due is None else max(0.0, min(0.25, due - time.monotonic()))
            if self._wanted <= self._readable and not self._runtime.stopping.is_set():
                self._changed.wait(timeout)
            if self._runtime.stopping.is_set() or self._wanted > self._readable:
                return not self._runtime.stopping.is_set()
        with self._runtime.catalog.read() as tx:
            if barriers.has_requests(tx):
                return True
            if due is not None and time.monotonic() >= due and barriers.has_input(tx):
                return True
        return is_timer_due(self._runtime)

    def _run(self, term: int) -> None:
        replan(self._runtime)
        epoch, changed = run_barrier(self._runtime, term)
        self._arrived(epoch)
        busy = self._heavy if self._compacting.is_alive() else []
        for relation in changed:
            if relation not in busy:  # a fold whose inputs were merged meanwhile would have to start anew
                self._tidy(relation, compaction.merge_small)
        self._publisher.notice(changed)
        self._compact_in_background(changed)

    def _arrived(self, epoch: Epoch) -> None:
        with self._changed:
            self._readable = max(self._readable, epoch)
            self._changed.notify_all()

    def _compact_in_background(self, changed: list[RelationId]) -> None:
        """Compactions that take Spark run beside the loop, one at a time."""
        if self._compacting.is_alive() or not self._runtime.spark.is_started:
            return
        heavy = [relation for relation in changed if compaction.needs_spark(self._runtime, relation)]
        if heavy:
            self._heavy = heavy
            self._compacting = threading.Thread(
                target=self._compact, args=(heavy,), name="stepwell-compaction", daemon=True
            )
            self._compacting.start()

    def _compact(self, heavy: list[RelationId]) -> None:
        for relation in heavy:
            if self._runtime.stopping.is_set():
                return
            self._tidy(relation, compaction.compact)

    def _publish_in_background(self, term: int) -> None:
        """Bring Delta tables up to date that are too far behind, beside the loop, one at a time."""
        if self._publishing.is_alive() or self._publisher.is_idle or time.monotonic() < self._publish_at:
            return
        self._publish_at = time.monotonic() + self._limits.publish_poll_seconds
        due = self._publisher.due()
        if due:
            self._publishing = threading.Thread(
                target=self._publish_due, args=(due, term), name="stepwell-publication", daemon=True
            )
            self._publishing.start()

    def _publish_due(self, due: list[RelationId], term: int) -> None:
        try:
            self._publisher.publish(due, term)
        except Exception as error:  # nothing depends on it, and the next look tries again
            self._runtime.notes.append(f"publishing failed: {_first_line(error)}")

    def _tidy(self, relation: RelationId, compact: Callable[[Runtime, RelationId], bool]) -> None:
        """Compact; nothing depends on it, so whatever goes wrong is noted, and the next barrier tries again."""
        try:
            compact(self._runtime, relation)
        except Exception as error:
            self._runtime.notes.append(f"compaction of relation {relation} failed: {_first_line(error)}")

    def _vacuum(self) -> None:
        try:
            vacuum(self._runtime, read_setting(self._runtime, "retention"))
        except Exception as error:  # nothing depends on it, and the next one tries again
            self._runtime.notes.append(f"vacuum failed: {_first_line(error)}")

    def _beat(self, term: int) -> None:
        while not self._runtime.stopping.is_set() and self._term == term:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._runtime.stopping.is_set() or self._term != term,
                    timeout=self._limits.lease_microseconds / 3_000_000,
                )
            if self._runtime.stopping.is_set() or self._term != term:
                return
            try:
                with self._runtime.catalog.write() as tx:
                    before = leases.look(tx).expires_at  # and never the same again: a lease that changes is alive
                    kept = leases.renew(
                        tx, term, max(self._runtime.clock.now() + self._limits.lease_microseconds, before + 1)
                    )
            except StepwellError as error:  # a busy catalog: beat again before the lease is over
                self._runtime.notes.append(f"the lease could not be renewed: {error.message}")
                continue
            if not kept:
                self._lose(term)

    def _lose(self, term: int) -> None:
        with self._changed:
            if self._term == term:
                self._term = None
            self._changed.notify_all()

    def _fail(self, term: int, error: BaseException) -> None:
        with self._changed:
            if self._term != term:  # those who wait now wait for another loop
                return
            self._wanted = self._readable
            self._failure = error
            self._changed.notify_all()

    def _pause(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._runtime.stopping.is_set() or self._wanted > self._readable, timeout=1)


def stopped_waiting(epoch: Epoch) -> CancelledError:
    """The error for somebody who does not want to wait for what is acknowledged."""
    return CancelledError(
        "stopped waiting", detail=f"The write is acknowledged and becomes readable with epoch {epoch}."
    )


def _first_line(error: BaseException) -> str:
    return error.message if isinstance(error, StepwellError) else (str(error).splitlines() or [type(error).__name__])[0]

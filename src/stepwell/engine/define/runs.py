"""Runs: consecutive CREATEs of a text are registered together, all or none, and built at one barrier.

Each is analyzed over those before it, which are in the catalog by then, under the numbers that they keep, but withheld
from everybody. The transaction that registers the last one releases all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stepwell.catalog import Transaction, control, deferrals, files, jobs, lives, relations, views, watermarks, writes
from stepwell.engine.define.analysis import Analyzed
from stepwell.engine.define.creation import (
    abandon_builds,
    analyze_view,
    doubts,
    register_view,
    replace_view,
    require_built,
)
from stepwell.engine.definitions import Definitions, load
from stepwell.engine.failures import pointing_at, translated
from stepwell.engine.read.naming import new_name
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import CancelledError, ConflictError, DuplicateNameError, StepwellError, warn
from stepwell.model.failpoints import failpoint
from stepwell.model.jobs import AskedBy, BuildRequest, Job, JobId, JobState
from stepwell.model.lifecycle import Building
from stepwell.model.relations import Definition, Relation
from stepwell.model.views import RelationId
from stepwell.sql.statements import Create, CreateTable, CreateView, Statement


class Waiting(Protocol):
    """Who knows when an epoch can be read, and a job is done."""

    def wait_written(self, epoch: Epoch) -> None: ...

    def wait_job(self, id_: JobId, *, cancels: bool = True) -> Job: ...


@dataclass(frozen=True, slots=True)
class Registered:
    """What a run of CREATEs has become: the epoch from which on it is there, and the job that builds it, if one does.

    Without a job, the barrier of that epoch builds it.
    """

    epoch: Epoch
    job: JobId | None = None


def create_all(runtime: Runtime, run: Sequence[Statement], leader: Waiting) -> list[JobId]:
    """Carry out CREATEs; the jobs that go on building them, where nobody wants to wait for these.

    If one of them is refused, none of them is there. A view that is replaced is a run by itself, since what is there
    cannot be withheld. One that cannot be built is taken away again, and the others stay.
    """
    waiting, left = list(run), []
    while waiting:
        together, waiting = _until_one_replaces(load(runtime), waiting)
        if together:
            made = _register(runtime, together)
        else:
            together, waiting = waiting[:1], waiting[1:]
            made = Registered(_replace(runtime, together[0]))
        if made is None:
            continue
        leader.wait_written(made.epoch)
        if made.job is not None and runtime.switches.background:
            left.append(made.job)
            continue
        if made.job is not None:
            _wait_for(runtime, made.job, leader)
        require_built(runtime, [_body(each).name.last for each in together])
    return left


def _wait_for(runtime: Runtime, job: JobId, leader: Waiting) -> None:
    """Return once a job has built its views, or could not; who stops waiting does not want them."""
    try:
        if leader.wait_job(job).state != JobState.CANCELLED:
            return
    except CancelledError:
        abandon_builds(runtime, job)
        raise
    abandon_builds(runtime, job)
    raise CancelledError(f"job {job} was cancelled, and what it built is gone")


def _body(statement: Statement) -> Create:
    assert isinstance(statement.body, CreateTable | CreateView)
    return statement.body


def _until_one_replaces(known: Definitions, run: list[Statement]) -> tuple[list[Statement], list[Statement]]:
    """The statements before the first that replaces what is there or is made before it, and the rest."""
    names: set[str] = set()
    for index, body in enumerate(map(_body, run)):
        name = body.name.last.lower()
        if isinstance(body, CreateView) and body.or_replace and (name in names or known.called(name)):
            return run[:index], run[index:]
        names.add(name)
    return run, []


def _replace(runtime: Runtime, statement: Statement) -> Epoch:
    body = _body(statement)
    assert isinstance(body, CreateView)
    with pointing_at(statement), translated():
        new_name(body.name)
        return replace_view(runtime, body)


def _register(runtime: Runtime, run: Sequence[Statement]) -> Registered | None:
    """Register what is not there yet; None where there is nothing to wait for."""
    for _ in range(runtime.limits.conflict_tries):
        known = load(runtime)
        missing = _missing(known, run)
        if not missing:
            return None
        attempt = _Attempt(runtime, known)
        made = attempt.register(missing)
        if made is not None:
            for said in attempt.doubts:
                warn(said)
            return made
    name = _body(run[0]).name.last
    raise ConflictError(f'definitions keep changing; "{name}" was not created', hint="Try again.")


def _missing(known: Definitions, run: Sequence[Statement]) -> list[Statement]:
    """Those that have something to create; an error if a name is taken."""
    found: dict[str, Statement] = {}
    for statement in run:
        body = _body(statement)
        with pointing_at(statement):
            name = new_name(body.name)
            existing = known.called(name)
            if existing is None and name.lower() not in found:
                found[name.lower()] = statement
            elif not body.if_not_exists:
                taken = f'relation "{name}"'
                if isinstance(body, CreateView) and existing is not None:
                    taken = f'{existing.kind} "{existing.name}"'
                raise DuplicateNameError(f"{taken} exists already", place=body.name.slice.place)
    return list(found.values())


class _Attempt:
    """One way through a run, which ends if somebody else defines something meanwhile."""

    def __init__(self, runtime: Runtime, known: Definitions) -> None:
        self._runtime = runtime
        self._known = known
        self._before = frozenset(known.by_id)
        self._generation = known.generation
        self._withheld: list[RelationId] = []
        self.doubts: list[str] = []
        """What a user may not have meant."""

    def register(self, run: Sequence[Statement]) -> Registered | None:
        """Register all of them; None if the ground has moved."""
        made = None
        try:
            for number, statement in enumerate(run, 1):
                with pointing_at(statement), translated():
                    if not self._add(_body(statement), is_last=number == len(run)):
                        return None
            made = self._registered
            return made
        finally:
            if made is None and self._withheld:
                self._forget()

    def _add(self, body: Create, *, is_last: bool) -> bool:
        """Register one more over those before it; False if somebody else has defined something."""
        runtime = self._runtime
        analyzed = analyze_view(runtime, self._known, body) if isinstance(body, CreateView) else None
        with runtime.catalog.write() as tx:
            if control.lock(tx).generation != self._generation:
                return False
            before = relations.last_id(tx)
            _put(tx, runtime, body, analyzed)
            made = relations.created_after(tx, before)
            if is_last:
                relations.release(tx, self._withheld)
                epoch = control.look(tx).open_epoch
                writes.request_barrier(tx, epoch, runtime.clock.now())
                self._registered = Registered(epoch, self._ask_for_build(tx, self._known.beside(made)))
            else:
                relations.withhold(tx, [each.id for each in made], runtime.clock.now())
            self._generation = control.look(tx).generation
        failpoint("create.registered" if is_last else "create.withheld")
        self._keep(body, analyzed, made)
        return True

    def _ask_for_build(self, tx: Transaction, known: Definitions) -> JobId | None:
        """Have the views built beside the barriers, if that takes long or nobody waits for it."""
        runtime, all_lives = self._runtime, lives.get_all(tx)
        own = [id_ for id_ in known.order.order() if id_ not in self._before and all_lives.get(id_) == Building()]
        inputs = {each.relation for id_ in own for each in known.by_id[id_].view.inputs} - set(own)
        size = sum(file.statistics.bytes for id_ in inputs for file in files.latest(tx, id_))
        waits_for = tuple(id_ for id_ in inputs if isinstance(all_lives.get(id_), Building))
        if not own or not (waits_for or runtime.switches.background or size > runtime.limits.online_build_bytes):
            return None
        shown = next(id_ for id_ in reversed(own) if not known.by_id[id_].is_hidden)
        job = jobs.add(tx, BuildRequest(tuple(own), shown, waits_for), AskedBy.USER, runtime.clock.now())
        for id_ in own:
            lives.put(tx, id_, Building(int(job)))
        return job

    def _keep(self, body: Create, analyzed: Analyzed | None, made: Sequence[Relation]) -> None:
        if analyzed is not None:
            self.doubts += doubts(self._known, body.name.last, analyzed)
        self._withheld += [each.id for each in made]
        self._known = self._known.beside(made)

    def _forget(self) -> None:
        """Take away what was withheld; after a crash the next vacuums do."""
        with self._runtime.catalog.write() as tx:
            control.lock(tx)
            relations.forget(tx, self._withheld)
            lives.forget(tx, self._withheld)
            views.forget(tx, self._withheld)
            watermarks.forget(tx, self._withheld)
            deferrals.forget(tx, self._withheld)


def _put(tx: Transaction, runtime: Runtime, body: Create, analyzed: Analyzed | None) -> None:
    name = new_name(body.name)
    if isinstance(body, CreateView):
        assert analyzed is not None
        register_view(tx, runtime, name, body, analyzed)
        return
    definition = Definition(key=body.key, chunking=body.chunking, watermark=body.watermark)
    try:
        relations.create(tx, name, definition, body.columns)
    except StepwellError as error:
        raise error.at(body.name.slice.place) from None

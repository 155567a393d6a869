"""Building views while everything else goes on: a snapshot at one epoch, the changes after it, and the join.

The rows of new views are computed from what they read at a pinned epoch, parents before children, each level from what
the one below has just come to. Then the changes since are applied, many epochs at once, until what is left is little;
that rest is the affair of the barrier at which the views begin to serve. Each step is committed with the epoch that is
reached, under the term of the leader and while nobody wants the job to stop. Until they serve nobody can read the
views, and nothing that has come meanwhile is late for them: how often a build was killed can be seen in no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from stepwell.catalog import Transaction, barriers, control, files, jobs, lives, pins, relations, writes
from stepwell.engine.definitions import Definitions, load
from stepwell.engine.failures import translated
from stepwell.engine.maintain.event_time import advance
from stepwell.engine.maintain.maintenance import Refreshed, refresh_view
from stepwell.engine.maintain.planning import Extents, Prepared
from stepwell.engine.maintain.workspace import Workspace
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError, UndefinedTableError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import NewFile
from stepwell.model.jobs import BuildRequest, Job, JobId, JobProgress
from stepwell.model.lifecycle import Building, Failed, Life, Serving, failed, is_due, joined, runs
from stepwell.model.relations import Relation
from stepwell.model.views import RelationId
from stepwell.plan.choices import choice_for
from stepwell.plan.epoch_plan import AtClose, EpochPlan, ViewTask, Work
from stepwell.plan.steps import Rule, Step

Built = dict[RelationId, list[NewFile]]


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build has done: the epoch that it began with, how many passes followed it, and when the views joined."""

    snapshot: int
    passes: int
    joined: int
    rows: int


def fail_builds(tx: Transaction, job: Job, why: str) -> None:
    """Let the views that a job could not build say why."""
    all_lives = lives.get_all(tx)
    for id_, life in all_lives.items():
        if isinstance(life, Building) and life.job == job.id:
            lives.put(tx, id_, failed(life, why))


class Builder:
    """One attempt at a build, under the term of a leader."""

    def __init__(
        self, runtime: Runtime, request: BuildRequest, job: JobId, term: int, wait: Callable[[Epoch], None]
    ) -> None:
        self._runtime = runtime
        self._request = request
        self._job, self._term = job, term
        self._wait = wait
        self._rows = 0
        self._definitions = self._defined()

    def run(self) -> BuildReport:
        """Build the views, and return once they serve."""
        try:
            if (epoch := self._joined_at()) is not None:
                return BuildReport(self._request.position or epoch, 0, self._served(epoch), 0)
            began = position = self._position()
            passes = 0
            while passes < self._runtime.limits.build_passes and (upto := self._behind(position)) is not None:
                position, passes = self._replay(position, upto), passes + 1
                failpoint("build.pass")
            return BuildReport(began, passes, self._join(position), self._rows)
        finally:
            self._runtime.spark.release(-int(self._job))
            with self._runtime.catalog.write() as tx:
                pins.unpin_all(tx, self._holder)

    @property
    def _holder(self) -> str:
        return jobs.holder(self._job, self._term)

    def _defined(self) -> Definitions:
        with self._runtime.catalog.read() as tx:
            self._leave_dropped(tx)
        return load(self._runtime)

    def _joined_at(self) -> Epoch | None:
        """The epoch by which the views serve, if an attempt before has let them, and died before it could say so."""
        with self._runtime.catalog.read() as tx:
            all_lives = lives.get_all(tx)
            if any(isinstance(all_lives.get(id_), Building) for id_ in self._request.views):
                return None
            at, is_owed = control.look(tx), any(is_due(all_lives[id_]) for id_ in self._request.views)
            return at.open_epoch if is_owed else at.readable_epoch

    # -- the snapshot -------------------------------------------------------------------------------------------------

    def _position(self) -> Epoch:
        """The epoch whose rows are built: that of an attempt before, or that of a new snapshot."""
        known = self._request.position
        with self._runtime.catalog.write() as tx:
            self._keep(tx, "looking what is there")
            if known is not None and known >= barriers.oldest(tx):
                pins.pin(tx, known, self._holder, self._runtime.clock.now())
                return known
            epoch = control.lock(tx).readable_epoch
            self._require_served(tx)
            pins.pin(tx, epoch, self._holder, self._runtime.clock.now())
            self._forget(tx, epoch)
        failpoint("build.pinned")
        made = self._computed(epoch, {id_: Building(self._job) for id_ in self._request.views}, Work.BUILD)
        self._commit(made, epoch)
        failpoint("build.slice")
        return epoch

    def _require_served(self, tx: Transaction) -> None:
        """All that the views read must be there: a build that they waited for may have failed."""
        all_lives = lives.get_all(tx)
        for parent in self._outside():
            life = all_lives.get(parent)
            if life is not None and not runs(life):
                raise StepwellError(
                    f'"{self._definitions.name(parent)}" does not run, so nothing can be built on it', sqlstate="55000"
                )

    def _outside(self) -> list[RelationId]:
        """What the views read that is not built with them."""
        own = set(self._request.views)
        inputs = [each.relation for id_ in self._request.views for each in self._definitions.by_id[id_].view.inputs]
        return [id_ for id_ in dict.fromkeys(inputs) if id_ not in own]

    def _forget(self, tx: Transaction, epoch: Epoch) -> None:
        """Take away what an attempt has built that stood still for longer than changes are kept."""
        for each in self._stored():
            if old := files.latest(tx, each.id):
                files.close(tx, each.id, old, [], epoch, self._runtime.clock.now())

    def _stored(self) -> list[Relation]:
        """The views and the hidden relations that hold their states and ledgers."""
        views = [self._definitions.by_id[id_] for id_ in self._request.views]
        states = [self._definitions.state_of(each) for each in views]
        ledgers = [self._definitions.ledger_of(each) for each in views]
        return [*views, *(each for each in (*states, *ledgers) if each is not None)]

    # -- the changes after it -----------------------------------------------------------------------------------------

    def _behind(self, position: Epoch) -> Epoch | None:
        """The epoch to replay up to; None if what is left is little enough for a barrier."""
        with self._runtime.catalog.read() as tx:
            readable = control.look(tx).readable_epoch
            logged = [file for id_ in self._outside() for file in files.logged_between(tx, id_, position, readable)]
        left = sum(file.statistics.rows for file in logged)
        return readable if left > self._runtime.limits.joined_rows else None

    def _replay(self, position: Epoch, upto: Epoch) -> Epoch:
        made = self._computed(upto, {id_: joined(position) for id_ in self._request.views}, Work.CATCH_UP)
        self._commit(made, upto)
        return upto

    def _computed(self, epoch: Epoch, found: Mapping[RelationId, Life], work: Work) -> Built:
        """What the views come to at an epoch, less what is built of them already."""
        runtime, definitions = self._runtime, self._definitions
        workspace = Workspace(runtime, definitions.by_id, epoch, {})
        marks = advance(runtime, definitions, epoch, {}, frozenset(self._request.views))
        known = AtClose({}, Extents(workspace), runtime.costs.all(), runtime.limits)
        ready = Prepared(definitions, found, {}, marks, workspace, known, EpochPlan(epoch, ()))
        made: Built = {}
        for number, id_ in enumerate(self._request.views):
            view = definitions.by_id[id_]
            what = f'building "{self._shown(view)}"' if work == Work.BUILD else f"catching up with epoch {epoch}"
            with runtime.catalog.write() as tx:
                self._keep(tx, what, number)
            choice = choice_for(definitions.blocks[id_], view.view.policy)
            task = ViewTask(id_, work, Step(Rule.BUILD) if work == Work.BUILD else None, choice)
            with runtime.doing(what), translated():
                own = workspace.beside(-int(self._job), view.view.settings)  # a session that no epoch works in
                done = refresh_view(own, ready, task, epoch)
            self._add(workspace, made, done)
        failpoint("build.written")
        return made

    def _add(self, workspace: Workspace, made: Built, done: Refreshed | None) -> None:
        for relation, new in done.files.items() if done is not None else ():
            made.setdefault(relation, []).extend(new)
            workspace.add_delta(relation, new)
            self._rows += sum(file.statistics.rows for file in new)

    def _shown(self, view: Relation) -> str:
        """What a user knows a view or a hidden part of one by."""
        owner = next((each for each in self._definitions.by_id.values()
                      if each.definition.view is not None and view.id in each.view.blocks), view)  # fmt: skip
        return owner.name

    # -- commits ------------------------------------------------------------------------------------------------------

    def _keep(self, tx: Transaction, phase: str, done: int = 0) -> None:
        jobs.keep(tx, self._job, self._term, JobProgress(phase, done, len(self._request.views)))

    def _commit(self, made: Built, epoch: Epoch) -> None:
        """Let what was computed be the rows of an epoch, and the job stand there."""
        with self._runtime.catalog.write() as tx:
            self._keep(tx, f"built up to epoch {epoch}", len(self._request.views))
            self._leave_dropped(tx)
            there = {each.id for each in self._stored()}
            for relation, new in made.items():
                if relation in there:  # what belongs to others is for a vacuum
                    files.add(tx, relation, new, from_epoch=epoch, logged=False)
            self._request = replace(self._request, position=epoch)
            jobs.reach(tx, self._job, self._request)
            pins.unpin_all(tx, self._holder)
            pins.pin(tx, epoch, self._holder, self._runtime.clock.now())
            failpoint("build.inside")

    def _leave_dropped(self, tx: Transaction) -> None:
        """Go on without the views that were dropped meanwhile."""
        left = tuple(id_ for id_ in self._request.views if relations.by_id(tx, id_) is not None)
        if not left:
            raise UndefinedTableError("what was built is dropped")
        self._request = replace(self._request, views=left)

    def _join(self, position: Epoch) -> Epoch:
        """Let the views serve from the open epoch on, whose barrier brings them what has come since."""
        with self._runtime.catalog.write() as tx:
            self._keep(tx, "joining at the next barrier", len(self._request.views))
            self._leave_dropped(tx)
            epoch = control.lock(tx).open_epoch
            for id_ in self._request.views:
                lives.put(tx, id_, joined(position))
            writes.request_barrier(tx, epoch, self._runtime.clock.now())
            failpoint("build.join.inside")
        failpoint("build.joining")
        return self._served(epoch)

    def _served(self, epoch: Epoch) -> Epoch:
        """Return once the views serve; an error if one of them could not follow what has come since it was built."""
        self._wait(epoch)
        with self._runtime.catalog.read() as tx:
            all_lives = lives.get_all(tx)
        for id_ in self._request.views:
            match all_lives.get(id_):
                case Serving(condition=Failed(why)):
                    raise StepwellError(f"what has come while it was built could not be applied: {why}")
        return epoch

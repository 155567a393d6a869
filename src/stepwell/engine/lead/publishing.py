"""Publishing: Delta logs brought to an epoch as the plan says, with the epoch or beside it.

A publication is written first, then committed to the Delta log, then recorded in the catalog. Whoever comes after a
crash in between finds the number of the last commit in the log, and goes on from there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from stepwell.catalog import barriers, control, files, leases, lives, relations
from stepwell.engine.failures import translated
from stepwell.engine.runtime import Runtime
from stepwell.engine.settings import read_setting
from stepwell.engine.write.results import write_frame
from stepwell.model.epochs import Epoch
from stepwell.model.errors import ConflictError, StepwellError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DataFile, NewFile, Store
from stepwell.model.lifecycle import Building
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import RelationId
from stepwell.plan import (
    Backlog,
    Publication,
    PublicationPlan,
    PublicationTiming,
    plan_publication,
    time_publication,
)
from stepwell.storage import scan_content, write_copy

_FRESH = Backlog(epochs=0, waited=0, rested=0)


@dataclass(frozen=True, slots=True)
class _Look:
    """A relation that is behind, as the catalog has it: how to publish it, and what its log says so far."""

    relation: Relation
    plan: PublicationPlan
    number: int
    published: tuple[DataFile, ...]


def publish_with_epoch(runtime: Runtime, id_: RelationId, epoch: Epoch) -> Publication | None:
    """Bring a Delta log to `epoch` if little has to be written for it; the caller records it, and holds the lock."""
    look = _look(runtime, id_, epoch)
    if look is None or time_publication(look.plan, _FRESH, 1, runtime.limits) != PublicationTiming.AT_ONCE:
        return None
    try:
        copies = _copies(runtime, look)
    except (StepwellError, OSError) as error:  # a file is damaged, or the disk full: the epoch does not wait for copies
        runtime.notes.append(f'the Delta table of "{look.relation.name}" lags: {str(error).splitlines()[0]}')
        return None
    return _commit(runtime, look, copies)


def publish_after_compaction(runtime: Runtime, id_: RelationId) -> None:
    """Let the Delta log follow a compaction, which changes files and nothing else."""
    with runtime.publishing:
        with runtime.catalog.read() as tx:
            epoch = control.look(tx).readable_epoch
        publication = publish_with_epoch(runtime, id_, epoch)
        if publication:
            with runtime.catalog.write() as tx:
                barriers.record_publications(tx, [(id_, publication)], runtime.clock.now())


def publish_exactly(
    runtime: Runtime, id_: RelationId, term: int | None = None, *, may_start_spark: bool = True
) -> None:
    """Bring a Delta log to the newest readable epoch, whatever has to be written for it.

    With `term`, only while that is the term of the leader. The copies are written beside the epochs; if somebody else
    has published the relation meanwhile, they are looked at again.
    """
    while True:
        with runtime.catalog.read() as tx:
            epoch = control.look(tx).readable_epoch
        look = _look(runtime, id_, epoch)
        if look is None:
            return
        if not (may_start_spark or runtime.spark.is_started or _is_small(runtime, look.plan)):
            return
        copies = _copies(runtime, look)
        try:
            with runtime.publishing:
                with runtime.catalog.read() as tx:
                    if barriers.publication_state(tx, id_)[0] != look.number:
                        raise ConflictError("published meanwhile")
                publication = _commit(runtime, look, copies)
                with runtime.catalog.write() as tx:
                    if term is not None:
                        leases.check(tx, term)
                    barriers.require_publication(tx, id_, look.number)
                    barriers.record_publications(tx, [(id_, publication)], runtime.clock.now())
        except ConflictError:
            continue  # what was written is known to nobody, and goes with the next vacuum
        return


def behind(runtime: Runtime) -> list[RelationId]:
    """The relations whose Delta tables do not show the newest readable epoch."""
    with runtime.catalog.read() as tx:
        epoch = control.look(tx).readable_epoch
        known = [each.id for each in relations.get_all(tx, epoch)]
    return [id_ for id_ in known if _look(runtime, id_, epoch) is not None]


class Publisher:
    """The Delta tables that a leader has to bring up to date beside its epochs: when each is due, one at a time."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._since: dict[RelationId, int] = {}
        """Since when each relation is known to be behind."""
        self._took: dict[RelationId, tuple[int, int]] = {}
        """When the last copies of each were written, and how long that took."""
        self._lock = threading.Lock()

    def notice(self, changed: Iterable[RelationId]) -> None:
        """Look at these relations from now on, until they are published."""
        now = self._runtime.clock.now()
        with self._lock:
            for id_ in changed:
                self._since.setdefault(id_, now)

    def notice_all(self) -> None:
        """Look at whatever a leader before has left behind."""
        self.notice(behind(self._runtime))

    @property
    def is_idle(self) -> bool:
        return not self._since

    def due(self) -> list[RelationId]:
        """The relations to publish now; those that are published are looked at no more."""
        runtime, now = self._runtime, self._runtime.clock.now()
        lag = read_setting(runtime, "publish_lag")
        with runtime.catalog.read() as tx:
            epoch = control.look(tx).readable_epoch
        chosen = []
        with self._lock:
            waiting = dict(self._since)
        for id_, since in waiting.items():
            look = _look(runtime, id_, epoch)
            if look is None:
                with self._lock:
                    self._since.pop(id_, None)
                continue
            ended, took = self._took.get(id_, (since, None))
            backlog = Backlog(epoch - (look.plan.at or 0), now - since, now - ended, took)
            timing = time_publication(look.plan, backlog, lag, runtime.limits)
            is_wanted = timing in (PublicationTiming.AT_ONCE, PublicationTiming.DUE)
            if is_wanted and (runtime.spark.is_started or _is_small(runtime, look.plan)):
                chosen.append(id_)
        return chosen

    def publish(self, ids: Iterable[RelationId], term: int) -> None:
        """Publish relations that are due."""
        clock = self._runtime.clock
        for id_ in ids:
            if self._runtime.stopping.is_set():
                return
            began = clock.now()
            publish_exactly(self._runtime, id_, term)
            with self._lock:
                self._took[id_] = clock.now(), clock.now() - began
                self._since.pop(id_, None)


def _look(runtime: Runtime, id_: RelationId, epoch: Epoch) -> _Look | None:
    """A relation that is behind at `epoch`; None if it is not, or is nothing that outside readers see."""
    with runtime.catalog.read() as tx:
        relation = relations.by_id(tx, id_, epoch)
        if relation is None or relation.is_hidden or not relation.is_stored:
            return None
        if isinstance(lives.find(tx, id_, epoch), Building):
            return None
        number, at = barriers.publication_state(tx, id_)
        published = files.published(tx, id_)
        plan = plan_publication(files.content(tx, id_, epoch), published, epoch, at)
    return None if plan is None else _Look(relation, plan, number, tuple(published))


def _is_small(runtime: Runtime, plan: PublicationPlan) -> bool:
    return plan.rewritten_rows <= runtime.limits.copied_rows


def _copies(runtime: Runtime, look: _Look) -> list[NewFile]:
    """Write what pending changes come to: little by the driver, much by Spark."""
    relation, plan = look.relation, look.plan
    if plan.is_plain:
        return []
    if _is_small(runtime, plan):
        copies = write_copy(runtime.warehouse, relation, plan.rewritten, f"{runtime.attempt()}.parquet")
    else:
        with translated(), runtime.doing(f'publishing "{relation.name}"'):
            limits, session = runtime.limits, runtime.spark.session
            frame = scan_content(session, runtime.warehouse, relation, plan.rewritten, limits)
            frame = frame.select(*(quote(column.name) for column in relation.columns))
            copies = write_frame(runtime, relation, Store.ROWS, frame, signed=False)
    failpoint("publish.copied")
    return copies


def _commit(runtime: Runtime, look: _Look, copies: list[NewFile]) -> Publication:
    publication = look.plan.publication(copies, look.published)
    runtime.logs.publish(look.relation, publication, look.number + 1, runtime.clock.now())
    return publication

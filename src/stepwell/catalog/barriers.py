"""Barriers: an epoch's way from open to readable, one transaction a step, each tested against the lease's term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import sqlalchemy as sa

from stepwell.catalog import control, deferrals, files, leases, lives, views, watermarks
from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import barrier_requests, epochs, relations
from stepwell.model.epochs import Epoch, EpochRecord, EpochState
from stepwell.model.errors import ConflictError, EpochNotRetainedError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DataFile, NewFile, total
from stepwell.model.intervals import Intervals
from stepwell.model.lifecycle import Outcome
from stepwell.model.limits import Limits
from stepwell.model.views import Refresh, RelationId
from stepwell.model.watermarks import LateCount, MarkRecord
from stepwell.plan import Publication


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What several writers acknowledged for one relation, and the one changelog that stands for it."""

    inputs: tuple[DataFile, ...]
    outputs: tuple[NewFile, ...]


def close(tx: Transaction, term: int, now: int) -> Epoch:
    """End the open epoch: what is acknowledged is its input, what comes now belongs to the next."""
    leases.check(tx, term)
    epoch = control.lock(tx).open_epoch
    tx.execute(sa.update(epochs).where(epochs.c.epoch == epoch).values(state=EpochState.ALIGNED.value, aligned_at=now))
    tx.execute(
        sa.insert(epochs).values(
            epoch=epoch + 1, state=EpochState.OPEN.value, opened_at=now, changed=0, inserted=0, retracted=0
        )
    )
    control.move(tx, open_epoch=epoch + 1)
    return epoch


@dataclass(frozen=True, slots=True)
class Derived:
    """What an epoch made of the views: files of each, what was done, and which of them fare otherwise now."""

    files: Mapping[RelationId, Sequence[NewFile]] = field(default_factory=dict)
    refreshes: Sequence[Refresh] = ()
    outcomes: Sequence[Outcome] = ()
    marks: Sequence[MarkRecord] = ()
    late: Sequence[LateCount] = ()
    hidden: AbstractSet[RelationId] = frozenset()
    replaced: AbstractSet[RelationId] = frozenset()
    touched: Mapping[RelationId, Mapping[str, Intervals]] = field(default_factory=dict)
    """Of views that continuous aggregates read: the times that the epoch has touched, by time column."""


def commit(
    tx: Transaction,
    term: int,
    epoch: Epoch,
    consolidated: Sequence[Consolidated],
    derived: Derived,
    now: int,
    longest_log: int = Limits().log_entries,
) -> None:
    """Make an aligned epoch one that cannot be lost."""
    leases.check(tx, term)
    control.lock(tx)
    for each in consolidated:
        files.replace_written(tx, each.inputs, each.outputs, now)
    for relation, new in derived.files.items():
        if relation in derived.replaced:
            files.close(tx, relation, files.content(tx, relation, Epoch(epoch - 1)), new, epoch, now)
        else:
            files.add(tx, relation, new, from_epoch=epoch)
    for relation, touched in derived.touched.items():
        deferrals.log_change(tx, relation, dict(touched), epoch, longest_log)
    lives.settle(tx, epoch, derived.outcomes)
    watermarks.settle(tx, epoch, derived.marks)
    watermarks.count_late(tx, derived.late)
    views.record_refreshes(tx, derived.refreshes)
    written = {id_: group for id_, group in files.written_in(tx, epoch).items() if id_ not in derived.hidden}
    counts = total(file for group in written.values() for file in group)
    tx.execute(
        sa.update(epochs)
        .where(epochs.c.epoch == epoch)
        .values(
            state=EpochState.COMMITTED.value,
            committed_at=now,
            changed=len(written),
            inserted=counts.inserted,
            retracted=counts.retracted,
        )
    )
    failpoint("barrier.commit.inside")


def finish(
    tx: Transaction, term: int, epoch: Epoch, publications: Sequence[tuple[RelationId, Publication]], now: int
) -> None:
    """Make a committed and published epoch readable."""
    leases.check(tx, term)
    control.lock(tx)
    record_publications(tx, publications, now)
    tx.execute(
        sa.update(epochs).where(epochs.c.epoch == epoch).values(state=EpochState.READABLE.value, readable_at=now)
    )
    control.move(tx, readable_epoch=epoch)
    tx.execute(sa.delete(barrier_requests).where(barrier_requests.c.epoch <= epoch))
    failpoint("barrier.readable.inside")


def record_publications(tx: Transaction, publications: Sequence[tuple[RelationId, Publication]], now: int) -> None:
    """Remember what the Delta logs say now."""
    control.lock(tx)
    for relation, publication in publications:
        files.mark_published(tx, [file.id for file in publication.adds], [file.id for file in publication.removes], now)
        files.add_copies(tx, relation, publication.copies, publication.epoch)
        tx.execute(
            sa.update(relations)
            .where(relations.c.id == relation)
            .values(published_epoch=publication.epoch, publication=relations.c.publication + 1)
        )


def require_publication(tx: Transaction, relation: RelationId, number: int) -> None:
    """Fail if somebody else has published a relation since it was so for the `number`-th time."""
    control.lock(tx)
    if publication_state(tx, relation)[0] != number:
        raise ConflictError("the relation was published by somebody else meanwhile")


def publication_state(tx: Transaction, relation: RelationId) -> tuple[int, Epoch | None]:
    """How often a relation was published, and the epoch its Delta log stands at."""
    query = sa.select(relations.c.publication, relations.c.published_epoch).where(relations.c.id == relation)
    row = tx.execute(query).one()
    return row.publication, row.published_epoch


def unpublished(tx: Transaction) -> set[RelationId]:
    """The relations that have no Delta log yet."""
    query = sa.select(relations.c.id).where(relations.c.published_epoch.is_(None))
    return {RelationId(id_) for id_ in tx.execute(query).scalars()}


def unfinished(tx: Transaction) -> list[EpochRecord]:
    """The epochs that are closed and not yet readable, oldest first: what a crash has left to do."""
    return _records(tx, epochs.c.state.in_([EpochState.ALIGNED.value, EpochState.COMMITTED.value]))


def readable(tx: Transaction) -> list[EpochRecord]:
    """The epochs that can be read, oldest first."""
    return _records(tx, epochs.c.state == EpochState.READABLE.value)


def has_requests(tx: Transaction) -> bool:
    """Whether somebody waits for the open epoch to be closed."""
    query = sa.select(barrier_requests.c.id).where(barrier_requests.c.epoch >= control.look(tx).open_epoch)
    return tx.execute(query.limit(1)).first() is not None


def has_input(tx: Transaction) -> bool:
    """Whether anything was acknowledged for the open epoch."""
    return bool(files.written_in(tx, control.look(tx).open_epoch))


def require_readable(tx: Transaction, epoch: int) -> Epoch:
    """`epoch`, if it can be read; else an error that names those that can."""
    first, last = oldest(tx), control.look(tx).readable_epoch
    if first <= epoch <= last:
        return Epoch(epoch)
    raise EpochNotRetainedError(
        f"epoch {epoch} cannot be read",
        detail=f"The oldest epoch kept is {first}, the newest readable one {last}.",
        hint="SELECT * FROM stepwell.epochs lists them.",
    )


def oldest(tx: Transaction) -> Epoch:
    """The oldest epoch that can be read."""
    query = sa.select(sa.func.min(epochs.c.epoch)).where(epochs.c.state == EpochState.READABLE.value)
    found = tx.execute(query).scalar()
    return control.look(tx).readable_epoch if found is None else Epoch(found)


def epoch_at(tx: Transaction, moment: int) -> Epoch:
    """The epoch that was the newest readable one at `moment`."""
    query = sa.select(sa.func.max(epochs.c.epoch)).where(
        epochs.c.state == EpochState.READABLE.value, epochs.c.readable_at <= moment
    )
    found = tx.execute(query).scalar()
    if found is None:
        records = readable(tx)
        raise EpochNotRetainedError(
            "no epoch that old is kept",
            detail=f"The oldest epoch kept is {records[0].epoch}." if records else "No epoch is readable yet.",
            hint="SELECT * FROM stepwell.epochs lists them with their times.",
        )
    return Epoch(found)


def forget_epochs(tx: Transaction, before: Epoch) -> None:
    """Let go of the epochs below `before`."""
    tx.execute(sa.delete(epochs).where(epochs.c.epoch < before, epochs.c.state == EpochState.READABLE.value))


def _records(tx: Transaction, condition: sa.ColumnElement[bool]) -> list[EpochRecord]:
    query = sa.select(epochs).where(condition).order_by(epochs.c.epoch)
    return [
        EpochRecord(
            Epoch(row.epoch),
            EpochState(row.state),
            row.committed_at,
            row.readable_at,
            row.changed,
            row.inserted,
            row.retracted,
            row.aligned_at,
        )
        for row in tx.execute(query)
    ]

"""Acknowledgements: the moment a write becomes part of the database.

One transaction takes the files of a write into the open epoch, unless something it read has been touched since.
"""

from __future__ import annotations

from array import array
from typing import Any

import sqlalchemy as sa

from stepwell.catalog import control, deferrals, files, loads
from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import acknowledgements, barrier_requests, relations
from stepwell.model.epochs import Epoch
from stepwell.model.errors import ConflictError, UndefinedTableError
from stepwell.model.failpoints import failpoint
from stepwell.model.limits import Limits
from stepwell.model.views import RelationId
from stepwell.model.writes import Position, Receipt, RelationWrite, Touch, Write


def acknowledge(
    tx: Transaction, write: Write, now: int, *, wants_barrier: bool, longest_log: int = Limits().log_entries
) -> Receipt:
    """Take a write into the open epoch; `wants_barrier` if its writer waits until it is readable.

    What continuous aggregates have to compute again because of it is logged, in at most so many ranges a source.
    """
    at = control.lock(tx)
    watched = [each for each in write.relations if _is_watched(tx, each.relation) and each.files]
    for each in write.relations:
        if each.read_at is not None:
            _require_untouched(tx, each, at)
    position = Position(at.last_position + 1)
    for each in write.relations:
        files.add(tx, each.relation, each.files, from_epoch=at.open_epoch)
        for label in each.labels:
            loads.add(tx, label, each.relation, at.open_epoch, now)
        tx.execute(
            sa.insert(acknowledgements).values(
                position=position,
                relation_id=each.relation,
                epoch=at.open_epoch,
                at=now,
                chunks=None if each.touch.chunks is None else sorted(each.touch.chunks),
                keys=None if each.touch.keys is None else array("q", sorted(each.touch.keys)).tobytes(),
            )
        )
    for each in watched:
        deferrals.log_change(tx, each.relation, dict(each.times), at.open_epoch, longest_log)
    control.move(tx, last_position=position)
    if wants_barrier:
        request_barrier(tx, at.open_epoch, now)
    failpoint("acknowledge.inside")
    return Receipt(at.open_epoch, position)


def request_barrier(tx: Transaction, epoch: int, now: int) -> None:
    """Ask whoever leads to close `epoch`."""
    tx.execute(sa.insert(barrier_requests).values(epoch=epoch, requested_at=now))


def forget_before(tx: Transaction, at: int) -> None:
    """Drop acknowledgements older than `at`: a statement that has been reading since before then has to read again."""
    control.lock(tx)
    old = acknowledgements.c.at < at
    last = tx.execute(sa.select(sa.func.max(acknowledgements.c.position)).where(old)).scalar()
    if last is not None:
        tx.execute(sa.delete(acknowledgements).where(acknowledgements.c.position <= last))
        control.move(tx, forgotten_position=last)


def position_at(tx: Transaction, epoch: Epoch) -> Position:
    """The last acknowledgement that is part of an epoch or of one before it, as far as they are remembered."""
    query = sa.select(sa.func.max(acknowledgements.c.position)).where(acknowledgements.c.epoch <= epoch)
    return Position(max(tx.execute(query).scalar() or 0, control.look(tx).forgotten_position))


def is_touched(tx: Transaction, relation: RelationId, *, after: Position, upto: Position) -> bool:
    """Whether a relation was written in the positions (after, upto]."""
    query = sa.select(acknowledgements.c.position).where(
        acknowledgements.c.relation_id == relation,
        acknowledgements.c.position > after,
        acknowledgements.c.position <= upto,
    )
    return tx.execute(query.limit(1)).first() is not None


def _is_watched(tx: Transaction, relation: RelationId) -> bool:
    """Whether continuous aggregates read a relation that is there; an error if it is not."""
    watched = deferrals.is_watched(relations.c.id).label("watched")
    query = sa.select(relations.c.name, relations.c.dropped_epoch, watched).where(relations.c.id == relation)
    row = tx.execute(query).one_or_none()
    if row is None or row.dropped_epoch is not None:
        raise UndefinedTableError(
            f'table "{row.name}" was dropped meanwhile' if row else "the table was dropped meanwhile"
        )
    return bool(row.watched)


def _require_untouched(tx: Transaction, write: RelationWrite, at: control.Control) -> None:
    assert write.read_at is not None
    query = sa.select(acknowledgements).where(
        acknowledgements.c.relation_id == write.relation, acknowledgements.c.position > write.read_at
    )
    others = [_touch(row) for row in tx.execute(query).mappings()]
    if write.read_at < at.forgotten_position or any(write.touch.meets(other) for other in others):
        raise ConflictError(
            "the rows were changed by somebody else meanwhile",
            detail="Nothing of this write was applied.",
            hint="Run it again.",
        )


def _touch(row: Any) -> Touch:
    keys = None
    if row["keys"] is not None:
        numbers = array("q")
        numbers.frombytes(row["keys"])
        keys = frozenset(numbers)
    return Touch(None if row["chunks"] is None else frozenset(row["chunks"]), keys)

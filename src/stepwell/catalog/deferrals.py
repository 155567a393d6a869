"""Continuous aggregates in the catalog: thresholds, completed thresholds, and logs of invalidations.

A log belongs to a source and one of its time columns, and is written by whoever changes the source; or to a view, and
is read by whoever refreshes it. Everything here holds in a range of epochs, so that an earlier epoch is read by the
logs of its own time. The control row is locked by every transaction that writes here, so a threshold and the writes
that are tested against it have one order.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from stepwell.catalog import control, in_force, relations
from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import completions, invalidations, thresholds, watches
from stepwell.model.buckets import Buckets
from stepwell.model.epochs import Epoch
from stepwell.model.intervals import ALWAYS, Interval, Intervals, common
from stepwell.model.invalidations import Invalidation, InvalidationLog, merged, shortened
from stepwell.model.views import Deferral, RelationId
from stepwell.model.watermarks import NEVER

DIMENSION = ""
"""In the place of a time column: whatever changes, all times are touched."""

_NOTHING_YET = Epoch(0)
"""The epoch of what was never computed: before all others."""


def register(tx: Transaction, view: RelationId, deferral: Deferral) -> None:
    """Let a new view be told of what changes below it; nothing of it is computed yet."""
    epoch = control.lock(tx).open_epoch
    for source, column in watched(deferral):
        tx.execute(sa.insert(watches).values(relation_id=source, time_column=column, view_id=view))
        if column != DIMENSION and threshold(tx, source, column) is None:
            row = {"relation_id": source, "time_column": column, "from_epoch": epoch, "threshold": NEVER}
            tx.execute(sa.insert(thresholds).values(row))
    in_force.begin(tx, completions, view, epoch, {"completed": NEVER})
    replace_log(tx, view, (Invalidation(ALWAYS, _NOTHING_YET),))


def forget(tx: Transaction, ids: Sequence[RelationId]) -> None:
    """Remove what is kept for views that are dropped, and of their sources what no other view needs."""
    gone = tx.execute(sa.delete(watches).where(watches.c.view_id.in_(ids)).returning(watches.c.relation_id)).scalars()
    sources = {RelationId(each) for each in gone}
    if not sources:
        return
    in_force.forget(tx, completions, ids)
    tx.execute(sa.delete(invalidations).where(invalidations.c.relation_id.in_(ids)))
    for table in (thresholds, invalidations):
        still = sa.exists().where(
            watches.c.relation_id == table.c.relation_id, watches.c.time_column == table.c.time_column
        )
        chosen = sa.and_(table.c.relation_id.in_(sources), table.c.time_column.is_not(None))
        tx.execute(sa.delete(table).where(chosen, ~still))


def forget_before(tx: Transaction, oldest: Epoch) -> None:
    """Remove what was in force at no epoch from `oldest` on."""
    for table in (thresholds, completions, invalidations):
        in_force.forget_before(tx, table, oldest)


def is_watched(relation: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Whether a view has to be told of changes of a relation, as a part of another query."""
    return sa.exists().where(watches.c.relation_id == relation)


# -- thresholds -------------------------------------------------------------------------------------------------------


def threshold(tx: Transaction, source: RelationId, column: str, at: Epoch | None = None) -> int | None:
    """Below it, writes to a source are logged; None if no view asks for that."""
    when = in_force.now(thresholds) if at is None else in_force.at(thresholds, at)
    query = sa.select(thresholds.c.threshold).where(
        thresholds.c.relation_id == source, thresholds.c.time_column == column, when
    )
    return tx.execute(query).scalar_one_or_none()


def raise_threshold(tx: Transaction, source: RelationId, column: str, upto: int) -> Epoch:
    """Let all writes below a moment be logged from now on; the epoch that is open."""
    epoch = control.lock(tx).open_epoch
    before = threshold(tx, source, column)
    if before is not None and before < upto:
        own = sa.and_(thresholds.c.relation_id == source, thresholds.c.time_column == column, in_force.now(thresholds))
        moved = sa.update(thresholds).where(own, thresholds.c.from_epoch == epoch).values(threshold=upto)
        if not tx.execute(moved).rowcount:
            tx.execute(sa.update(thresholds).where(own).values(until_epoch=epoch))
            row = {"relation_id": source, "time_column": column, "from_epoch": epoch, "threshold": upto}
            tx.execute(sa.insert(thresholds).values(row))
    return epoch


def completed(tx: Transaction, view: RelationId, at: Epoch | None = None) -> int:
    """The moment below which a view is stored, but for what its log says."""
    when = in_force.now(completions) if at is None else in_force.at(completions, at)
    query = sa.select(completions.c.completed).where(completions.c.relation_id == view, when)
    found = tx.execute(query).scalar_one_or_none()
    return NEVER if found is None else int(found)


def raise_completed(tx: Transaction, view: RelationId, upto: int) -> None:
    if completed(tx, view) < upto:
        in_force.begin(tx, completions, view, control.lock(tx).open_epoch, {"completed": upto})


# -- logs -------------------------------------------------------------------------------------------------------------


def log_change(tx: Transaction, source: RelationId, touched: dict[str, Intervals], epoch: Epoch, most: int) -> None:
    """Log what a change of a source has touched in an epoch, by time column; where nothing is named, all times."""
    own = sa.select(watches.c.time_column).where(watches.c.relation_id == source).distinct()
    for column in tx.execute(own).scalars().all():
        ranges: Intervals = (ALWAYS,)
        if column != DIMENSION:
            below = threshold(tx, source, column)
            if below is None or below == NEVER:
                continue
            ranges = common(touched.get(column, (ALWAYS,)), (Interval(NEVER, below),))
        _add(tx, source, column, [Invalidation(each, epoch) for each in ranges], epoch)
        log = source_log(tx, source, column)
        if len(log) > most:
            _replace(tx, source, column, shortened(log, most // 2))


def source_log(tx: Transaction, source: RelationId, column: str, at: Epoch | None = None) -> InvalidationLog:
    """What was changed of a source, and no refresh has taken up yet."""
    return _log(tx, source, column, at)


def view_log(tx: Transaction, view: RelationId, at: Epoch | None = None) -> InvalidationLog:
    """What has to be computed anew of a view: labels of buckets, or times of chunks where it keeps these apart."""
    return _log(tx, view, None, at)


def replace_log(tx: Transaction, view: RelationId, log: InvalidationLog) -> None:
    """Let the log of a view be another one."""
    _replace(tx, view, None, log)


def move_logs(tx: Transaction, deferral: Deferral, most: int) -> None:
    """Move the logs of what a view reads to the logs of all views that read it, epochs kept."""
    control.lock(tx)
    for source, column in watched(deferral):
        log = source_log(tx, source, column)
        if log:
            for view, buckets in readers(tx, source, column):
                hand_down(tx, view, buckets, log, most)
            _replace(tx, source, column, ())


def hand_down(tx: Transaction, view: RelationId, buckets: Buckets, log: InvalidationLog, most: int) -> None:
    """Add to the log of a view what has become of the times of its source."""
    added = [Invalidation(each, entry.epoch) for entry in log for each in buckets.logged((entry.range,))]
    replace_log(tx, view, shortened(merged((*view_log(tx, view), *added)), most))


def readers(tx: Transaction, source: RelationId, column: str) -> list[tuple[RelationId, Buckets]]:
    """The views that are told of changes of a source, each with its buckets."""
    query = sa.select(watches.c.view_id).where(watches.c.relation_id == source, watches.c.time_column == column)
    found = []
    for id_ in tx.execute(query).scalars().all():
        view = relations.by_id(tx, RelationId(id_))
        if view is not None and view.deferral is not None:
            found.append((view.id, Buckets(view.deferral.transfer, view.deferral.integer, view.deferral.chunk)))
    return found


def watched(deferral: Deferral) -> list[tuple[RelationId, str]]:
    """What a view is told the changes of: its source by time, and its dimensions."""
    return [(deferral.source, deferral.column), *((each, DIMENSION) for each in deferral.dimensions)]


def _own(id_: RelationId, column: str | None) -> sa.ColumnElement[bool]:
    named = invalidations.c.time_column.is_(None) if column is None else invalidations.c.time_column == column
    return sa.and_(invalidations.c.relation_id == id_, named)


def _log(tx: Transaction, id_: RelationId, column: str | None, at: Epoch | None) -> InvalidationLog:
    when = in_force.now(invalidations) if at is None else in_force.at(invalidations, at)
    rows = tx.execute(sa.select(invalidations).where(_own(id_, column), when))
    return merged(Invalidation(Interval(row.starts, row.ends), Epoch(row.epoch)) for row in rows)


def _replace(tx: Transaction, id_: RelationId, column: str | None, log: InvalidationLog) -> None:
    epoch = control.lock(tx).open_epoch
    own = sa.and_(_own(id_, column), in_force.now(invalidations))
    tx.execute(sa.delete(invalidations).where(own, invalidations.c.from_epoch >= epoch))
    tx.execute(sa.update(invalidations).where(own).values(until_epoch=epoch))
    _add(tx, id_, column, log, epoch)


def _add(tx: Transaction, id_: RelationId, column: str | None, log: Sequence[Invalidation], since: Epoch) -> None:
    rows = [
        {
            "relation_id": id_,
            "time_column": column,
            "starts": each.range.start,
            "ends": each.range.end,
            "epoch": each.epoch,
            "from_epoch": since,
        }
        for each in log
    ]
    if rows:
        tx.execute(sa.insert(invalidations), rows)

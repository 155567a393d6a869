"""Watermarks in the catalog: how far each relation was in event time at each epoch, and what came too late.

Until an epoch is committed, the row in force at it says where it begins, and what was asked of it; afterwards where it
has ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from stepwell.catalog import control, in_force
from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import late_rows, watermarks
from stepwell.model.epochs import Epoch
from stepwell.model.views import RelationId
from stepwell.model.watermarks import LateCount, MarkRecord


def get_all(tx: Transaction) -> dict[RelationId, MarkRecord]:
    """Where each relation stands, and what was asked of it."""
    return _records(tx, in_force.now(watermarks))


def get_all_at(tx: Transaction, epoch: Epoch) -> dict[RelationId, MarkRecord]:
    """Where each relation stood at an epoch: at its start until it is committed, then at its end."""
    return _records(tx, in_force.at(watermarks, epoch))


def settle(tx: Transaction, epoch: Epoch, records: Sequence[MarkRecord]) -> None:
    """Remember where these relations stand at the end of an epoch; what was asked since it was closed stays asked."""
    if not records:
        return
    ids = [each.relation for each in records]
    own = sa.and_(watermarks.c.relation_id.in_(ids), in_force.after(watermarks, epoch))
    begun: dict[int, Any] = {}
    later: dict[int, list[Any]] = {}
    for row in tx.execute(sa.select(watermarks).where(own).order_by(watermarks.c.from_epoch)):
        if row.from_epoch <= epoch:
            begun[row.relation_id] = row
        else:
            later.setdefault(row.relation_id, []).append(row)
    tx.execute(sa.update(watermarks).where(own, watermarks.c.from_epoch < epoch).values(until_epoch=epoch))
    if any(row.from_epoch == epoch for row in begun.values()):
        tx.execute(sa.delete(watermarks).where(own, watermarks.c.from_epoch == epoch))
    ended = []
    for each in records:
        before, after = begun.get(each.relation), later.get(each.relation, [])
        until = before.until_epoch if before else after[0].from_epoch if after else None
        ended.append({**_encode(each), "relation_id": each.relation, "from_epoch": epoch, "until_epoch": until})
        for row in after:
            _bring_along(tx, row, _record(before) if before else MarkRecord(each.relation), each)
    tx.execute(sa.insert(watermarks), ended)


def _bring_along(tx: Transaction, row: Any, before: MarkRecord, after: MarkRecord) -> None:
    """Let a row that was made while an epoch was maintained stand where the epoch has ended."""
    asked = _record(row)
    if dataclasses.replace(asked, requested=before.requested) == before:  # else it begins anew, with another definition
        this = sa.and_(watermarks.c.relation_id == row.relation_id, watermarks.c.from_epoch == row.from_epoch)
        values = _encode(dataclasses.replace(after, requested=asked.requested))
        tx.execute(sa.update(watermarks).where(this).values(values))


def request(tx: Transaction, relation: RelationId, upto: int) -> None:
    """Ask the next barrier to bring a relation up to a moment: a table's watermark, or what a view has emitted."""
    epoch = control.lock(tx).open_epoch
    known = get_all(tx).get(relation) or MarkRecord(relation)
    if known.requested is None or known.requested < upto:
        in_force.begin(tx, watermarks, relation, epoch, _encode(dataclasses.replace(known, requested=upto)))


def end(tx: Transaction, ids: Sequence[RelationId]) -> None:
    """Let relations that are dropped or replaced stand nowhere from the open epoch on."""
    in_force.end(tx, watermarks, ids, control.lock(tx).open_epoch)


def forget(tx: Transaction, ids: Sequence[RelationId]) -> None:
    in_force.forget(tx, watermarks, ids)
    forget_late(tx, ids)


def forget_before(tx: Transaction, oldest: Epoch) -> None:
    """Remove where relations stood before `oldest`."""
    in_force.forget_before(tx, watermarks, oldest)


def forget_late(tx: Transaction, ids: Sequence[RelationId]) -> None:
    tx.execute(sa.delete(late_rows).where(late_rows.c.relation_id.in_(ids)))


def count_late(tx: Transaction, counts: Iterable[LateCount]) -> None:
    for each in counts:
        key = sa.and_(late_rows.c.relation_id == each.relation, late_rows.c.epoch == each.epoch)
        tx.execute(sa.delete(late_rows).where(key))  # a crash may have left that of an attempt before
        tx.execute(
            sa.insert(late_rows).values(
                relation_id=each.relation, epoch=each.epoch, inserted=each.inserted, retracted=each.retracted
            )
        )


def late_counts(tx: Transaction) -> list[LateCount]:
    query = sa.select(late_rows).order_by(late_rows.c.epoch, late_rows.c.relation_id)
    return [LateCount(*row) for row in tx.execute(query)]


def _records(tx: Transaction, condition: sa.ColumnElement[bool]) -> dict[RelationId, MarkRecord]:
    return {RelationId(row.relation_id): _record(row) for row in tx.execute(sa.select(watermarks).where(condition))}


def _record(row: Any) -> MarkRecord:
    relation, _, _, *rest = row
    return MarkRecord(relation, *rest)


def _encode(record: MarkRecord) -> dict[str, Any]:
    values = dataclasses.asdict(record)
    del values["relation"]
    return values

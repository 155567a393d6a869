"""Watermarks in the catalog: how far each relation is in event time, and what came too late."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import late_rows, watermarks
from stepwell.model.views import RelationId
from stepwell.model.watermarks import LateCount, MarkRecord


def get_all(tx: Transaction) -> dict[RelationId, MarkRecord]:
    return {RelationId(row.relation_id): MarkRecord(*row) for row in tx.execute(sa.select(watermarks))}


def put(tx: Transaction, records: Iterable[MarkRecord]) -> None:
    """Remember where these relations stand; what was asked for meanwhile stays asked for."""
    for each in records:
        values = dataclasses.asdict(each)
        id_ = values.pop("relation")
        requested = values.pop("requested")
        found = tx.execute(sa.update(watermarks).where(watermarks.c.relation_id == id_).values(values))
        if not found.rowcount:
            tx.execute(sa.insert(watermarks).values(relation_id=id_, requested=requested, **values))


def request(tx: Transaction, relation: RelationId, upto: int) -> None:
    """Ask the next barrier to bring a relation up to a moment: a table's watermark, or what a view has emitted."""
    known = get_all(tx).get(relation)
    if known is None:
        put(tx, [MarkRecord(relation, requested=upto)])
    elif known.requested is None or known.requested < upto:
        tx.execute(sa.update(watermarks).where(watermarks.c.relation_id == relation).values(requested=upto))


def forget(tx: Transaction, ids: Sequence[RelationId]) -> None:
    tx.execute(sa.delete(watermarks).where(watermarks.c.relation_id.in_(ids)))
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

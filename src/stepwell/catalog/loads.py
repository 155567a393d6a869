"""Loads by their labels: recorded with the acknowledgement, so that a load is there exactly if its label is."""

from __future__ import annotations

import sqlalchemy as sa

from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import loads
from stepwell.model.errors import ConflictError
from stepwell.model.loads import Label, Load
from stepwell.model.views import RelationId


def add(tx: Transaction, label: Label, relation: RelationId, epoch: int, now: int) -> None:
    """Record a load; somebody who was faster with its label is a conflict."""
    if find(tx, label.text) is not None:
        raise ConflictError(f'a load with the label "{label.text}" was acknowledged meanwhile', hint="Run it again.")
    tx.execute(
        sa.insert(loads).values(
            label=label.text,
            relation_id=relation,
            digest=label.digest,
            files=label.files,
            rows=label.rows,
            epoch=epoch,
            at=now,
        )
    )


def find(tx: Transaction, label: str) -> Load | None:
    row = tx.execute(sa.select(loads).where(loads.c.label == label)).one_or_none()
    return None if row is None else _load(row)


def get_all(tx: Transaction) -> list[Load]:
    """Every load that had a label, in the order they were acknowledged."""
    return [_load(row) for row in tx.execute(sa.select(loads).order_by(loads.c.epoch, loads.c.at))]


def _load(row: sa.Row[tuple[object, ...]]) -> Load:
    return Load(Label(row.label, row.digest, row.files, row.rows), row.relation_id, row.epoch, row.at)

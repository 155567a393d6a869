"""Pins: epochs that must stay readable while somebody works on them."""

from __future__ import annotations

import sqlalchemy as sa

from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import pins
from stepwell.model.epochs import Epoch


def pin(tx: Transaction, epoch: Epoch, holder: str, now: int) -> int:
    """Keep `epoch` until `unpin`; the number to give back."""
    query = sa.insert(pins).values(epoch=epoch, holder=holder, created_at=now).returning(pins.c.id)
    return int(tx.execute(query).scalar_one())


def unpin(tx: Transaction, id_: int) -> None:
    tx.execute(sa.delete(pins).where(pins.c.id == id_))


def unpin_all(tx: Transaction, holder: str) -> None:
    """Let go of all that a holder has pinned."""
    tx.execute(sa.delete(pins).where(pins.c.holder == holder))


def moments(tx: Transaction) -> list[int]:
    """When each pin was made."""
    return [int(row.created_at) for row in tx.execute(sa.select(pins.c.created_at))]


def pinned(tx: Transaction) -> list[Epoch]:
    return [Epoch(row.epoch) for row in tx.execute(sa.select(pins.c.epoch).order_by(pins.c.epoch))]

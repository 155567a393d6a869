"""Settings of the whole database; those of a session never come here."""

from __future__ import annotations

import sqlalchemy as sa

from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import settings


def get(tx: Transaction, name: str) -> str | None:
    return tx.execute(sa.select(settings.c.value).where(settings.c.name == name)).scalar()


def put(tx: Transaction, name: str, value: str) -> None:
    tx.execute(sa.delete(settings).where(settings.c.name == name))
    tx.execute(sa.insert(settings).values(name=name, value=value))

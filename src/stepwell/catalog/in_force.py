"""What is in force at an epoch: tables whose rows hold for a relation in the epochs [from_epoch, until_epoch).

A row without an end is in force until further notice. What a statement says holds from the open epoch on, so an epoch
that was closed before it finds what was in force at its own number, however late it is maintained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from stepwell.catalog.connection import Transaction
from stepwell.model.epochs import Epoch
from stepwell.model.views import RelationId


def at(table: sa.Table, epoch: Epoch) -> sa.ColumnElement[bool]:
    """The rows in force at an epoch."""
    return sa.and_(table.c.from_epoch <= epoch, after(table, epoch))


def after(table: sa.Table, epoch: Epoch) -> sa.ColumnElement[bool]:
    """The rows in force at an epoch or only later."""
    return sa.or_(table.c.until_epoch.is_(None), table.c.until_epoch > epoch)


def now(table: sa.Table) -> sa.ColumnElement[bool]:
    """The rows that hold until further notice."""
    return table.c.until_epoch.is_(None)


def begin(tx: Transaction, table: sa.Table, id_: RelationId, epoch: Epoch, values: Mapping[str, Any]) -> None:
    """Let this hold for a relation from `epoch` on, instead of what holds until further notice."""
    own = sa.and_(table.c.relation_id == id_, now(table))
    if tx.execute(sa.update(table).where(own, table.c.from_epoch == epoch).values(**values)).rowcount:
        return
    tx.execute(sa.update(table).where(own).values(until_epoch=epoch))
    tx.execute(sa.insert(table).values(relation_id=id_, from_epoch=epoch, **values))


def end(tx: Transaction, table: sa.Table, ids: Sequence[RelationId], epoch: Epoch) -> None:
    """Let nothing hold for these relations from `epoch` on."""
    own = sa.and_(table.c.relation_id.in_(ids), now(table))
    tx.execute(sa.delete(table).where(own, table.c.from_epoch >= epoch))
    tx.execute(sa.update(table).where(own).values(until_epoch=epoch))


def forget_before(tx: Transaction, table: sa.Table, oldest: Epoch) -> None:
    """Remove what is in force at no epoch from `oldest` on."""
    tx.execute(sa.delete(table).where(table.c.until_epoch <= oldest))


def forget(tx: Transaction, table: sa.Table, ids: Sequence[RelationId]) -> None:
    """Remove all that ever held for these relations."""
    tx.execute(sa.delete(table).where(table.c.relation_id.in_(ids)))

"""The lives of views in the catalog, each in force in a range of epochs.

Until an epoch is committed, the life in force at it is the one that it begins with; afterwards it is what the epoch has
made of it. While a view just follows its parents, its life is one row, whatever epoch it reflects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from stepwell.catalog import control, in_force
from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import lives
from stepwell.model.epochs import Epoch
from stepwell.model.lifecycle import (
    Building,
    ByParent,
    ByUser,
    Failed,
    Life,
    Outcome,
    Owed,
    Paused,
    Running,
    Serving,
    Unpopulated,
    settled,
)
from stepwell.model.views import RelationId

_FOLLOWS = {"stage": "serving", "condition": "running", "owed": Owed.NOTHING.name.lower()}


def put(tx: Transaction, id_: RelationId, life: Life) -> None:
    """Let a view live so from the open epoch on."""
    in_force.begin(tx, lives, id_, control.lock(tx).open_epoch, _encode(life))


def get_all(tx: Transaction) -> dict[RelationId, Life]:
    """How each view lives after all that was said of it."""
    query = sa.select(lives).where(in_force.now(lives))
    return {RelationId(row.relation_id): _decode(row) for row in tx.execute(query)}


def get_all_at(tx: Transaction, epoch: Epoch) -> dict[RelationId, Life]:
    """How each view lived at an epoch: at its start until it is committed, then at its end."""
    query = sa.select(lives).where(in_force.at(lives, epoch))
    return {RelationId(row.relation_id): _decode(row, epoch) for row in tx.execute(query)}


def find(tx: Transaction, id_: RelationId, epoch: Epoch | None = None) -> Life | None:
    """How one view lives after all that was said of it, or lived at an epoch; None for what is no view."""
    when = in_force.now(lives) if epoch is None else in_force.at(lives, epoch)
    row = tx.execute(sa.select(lives).where(lives.c.relation_id == id_, when)).one_or_none()
    return None if row is None else _decode(row, epoch)


def changed_since(tx: Transaction, epoch: Epoch) -> set[RelationId]:
    """The views of an epoch of which statements have said something since it was closed."""
    query = sa.select(lives.c.relation_id).where(in_force.at(lives, epoch), lives.c.until_epoch.is_not(None))
    return {RelationId(id_) for id_ in tx.execute(query).scalars()}


def settle(tx: Transaction, epoch: Epoch, outcomes: Sequence[Outcome]) -> None:
    """Remember what an epoch has made of the views; what was said of one since the epoch was closed stays said."""
    for each in outcomes:
        if each.becomes != each.was and not each.only_advances:
            _settle(tx, epoch, each)
    _advance(tx, epoch)


def _settle(tx: Transaction, epoch: Epoch, outcome: Outcome) -> None:
    own = lives.c.relation_id == outcome.relation
    rows = tx.execute(sa.select(lives).where(own, in_force.after(lives, epoch)).order_by(lives.c.from_epoch)).all()
    for row in rows:
        this = sa.and_(own, lives.c.from_epoch == row.from_epoch)
        if row.from_epoch < epoch:
            tx.execute(sa.update(lives).where(this).values(until_epoch=epoch))
            span = {"relation_id": outcome.relation, "from_epoch": epoch, "until_epoch": row.until_epoch}
            tx.execute(sa.insert(lives).values(**span, **_encode(outcome.becomes)))
        else:
            becomes = outcome.becomes if row.from_epoch == epoch else settled(outcome, _decode(row))
            tx.execute(sa.update(lives).where(this).values(**_encode(becomes)))


def _advance(tx: Transaction, epoch: Epoch) -> None:
    """Every view that follows its parents at an epoch reflects it, also where more was said of it since."""
    then = lives.alias("then")
    followed = sa.exists().where(
        then.c.relation_id == lives.c.relation_id,
        then.c.from_epoch <= epoch,
        sa.or_(then.c.until_epoch.is_(None), then.c.until_epoch > epoch),
        *(then.c[name] == value for name, value in _FOLLOWS.items()),
    )
    tx.execute(
        sa.update(lives).where(in_force.after(lives, epoch), lives.c.reflects < epoch, followed).values(reflects=epoch)
    )


def end(tx: Transaction, ids: Sequence[RelationId]) -> None:
    """Let views that are dropped live up to the open epoch."""
    in_force.end(tx, lives, ids, control.lock(tx).open_epoch)


def forget(tx: Transaction, ids: Sequence[RelationId]) -> None:
    in_force.forget(tx, lives, ids)


def forget_before(tx: Transaction, oldest: Epoch) -> None:
    in_force.forget_before(tx, lives, oldest)


def _encode(life: Life) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(
        ("job", "reflects", "condition", "paused_by", "waits_for", "failure", "owed"), None
    )
    match life:
        case Building(job, why):
            row.update(stage="building", job=job, failure=why)
        case Unpopulated():
            row.update(stage="unpopulated")
        case Serving(reflects, condition, owed):
            row.update(stage="serving", reflects=reflects, owed=owed.name.lower())
            match condition:
                case Running():
                    row.update(condition="running")
                case Paused(ByUser()):
                    row.update(condition="paused", paused_by="user")
                case Paused(ByParent(parent)):
                    row.update(condition="paused", paused_by="parent", waits_for=parent)
                case Failed(why):
                    row.update(condition="failed", failure=why)
    return row


def _decode(row: Any, epoch: Epoch | None = None) -> Life:
    if row.stage == "building":
        return Building(row.job, row.failure)
    if row.stage == "unpopulated":
        return Unpopulated()
    condition: Running | Paused | Failed = Running()
    reflects = row.reflects
    if row.condition == "paused":
        condition = Paused(ByUser() if row.paused_by == "user" else ByParent(RelationId(row.waits_for)))
    elif row.condition == "failed":
        condition = Failed(row.failure)
    elif epoch is not None:
        reflects = min(reflects, epoch)  # the row has gone on with the epochs after it
    return Serving(Epoch(reflects), condition, Owed[row.owed.upper()])

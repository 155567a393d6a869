"""Refreshes in the catalog: what each epoch did to each view, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import refreshes
from stepwell.model.epochs import Epoch
from stepwell.model.views import Refresh, RelationId


def forget(tx: Transaction, ids: Sequence[RelationId]) -> None:
    tx.execute(sa.delete(refreshes).where(refreshes.c.relation_id.in_(ids)))


def record_refreshes(tx: Transaction, done: Sequence[Refresh]) -> None:
    if not done:
        return
    epoch = done[0].epoch  # a crash may have left those of an attempt before
    tx.execute(
        sa.delete(refreshes).where(
            refreshes.c.epoch == epoch, refreshes.c.relation_id.in_([each.relation for each in done])
        )
    )
    tx.execute(
        sa.insert(refreshes),
        [
            {
                "epoch": each.epoch,
                "relation_id": each.relation,
                "rule": each.rule,
                "steps": each.steps,
                "rows_in": each.rows_in,
                "inserted": each.inserted,
                "retracted": each.retracted,
                "bytes_read": each.bytes_read,
                "jobs": each.jobs,
                "microseconds": each.microseconds,
                "started_at": each.started_at,
                "rows_there": each.rows_there,
                "expected": each.expected,
                "recompute_expected": each.recompute_expected,
            }
            for each in done
        ],
    )


def all_refreshes(tx: Transaction) -> list[Refresh]:
    query = sa.select(refreshes).order_by(refreshes.c.epoch, refreshes.c.relation_id)
    return [_refresh(row) for row in tx.execute(query)]


def last_refresh(tx: Transaction, id_: RelationId) -> Refresh | None:
    query = sa.select(refreshes).where(refreshes.c.relation_id == id_).order_by(refreshes.c.epoch.desc()).limit(1)
    row = tx.execute(query).one_or_none()
    return _refresh(row) if row else None


def last_by_rule(tx: Transaction, rules: Sequence[str]) -> dict[RelationId, dict[str, Refresh]]:
    """The last refresh of every view by each of these rules."""
    newest = (
        sa.select(refreshes.c.relation_id, refreshes.c.rule, sa.func.max(refreshes.c.epoch).label("epoch"))
        .where(refreshes.c.rule.in_(rules))
        .group_by(refreshes.c.relation_id, refreshes.c.rule)
        .subquery()
    )
    same = sa.and_(refreshes.c.relation_id == newest.c.relation_id, refreshes.c.epoch == newest.c.epoch)
    found: dict[RelationId, dict[str, Refresh]] = {}
    for row in tx.execute(sa.select(refreshes).join(newest, same)):
        found.setdefault(RelationId(row.relation_id), {})[row.rule] = _refresh(row)
    return found


def forget_refreshes(tx: Transaction, before: Epoch) -> None:
    tx.execute(sa.delete(refreshes).where(refreshes.c.epoch < before))


def _refresh(row: Any) -> Refresh:
    return Refresh(*row)

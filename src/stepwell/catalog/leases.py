"""The lease: who runs the barrier loop. Its term grows with every holder, and a commit of an old term is refused."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from stepwell.catalog.connection import Transaction, the_one
from stepwell.catalog.schema import lease
from stepwell.model.errors import FencedError


@dataclass(frozen=True, slots=True)
class Lease:
    """Who holds the lease, in which term, and until when unless it is renewed."""

    term: int
    holder: str | None
    expires_at: int


def look(tx: Transaction) -> Lease:
    row = the_one(tx, sa.select(lease), "who leads")
    return Lease(row.term, row.holder, row.expires_at)


def take(tx: Transaction, expected: Lease, holder: str, expires_at: int) -> int | None:
    """The new term, or None if the lease is no longer as `expected`: somebody was faster."""
    query = (
        sa.update(lease)
        .where(lease.c.term == expected.term, lease.c.holder == expected.holder
               if expected.holder is not None else lease.c.holder.is_(None))
        .values(term=expected.term + 1, holder=holder, expires_at=expires_at)
    )  # fmt: skip
    return expected.term + 1 if tx.execute(query).rowcount == 1 else None


def renew(tx: Transaction, term: int, expires_at: int) -> bool:
    """Keep the lease; False if it is another's by now."""
    query = sa.update(lease).where(lease.c.term == term, lease.c.holder.is_not(None)).values(expires_at=expires_at)
    return tx.execute(query).rowcount == 1


def release(tx: Transaction, term: int) -> None:
    """Let the next one in at once."""
    tx.execute(sa.update(lease).where(lease.c.term == term).values(holder=None, expires_at=0))


def check(tx: Transaction, term: int) -> None:
    """Fail unless `term` is the one that leads; the row stays locked until this transaction ends."""
    row = the_one(tx, sa.select(lease).with_for_update(), "who leads")
    if row.term != term or row.holder is None:
        raise FencedError(
            "another process leads this warehouse now",
            detail=f"This process had term {term}; the current one is {row.term}.",
        )

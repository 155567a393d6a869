"""The control row: the open epoch, the readable epoch and the last position, in one place that writers lock."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from stepwell.catalog import schema
from stepwell.catalog.connection import Transaction, the_one
from stepwell.catalog.migrate import newest_revision
from stepwell.model.epochs import Epoch
from stepwell.model.errors import CatalogVersionError
from stepwell.model.writes import Position


@dataclass(frozen=True, slots=True)
class Control:
    """Where the database stands."""

    open_epoch: Epoch
    readable_epoch: Epoch
    last_position: Position
    forgotten_position: Position
    generation: int
    """Grows with every change of a definition: what was read of them at the same number is still right."""


def look(tx: Transaction) -> Control:
    """Where the database stands, as this transaction sees it."""
    return _read(tx, sa.select(schema.control))


def lock(tx: Transaction) -> Control:
    """Where the database stands, and keep everyone else from moving it until this transaction ends."""
    return _read(tx, sa.select(schema.control).with_for_update())


def move(tx: Transaction, **values: int) -> None:
    tx.execute(sa.update(schema.control).values(**values))


def redefine(tx: Transaction) -> None:
    """Say that a definition changes in this transaction."""
    tx.execute(sa.update(schema.control).values(generation=schema.control.c.generation + 1))


def _read(tx: Transaction, query: sa.Select[tuple[int, ...]]) -> Control:
    row = the_one(tx, query, "where the database stands")
    if row.format != int(newest_revision()):
        raise CatalogVersionError(
            f"the warehouse belongs to stepwell {row.program} now",
            detail=f"Its catalog is of revision {row.format}; this process knows {int(newest_revision())}.",
            hint="End this process and start it again with that version.",
        )
    return Control(
        Epoch(row.open_epoch),
        Epoch(row.readable_epoch),
        Position(row.last_position),
        Position(row.forgotten_position),
        row.generation,
    )

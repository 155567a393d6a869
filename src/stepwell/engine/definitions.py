"""Definitions as the engine needs them, as they are now, as a transaction sees them, or as they were at an epoch."""

from __future__ import annotations

from stepwell.catalog import Transaction
from stepwell.engine.generations import Definitions
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch

__all__ = ["Definitions", "load", "load_in"]


def load(runtime: Runtime, at: Epoch | None = None) -> Definitions:
    """The definitions as they are now, or as they were in force at an epoch."""
    with runtime.catalog.read() as tx:
        return load_in(runtime, tx, at)


def load_in(runtime: Runtime, tx: Transaction, at: Epoch | None = None) -> Definitions:
    """The same, as a transaction sees them."""
    return runtime.definitions.seen_by(tx, at)

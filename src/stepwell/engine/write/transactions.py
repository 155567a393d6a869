"""Transactions: how a statement's write is acknowledged, by itself or together with others between BEGIN and COMMIT.

A write is staged as files that nobody knows of, then acknowledged in one transaction of the catalog. A statement that
finds that what it has read was changed meanwhile is run again; a transaction reports the conflict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from stepwell.catalog import writes
from stepwell.engine.read.snapshots import Snapshot
from stepwell.engine.read.stopped import failed_in
from stepwell.engine.runtime import Runtime
from stepwell.engine.settings import read_setting
from stepwell.engine.write.staging import discard, give_back, require_files
from stepwell.engine.write.statements import Staging
from stepwell.model.epochs import Epoch
from stepwell.model.errors import (
    CancelledError,
    ConflictError,
    TransactionStateError,
    UndefinedTableError,
    warn,
)
from stepwell.model.failpoints import failpoint
from stepwell.model.files import total
from stepwell.model.rows import Rows
from stepwell.model.views import RelationId
from stepwell.model.writes import RelationWrite, Write
from stepwell.storage import touched_times


class Barriers(Protocol):
    """Who makes epochs readable."""

    def wait_written(self, epoch: Epoch) -> None:
        """Return once what is acknowledged for `epoch` can be read."""

    def ensure_led(self) -> None:
        """See to it that somebody makes epochs, though nobody waits for this one."""


class Writer:
    """The writes of a database, and its transaction while one is open."""

    def __init__(self, runtime: Runtime, barriers: Barriers) -> None:
        self._runtime = runtime
        self._barriers = barriers
        self._staged: dict[RelationId, RelationWrite] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._staged is not None

    @property
    def staged_labels(self) -> list[str]:
        """The labels of the loads in the open transaction."""
        return [label.text for write in (self._staged or {}).values() for label in write.labels]

    def snapshot(self, *, for_write: bool = False) -> Snapshot:
        """What a statement sees: the newest readable epoch; to write, or in a transaction, all that is acknowledged."""
        if self._staged is None and not for_write:
            return Snapshot(self._runtime)
        return Snapshot(self._runtime, staged={id_: write.files for id_, write in (self._staged or {}).items()})

    def begin(self) -> None:
        if self._staged is not None:
            raise TransactionStateError("a transaction is open already", hint="COMMIT or ROLLBACK it first.")
        self._staged = {}

    def commit(self) -> Rows:
        """Acknowledge all writes of the transaction, or none."""
        parts = tuple(self._require_open().values())
        self._staged = None
        shown = RelationWrite(RelationId(0), tuple(file for part in parts for file in part.files))
        return self.acknowledge(parts, shown)

    def roll_back(self) -> None:
        self._require_open()
        self.abandon()

    def abandon(self) -> None:
        """Forget the transaction, if one is open."""
        parts, self._staged = (self._staged or {}).values(), None
        for part in parts:
            discard(self._runtime, part)
            if part.numbers is not None:
                give_back(self._runtime, part.relation, *part.numbers)

    def require_none_open(self) -> None:
        """Definitions are not part of a transaction."""
        if self._staged is not None:
            raise TransactionStateError(
                "definitions cannot be changed inside a transaction", hint="COMMIT first.", sqlstate="25001"
            )

    def write(self, staging: Staging) -> Rows:
        """Run a write until nothing it has read was changed meanwhile."""
        limits = self._runtime.limits
        for attempt in range(limits.conflict_tries):
            snapshot = self.snapshot(for_write=True)
            write = staging(snapshot)
            try:
                snapshot.require_whole()
                if self._staged is not None:
                    before = self._staged.get(write.relation)
                    self._staged[write.relation] = before.then(write, limits.conflict_keys) if before else write
                    return _written(write, None)
                return self.acknowledge((write,), write)
            except ConflictError:
                discard(self._runtime, write)
                if attempt == limits.conflict_tries - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _require_open(self) -> dict[RelationId, RelationWrite]:
        if self._staged is None:
            raise TransactionStateError("no transaction is open", hint="BEGIN one first.", sqlstate="25P01")
        return self._staged

    def acknowledge(self, parts: tuple[RelationWrite, ...], shown: RelationWrite) -> Rows:
        """Let what was staged count, all of it or nothing; say how many rows `shown` has."""
        write = Write(tuple(part for part in parts if part.files or part.labels))
        if write.is_empty:
            return _written(shown, None)
        try:
            self._runtime.require_wanted()
        except CancelledError:
            self._discard(parts)
            raise
        write = Write(tuple(self._with_times(part) for part in write.relations))
        failpoint("acknowledge.before")
        wants_barrier = not read_setting(self._runtime, "barrier_interval")
        try:
            with self._runtime.catalog.write() as tx:
                receipt = writes.acknowledge(
                    tx,
                    write,
                    self._runtime.clock.now(),
                    wants_barrier=wants_barrier,
                    longest_log=self._runtime.limits.log_entries,
                )
                for part in parts:
                    require_files(self._runtime, part)
        except (ConflictError, UndefinedTableError):
            # Refused for certain. After any other error the catalog may have them all the same: then they must stay.
            self._discard(parts)
            raise
        failpoint("acknowledge.after")
        if wants_barrier:
            self._barriers.wait_written(Epoch(receipt.epoch))
            for said in failed_in(self._runtime, Epoch(receipt.epoch)):
                warn(said)
        else:
            self._barriers.ensure_led()
        return _written(shown, receipt.epoch)

    def _with_times(self, part: RelationWrite) -> RelationWrite:
        """A write with the times that it touches, as far as continuous aggregates are known to ask for them.

        If they are not known here, the transaction takes all times for touched.
        """
        known = self._runtime.definitions.known
        columns = known.watched.get(part.relation) if known is not None else None
        if not columns:
            return part
        assert known is not None
        relation, staged = known.by_id[part.relation], tuple(file.staged(part.relation) for file in part.files)
        warehouse, limits = self._runtime.warehouse, self._runtime.limits
        times = tuple((name, touched_times(warehouse, relation, staged, name, limits)) for name in sorted(columns))
        return replace(part, times=times)

    def _discard(self, parts: tuple[RelationWrite, ...]) -> None:
        for part in parts:
            discard(self._runtime, part)


def _written(write: RelationWrite, epoch: int | None) -> Rows:
    counts = total(write.files)
    return Rows(["inserted", "retracted", "epoch"], [(counts.inserted, counts.retracted, epoch)])

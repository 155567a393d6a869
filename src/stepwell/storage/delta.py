"""Delta logs: each relation's plain rows as a table that any reader can open.

A log is written, never believed: the catalog decides what it should say. Each commit names the epoch whose content it
is, and carries a number that makes it safe to try again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from stepwell.model.failpoints import failpoint
from stepwell.model.files import DataFile, NewFile, Store
from stepwell.model.relations import Column, Relation
from stepwell.plan import Publication
from stepwell.storage.types import arrow_schema
from stepwell.storage.warehouse import Warehouse

EPOCH_KEY = "stepwell.epoch"
_APPLICATION = "stepwell"


class DeltaLogs:
    """The Delta logs of a warehouse, kept open between commits."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._open: dict[int, DeltaTable] = {}
        self._columns: dict[int, tuple[Column, ...]] = {}

    def publish(self, relation: Relation, publication: Publication, number: int, now: int) -> None:
        """Commit a publication as its relation's `number`-th, unless that was done before a crash."""
        failpoint("publish.before")
        log = self._log(relation)
        done = log.transaction_version(_APPLICATION)
        adds: Sequence[DataFile | NewFile] = (*publication.adds, *publication.copies)
        removes: Sequence[str] = [file.path for file in publication.removes]
        whole: Sequence[DataFile | NewFile] = (*publication.content, *publication.copies)
        is_reshaped = not self._follow_columns(log, relation)
        if is_reshaped:
            self._empty(log, relation, publication)
            adds, removes = whole, ()
        if done is not None and done >= number:
            # A commit of this number is there, from before a crash or by a leader that did not know its time was over.
            # What it said may be outdated by now: bring the log to what it should say.
            there = {uri.rsplit("/rows/", 1)[-1] for uri in log.file_uris()}
            adds = [file for file in whole if file.path not in there]
            removes = sorted(there - {file.path for file in whole})
            number = done + 1 if adds or removes else done
            if number == done:
                return
        log.create_write_transaction(
            [
                *(_add(file, now, publication.is_change) for file in adds),
                *(RemoveAction(path, publication.is_change, now // 1000, None, {}) for path in removes),
            ],
            mode="append",
            schema=log.schema(),
            commit_properties=CommitProperties(
                custom_metadata={EPOCH_KEY: str(publication.epoch)},
                app_transactions=[Transaction(_APPLICATION, number, now // 1000)],
            ),
        )
        failpoint("publish.inside")

    def forget(self, relation: int) -> None:
        """Let go of the log of a dropped relation."""
        self._open.pop(relation, None)
        self._columns.pop(relation, None)

    def _log(self, relation: Relation) -> DeltaTable:
        log = self._open.get(relation.id)
        if log is None:
            log = self._open_or_create(relation)
            self._open[relation.id] = log
        log.update_incremental()
        return log

    def _open_or_create(self, relation: Relation) -> DeltaTable:
        uri = self._warehouse.location(self._warehouse.folder(relation.id, Store.ROWS))
        try:
            return DeltaTable(uri)
        except TableNotFoundError:
            self._warehouse.make_folder(self._warehouse.folder(relation.id, Store.ROWS))
            return DeltaTable.create(
                uri,
                _delta_schema(relation.columns),
                name=relation.name,
                configuration={"delta.logRetentionDuration": "interval 7 days"},
            )

    def _follow_columns(self, log: DeltaTable, relation: Relation) -> bool:
        """Add to the log the columns that ALTER TABLE has added since; False if it has others than the relation."""
        if self._columns.get(relation.id) == relation.columns:
            return True
        fields = _delta_schema(relation.columns).fields
        there = [field.name for field in log.schema().fields]
        if there != [field.name for field in fields[: len(there)]]:
            return False
        if len(fields) > len(there):
            log.alter.add_columns(fields[len(there) :])
            log.update_incremental()
        self._columns[relation.id] = relation.columns
        return True

    def _empty(self, log: DeltaTable, relation: Relation, publication: Publication) -> None:
        """Give a log the columns of a view that was replaced by one with others, and no rows yet.

        A commit of its own: one commit must not remove and add the same file, and the new content may share some.
        """
        log.create_write_transaction(
            [],
            mode="overwrite",
            schema=_delta_schema(relation.columns),
            commit_properties=CommitProperties(custom_metadata={EPOCH_KEY: str(publication.epoch)}),
        )
        log.update_incremental()
        self._columns[relation.id] = relation.columns


def _add(file: DataFile | NewFile, now: int, is_change: bool) -> AddAction:
    statistics = json.dumps({"numRecords": file.statistics.rows})
    return AddAction(file.path, file.statistics.bytes, {}, now // 1000, is_change, statistics)


def log_state(warehouse: Warehouse, relation: int) -> tuple[set[str], str | None, int] | None:
    """What a Delta log says for itself: its files, the epoch of our last commit, and how many commits are not ours."""
    uri = warehouse.location(warehouse.folder(relation, Store.ROWS))
    if not DeltaTable.is_deltatable(uri):
        return None
    log = DeltaTable(uri)
    history = log.history()
    epochs = [entry[EPOCH_KEY] for entry in history if EPOCH_KEY in entry]
    foreign = [
        entry
        for entry in history
        if EPOCH_KEY not in entry and entry.get("operation") not in ("CREATE TABLE", "ADD COLUMN")
    ]
    return {uri.rsplit("/rows/", 1)[-1] for uri in log.file_uris()}, epochs[0] if epochs else None, len(foreign)


def _delta_schema(columns: tuple[Column, ...]) -> Schema:
    return Schema.from_arrow(arrow_schema(columns))

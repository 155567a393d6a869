"""Files in the catalog: which there are, in which epochs they count, and how compaction replaces them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from typing import Any

import sqlalchemy as sa

from stepwell.catalog import control
from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import files
from stepwell.model.epochs import Epoch
from stepwell.model.errors import ConflictError
from stepwell.model.files import LATEST, Checksum, DataFile, FileStatistics, NewFile, Store
from stepwell.model.views import RelationId


def add(
    tx: Transaction,
    relation: RelationId,
    new: Sequence[NewFile],
    *,
    from_epoch: Epoch,
    last_epoch: Epoch | None = None,
    logged: bool = True,
) -> None:
    """Make files content from `from_epoch` on."""
    _insert(tx, relation, new, from_epoch=from_epoch, last_epoch=last_epoch or from_epoch, logged=logged)


def add_copies(tx: Transaction, relation: RelationId, new: Sequence[NewFile], epoch: Epoch) -> None:
    """Remember files that only a Delta log names: content of `epoch` written again, and content at no epoch."""
    _insert(tx, relation, new, from_epoch=epoch, last_epoch=epoch, until_epoch=epoch, logged=False, published=True)


def _insert(
    tx: Transaction,
    relation: RelationId,
    new: Sequence[NewFile],
    *,
    from_epoch: Epoch,
    last_epoch: Epoch,
    until_epoch: Epoch | None = None,
    logged: bool,
    published: bool = False,
) -> None:
    rows = [
        {
            "relation_id": relation,
            "store": file.store.value,
            "path": file.path,
            "from_epoch": from_epoch,
            "last_epoch": last_epoch,
            "until_epoch": until_epoch,
            "logged": logged,
            "superseded": False,
            "published": published,
            "rows": file.statistics.rows,
            "retracted": file.statistics.retracted,
            "bytes": file.statistics.bytes,
            "time_min": file.statistics.time_min,
            "time_max": file.statistics.time_max,
            "key_range": None
            if file.statistics.key_min is None
            else [file.statistics.key_min, file.statistics.key_max],
            "checksum": None if file.statistics.checksum is None else list(astuple(file.statistics.checksum)),
        }
        for file in new
    ]
    if rows:
        tx.execute(sa.insert(files), rows)


def content(tx: Transaction, relation: RelationId, epoch: Epoch) -> list[DataFile]:
    """The files that are content of a relation at `epoch`."""
    return _select(
        tx,
        files.c.relation_id == relation,
        files.c.superseded.is_(False),
        files.c.from_epoch <= epoch,
        sa.or_(files.c.until_epoch.is_(None), files.c.until_epoch > epoch),
    )


def latest(tx: Transaction, relation: RelationId) -> list[DataFile]:
    """The files that are content of a relation after everything acknowledged so far."""
    return content(tx, relation, LATEST)


def logged_between(tx: Transaction, relation: RelationId, after: Epoch, upto: Epoch) -> list[DataFile]:
    """The files that hold changelogs of the epochs (after, upto]."""
    return _select(
        tx,
        files.c.relation_id == relation,
        files.c.superseded.is_(False),
        files.c.logged.is_(True),
        files.c.from_epoch <= upto,
        files.c.last_epoch > after,
    )


def written_in(tx: Transaction, epoch: Epoch) -> dict[RelationId, list[DataFile]]:
    """The files acknowledged for `epoch`, by relation."""
    found: dict[RelationId, list[DataFile]] = {}
    for file in _select(
        tx,
        files.c.from_epoch == epoch,
        files.c.last_epoch == epoch,
        files.c.logged.is_(True),
        files.c.superseded.is_(False),
    ):
        found.setdefault(RelationId(file.relation), []).append(file)
    return found


def published(tx: Transaction, relation: RelationId) -> list[DataFile]:
    """The files that a relation's Delta log names."""
    return _select(tx, files.c.relation_id == relation, files.c.published.is_(True))


def mark_published(tx: Transaction, adds: Iterable[int], removes: Iterable[int], now: int) -> None:
    """Remember which files a Delta log names now; copies that it names no more have ended."""
    for some in _slices(adds):
        tx.execute(sa.update(files).where(files.c.id.in_(some)).values(published=True))
    for some in _slices(removes):
        tx.execute(sa.update(files).where(files.c.id.in_(some)).values(published=False))
        is_copy = sa.and_(files.c.until_epoch == files.c.from_epoch, files.c.ended_at.is_(None))
        tx.execute(sa.update(files).where(files.c.id.in_(some), is_copy).values(ended_at=now))


def supersede(
    tx: Transaction, relation: RelationId, inputs: Sequence[DataFile], outputs: Sequence[NewFile], now: int
) -> None:
    """Put `outputs` in the place of `inputs` at every epoch: they hold the same rows, each with its epoch."""
    control.lock(tx)
    _require_live(tx, inputs)
    ids = [file.id for file in inputs]
    tx.execute(sa.update(files).where(files.c.id.in_(ids)).values(superseded=True, ended_at=now))
    add(
        tx,
        relation,
        outputs,
        from_epoch=min(file.from_epoch for file in inputs),
        last_epoch=max(file.last_epoch for file in inputs),
        logged=inputs[0].logged,
    )


def close(
    tx: Transaction,
    relation: RelationId,
    inputs: Sequence[DataFile],
    outputs: Sequence[NewFile],
    epoch: Epoch,
    now: int,
) -> None:
    """End `inputs` at `epoch` and begin `outputs` there: the content stays the same, and so does the past."""
    control.lock(tx)
    _require_live(tx, inputs)
    ids = [file.id for file in inputs]
    tx.execute(sa.update(files).where(files.c.id.in_(ids)).values(until_epoch=epoch, ended_at=now))
    add(tx, relation, outputs, from_epoch=epoch, logged=False)


def replace_written(tx: Transaction, inputs: Sequence[DataFile], outputs: Sequence[NewFile], now: int) -> None:
    """Put one consolidated changelog in the place of what several writers acknowledged for one epoch."""
    ids = [file.id for file in inputs]
    tx.execute(sa.update(files).where(files.c.id.in_(ids)).values(superseded=True, ended_at=now))
    add(tx, RelationId(inputs[0].relation), outputs, from_epoch=inputs[0].from_epoch)


def with_endings(tx: Transaction) -> list[tuple[DataFile, int | None, bool]]:
    """Every file that has ended, when it did, and whether another stands for it."""
    rows = tx.execute(sa.select(files).where(files.c.ended_at.is_not(None))).mappings()
    return [(decode(row), row["ended_at"], row["superseded"]) for row in rows]


def in_use(tx: Transaction) -> list[DataFile]:
    """Every file that some epoch needs, and that no other stands for."""
    return _select(tx, files.c.superseded.is_(False))


def of_relations(tx: Transaction, relations: Iterable[RelationId]) -> list[DataFile]:
    """Every file of these relations, in use or not."""
    return _select(tx, files.c.relation_id.in_(list(relations)))


def paths(tx: Transaction) -> set[tuple[int, str, str]]:
    """(relation, store, path) of every file the catalog knows."""
    query = sa.select(files.c.relation_id, files.c.store, files.c.path)
    return {(row.relation_id, row.store, row.path) for row in tx.execute(query)}


def forget(tx: Transaction, ids: Iterable[int]) -> None:
    """Remove files from the catalog; they are on disk until somebody deletes them."""
    for some in _slices(ids):
        tx.execute(sa.delete(files).where(files.c.id.in_(some)))


def _slices(ids: Iterable[int]) -> Iterator[list[int]]:
    """So many at a time as a statement may have parameters."""
    known = list(ids)
    for start in range(0, len(known), 10_000):
        yield known[start : start + 10_000]


def _require_live(tx: Transaction, inputs: Sequence[DataFile]) -> None:
    """Fail if another compaction has replaced one of these files."""
    query = sa.select(sa.func.count()).where(
        files.c.id.in_([file.id for file in inputs]), files.c.superseded.is_(False), files.c.until_epoch.is_(None)
    )
    if tx.execute(query).scalar_one() != len(inputs):
        raise ConflictError("the files were compacted by somebody else")


def _select(tx: Transaction, *conditions: sa.ColumnElement[bool]) -> list[DataFile]:
    query = sa.select(files).where(*conditions).order_by(files.c.id)
    return [decode(row) for row in tx.execute(query).mappings()]


def decode(row: Any) -> DataFile:
    """A file as a row of the catalog says it."""
    low, high = row["key_range"] or (None, None)
    checksum = None if row["checksum"] is None else Checksum(*row["checksum"])
    statistics = FileStatistics(
        row["rows"], row["retracted"], row["bytes"], row["time_min"], row["time_max"], low, high, checksum
    )
    return DataFile(
        row["id"],
        row["relation_id"],
        Store(row["store"]),
        row["path"],
        Epoch(row["from_epoch"]),
        Epoch(row["last_epoch"]),
        None if row["until_epoch"] is None else Epoch(row["until_epoch"]),
        row["logged"],
        statistics,
    )

"""The catalog as data: its rows as they were at an epoch, and a catalog that is made of such rows.

What carries epochs is cut at the epoch. What is known of processes and of statements in flight is left out: leases,
requests, pins, acknowledgements. A checkpoint is restored on either kind of catalog, and by a later version too: rows
of an older revision go through a catalog of that revision first, which is then migrated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepwell.catalog import barriers, control, deferrals, files, lives, migrate, relations, watermarks
from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import metadata
from stepwell.catalog.schema import relations as relations_table
from stepwell.catalog.writes import position_at
from stepwell.model.checkpoints import CatalogRows
from stepwell.model.epochs import FIRST_EPOCH, Epoch, EpochState
from stepwell.model.errors import CheckpointError, StepwellError
from stepwell.model.files import DataFile
from stepwell.model.intervals import ALWAYS
from stepwell.model.jobs import JobKind, JobState
from stepwell.model.lifecycle import Serving, follows
from stepwell.model.relations import Relation
from stepwell.model.watermarks import NEVER

LEFT_EMPTY = frozenset({"lease", "barrier_requests", "pins", "acknowledgements"})
"""What belongs to processes that run, and not to the database."""

CONTROL, COUNTERS = "control", "counters"


@dataclass(frozen=True, slots=True)
class Export:
    """The rows of a catalog as they were at an epoch, and what an epoch from `since` on needs to be read."""

    epoch: Epoch
    since: Epoch
    rows: CatalogRows

    @property
    def files(self) -> list[DataFile]:
        return files_of(self.rows)


def export(tx: Transaction) -> Export:
    """The catalog at the newest readable epoch, as one transaction sees it.

    Views that stand at an earlier epoch need what has happened since: that comes along.
    """
    epoch = control.look(tx).readable_epoch
    there = {int(each.id): each for each in relations.get_all(tx, epoch)}
    since = _since(tx, epoch, there)
    rows: CatalogRows = {}
    for table in metadata.sorted_tables:
        if table.name in LEFT_EMPTY or table.name == CONTROL:
            continue
        query = sa.select(table).where(*_as_of(table, epoch, since)).order_by(*table.primary_key.columns)
        found = tx.execute(query).mappings()
        rows[table.name] = [_cut(dict(row), epoch) for row in found if _belongs(table, row, there)]
    rows["epochs"] = [row for row in rows["epochs"] if row["epoch"] >= since]
    # nothing is published there yet, so what only Delta logs name is left out
    rows["files"] = [
        {**row, "published": False} for row in rows["files"] if row["until_epoch"] != row["from_epoch"]
    ]  # fmt: skip
    rows["lives"] = [_reflecting(row, epoch) for row in rows["lives"]]
    rows["relations"] = [_unpublished(row) for row in rows["relations"]]
    rows["watches"] = _watches(there.values())
    _add_forgotten(rows, there.values(), epoch)
    rows["jobs"] = _jobs(rows["jobs"], rows["epochs"][-1]["aligned_at"])
    rows[CONTROL] = [_control(tx, epoch)]
    rows[COUNTERS] = [{"table": each.name, "last": _last_id(tx, each)} for each in _numbered()]
    _require_names(rows["relations"])
    return Export(epoch, since, rows)


def is_unused(tx: Transaction) -> bool:
    """Whether nothing was ever done in a catalog."""
    return control.look(tx).open_epoch == FIRST_EPOCH and not relations.known_ids(tx)


def identity_of(tx: Transaction) -> str:
    """The identity of the database, wherever it was restored to."""
    return str(tx.execute(sa.select(metadata.tables[CONTROL].c.identity)).scalar_one())


def files_of(rows: CatalogRows) -> list[DataFile]:
    """The data files that some rows name."""
    return [files.decode(row) for row in rows.get("files", [])]


def take_over(tx: Transaction, rows: CatalogRows, now: int) -> None:
    """Make an unused catalog the one that these rows are of; the next epoch opens after theirs."""
    control.lock(tx)
    if not is_unused(tx):
        raise StepwellError("the catalog is in use already", sqlstate="55000")
    [known] = rows[CONTROL]
    for table in metadata.sorted_tables:
        if table.name != CONTROL and table.name not in LEFT_EMPTY:
            tx.execute(sa.delete(table))
    for row in rows[COUNTERS]:
        _count_from(tx, row["table"], row["last"])
    for table in metadata.sorted_tables:
        if table.name != CONTROL:
            for some in _alike(rows.get(table.name, [])):
                tx.execute(sa.insert(table), some)
    opened = {"epoch": known["open_epoch"], "state": EpochState.OPEN.value, "opened_at": now}
    tx.execute(sa.insert(metadata.tables["epochs"]).values(**opened, changed=0, inserted=0, retracted=0))
    names = ("open_epoch", "readable_epoch", "last_position", "forgotten_position", "generation", "identity")
    tx.execute(sa.update(metadata.tables[CONTROL]).values({name: known[name] for name in names}))


def brought_up(rows: CatalogRows, revision: str) -> CatalogRows:
    """Rows of an older revision as this version has them; an error if they are of a newer one."""
    newest = migrate.newest_revision()
    if revision > newest:
        raise CheckpointError(
            "the checkpoint belongs to a newer stepwell",
            detail=f"Its catalog is of revision {revision}; this version knows up to {newest}.",
            hint="Upgrade stepwell, or restore an older checkpoint.",
        )
    if revision == newest:
        return rows
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    try:
        migrate.migrate_to(engine, revision)
        old = sa.MetaData()
        with engine.begin() as tx:
            old.reflect(tx)
            for name in old.tables.keys() & rows.keys():
                tx.execute(sa.delete(old.tables[name]))
                tx.execute(sa.insert(old.tables[name]), rows[name])
        migrate.migrate_to(engine, newest)
        with engine.begin() as tx:
            new = {each.name: tx.execute(sa.select(each)).mappings().all() for each in metadata.sorted_tables}
    finally:
        engine.dispose()
    kept = {name: [dict(row) for row in each] for name, each in new.items() if name not in LEFT_EMPTY}
    return {**kept, COUNTERS: rows[COUNTERS]}


# -- what was so at an epoch ------------------------------------------------------------------------------------------


def _as_of(table: sa.Table, epoch: Epoch, since: Epoch) -> list[sa.ColumnElement[bool]]:
    """The rows of a table that an epoch from `since` up to `epoch` needs, by the columns that carry epochs."""
    columns = table.c
    if table is relations_table:
        dropped = columns.dropped_epoch
        return [columns.created_epoch <= epoch, sa.or_(dropped.is_(None), dropped > epoch)]
    found: list[sa.ColumnElement[bool]] = []
    if "superseded" in columns:
        found.append(columns.superseded.is_(False))
    if "until_epoch" in columns:
        found.append(sa.or_(columns.until_epoch.is_(None), columns.until_epoch > since))
    if "from_epoch" in columns:
        found.append(columns.from_epoch <= epoch)
    elif "epoch" in columns:
        found.append(columns.epoch <= epoch)
    return found


def _belongs(table: sa.Table, row: Mapping[Any, Any], there: Mapping[int, Relation]) -> bool:
    """Whether a row is about a relation of the epoch; a load stays known whatever became of its table."""
    id_ = row.get("relation_id")
    return id_ is None or id_ in there or table.name in ("loads", "jobs")


def _cut(row: dict[str, Any], epoch: Epoch) -> dict[str, Any]:
    """A row without what was said of it after an epoch."""
    for name, also in (("until_epoch", "ended_at"), ("dropped_epoch", "dropped_at")):
        if row.get(name) is not None and row[name] > epoch:
            row[name] = None
            if also in row:
                row[also] = None
    return row


def _since(tx: Transaction, epoch: Epoch, there: Mapping[int, Relation]) -> Epoch:
    """The oldest epoch that a view stands at which does not follow, or has last shown all that is known of it."""
    stands = [
        life.reflects
        for id_, life in lives.get_all_at(tx, epoch).items()
        if id_ in there and isinstance(life, Serving) and not follows(life)
    ]
    marks = watermarks.get_all_at(tx, epoch).values()
    shown = [Epoch(each.emitted_epoch) for each in marks if each.emitted_epoch is not None]
    oldest = barriers.oldest(tx)
    return min([epoch, *(each for each in (*stands, *shown) if each >= oldest)])


def _reflecting(row: dict[str, Any], epoch: Epoch) -> dict[str, Any]:
    """The life of a view as it was at an epoch: its row has gone on with those after it."""
    reflects = row["reflects"]
    return {**row, "reflects": None if reflects is None else min(reflects, epoch)}


def _unpublished(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "published_epoch": None, "publication": 0}


def _add_forgotten(rows: CatalogRows, there: Iterable[Relation], epoch: Epoch) -> None:
    """What DROP has forgotten of continuous aggregates of the epoch: nothing of them is known to be fresh."""
    known = {row["relation_id"] for row in rows["completions"]}
    due = {row["relation_id"] for row in rows["schedules"]}
    told = {(row["relation_id"], row["time_column"]) for row in rows["thresholds"] if row["until_epoch"] is None}
    for each in there:
        deferral, begins = each.deferral, {"from_epoch": each.created_epoch, "until_epoch": None}
        if deferral is None:
            continue
        if each.id not in known:
            rows["completions"].append({"relation_id": each.id, **begins, "completed": NEVER})
            log = {"starts": ALWAYS.start, "ends": ALWAYS.end, "epoch": 0, "time_column": None, **begins}
            rows["invalidations"].append({"relation_id": each.id, **log})
        source = (deferral.source, deferral.column)
        if source not in told:
            row = {"relation_id": deferral.source, "time_column": deferral.column, "threshold": NEVER}
            rows["thresholds"].append({**row, "from_epoch": epoch, "until_epoch": None})
            told.add(source)
        if deferral.schedule and not deferral.paused and each.id not in due:
            rows["schedules"].append({"relation_id": each.id, "due_at": 0})


def _watches(there: Iterable[Relation]) -> list[dict[str, Any]]:
    return [
        {"relation_id": source, "time_column": column, "view_id": each.id}
        for each in there
        if each.deferral is not None
        for source, column in deferrals.watched(each.deferral)
    ]


def _jobs(rows: list[dict[str, Any]], closed_at: int) -> list[dict[str, Any]]:
    """The jobs that were asked for when an epoch was closed; those that had not ended then begin again.

    A copy writes no checkpoints unless somebody asks it to.
    """
    found = []
    for row in rows:
        if row["created_at"] > closed_at:
            continue
        had_ended = row["ended_at"] is not None and row["ended_at"] <= closed_at
        if not had_ended and row["kind"] == JobKind.CHECKPOINT.value:
            continue
        if not had_ended:
            stands = row["state"] == JobState.PAUSED.value
            again = {"state": JobState.PAUSED.value if stands else JobState.QUEUED.value, "wanted": None, "term": None}
            row = {**row, **again, "ended_at": None, "error": None, "outcome": None}
            if row["kind"] == JobKind.BUILD.value:  # what it stood at may be of a later epoch
                row["request"] = {**row["request"], "position": None}
        found.append(row)
    return found


def _control(tx: Transaction, epoch: Epoch) -> dict[str, Any]:
    position, now = position_at(tx, epoch), control.look(tx)
    return {
        "id": 1,
        "open_epoch": epoch + 1,
        "readable_epoch": epoch,
        "last_position": position,
        "forgotten_position": position,
        "generation": now.generation + 1,
        "identity": identity_of(tx),
    }


def _require_names(rows: list[dict[str, Any]]) -> None:
    """Names carry no epochs: one that was given to another relation after an epoch was that of two in it."""
    keys = [(row["namespace"], row["name_key"]) for row in rows]
    if len(set(keys)) < len(keys):
        raise StepwellError(
            "a name was given to another relation since the last epoch",
            hint="Try again once the next epoch is readable.",
            sqlstate="55000",
        )


# -- numbers that are given once --------------------------------------------------------------------------------------


def _alike(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rows that have their number, and those that get one."""
    return [
        some for some in ([each for each in rows if "id" in each], [each for each in rows if "id" not in each]) if some
    ]


def _numbered() -> list[sa.Table]:
    """The tables whose rows are numbered by the database."""
    return [each for each in metadata.sorted_tables if each.name not in LEFT_EMPTY and _counts(each)]


def _counts(table: sa.Table) -> bool:
    key = list(table.primary_key.columns)
    return len(key) == 1 and key[0].name == "id" and key[0].autoincrement is not False


def _last_id(tx: Transaction, table: sa.Table) -> int:
    return int(tx.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0)


def _count_from(tx: Transaction, table: str, last: int) -> None:
    """Let the database number the next row of a table after `last`."""
    if not last:
        return
    if tx.dialect.name == "postgresql":
        tx.execute(
            sa.text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :last)"), {"table": table, "last": last}
        )
    elif metadata.tables[table].dialect_options["sqlite"]["autoincrement"]:
        known = {"table": table, "last": last}
        if not tx.execute(sa.text("UPDATE sqlite_sequence SET seq = :last WHERE name = :table"), known).rowcount:
            tx.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :last)"), known)

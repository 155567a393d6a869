"""Relations in the catalog: names, definitions, columns through the epochs, and the numbers of their rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from stepwell.catalog import control, in_force
from stepwell.catalog.connection import Transaction
from stepwell.catalog.schema import definitions, relations, schemas
from stepwell.model.epochs import Epoch
from stepwell.model.errors import DuplicateNameError, UndefinedTableError, nearest
from stepwell.model.relations import Chunking, Column, Definition, Relation, RelationKind, WatermarkRule
from stepwell.model.types import parse_type
from stepwell.model.views import (
    Deferral,
    Emission,
    EmitMode,
    Input,
    Judge,
    RefreshPolicy,
    RelationId,
    ViewDefinition,
)
from stepwell.model.watermarks import Transfer

NAMESPACE = "main"


def create(tx: Transaction, name: str, definition: Definition, columns: tuple[Column, ...]) -> Relation:
    """Register a relation from the open epoch on."""
    epoch = control.lock(tx).open_epoch
    row = {
        "namespace": NAMESPACE,
        "name": name,
        "name_key": name.lower(),
        "kind": definition.kind.value,
        "created_epoch": epoch,
        "next_row_id": 1,
        "publication": 0,
    }
    try:
        found = tx.execute(sa.insert(relations).values(row).returning(relations.c.id)).scalar_one()
    except IntegrityError as error:
        raise DuplicateNameError(f'relation "{name}" exists already') from error
    id_ = RelationId(found)
    control.redefine(tx)
    in_force.begin(tx, definitions, id_, epoch, {"definition": _encode(definition)})
    _add_schema(tx, id_, epoch, columns)
    return Relation(id_, name, definition, columns, epoch)


def find(tx: Transaction, name: str, epoch: Epoch | None = None) -> Relation | None:
    """The relation called `name` today, with the definition and columns it has now or had at `epoch`."""
    query = sa.select(relations).where(
        relations.c.namespace == NAMESPACE, relations.c.name_key == name.lower(), relations.c.dropped_epoch.is_(None)
    )
    row = tx.execute(query).mappings().one_or_none()
    return _relation(tx, row, epoch) if row else None


def get(tx: Transaction, name: str, epoch: Epoch | None = None) -> Relation:
    """As `find`, or an error with the nearest name."""
    found = find(tx, name, epoch)
    if found is None:
        names = [row.name for row in tx.execute(sa.select(relations.c.name).where(relations.c.dropped_epoch.is_(None)))]
        raise UndefinedTableError(
            f'relation "{name}" does not exist', hint=nearest(name, names) or "SHOW TABLES lists those that do."
        )
    return found


def get_all(tx: Transaction, at: Epoch | None = None) -> list[Relation]:
    """Every relation, in the order of creation: those of now, or those of an epoch as they were at it."""
    query = sa.select(relations, definitions.c.definition).join(
        definitions, definitions.c.relation_id == relations.c.id
    )
    shapes = sa.select(schemas).order_by(schemas.c.from_epoch, schemas.c.id)
    if at is None:
        query = query.where(in_force.now(definitions), relations.c.dropped_epoch.is_(None))
    else:
        query = query.where(in_force.at(definitions, at), _exists_at(at))
        shapes = shapes.where(schemas.c.from_epoch <= at)
    columns = {row.relation_id: row.columns for row in tx.execute(shapes)}
    rows = tx.execute(query.order_by(relations.c.id)).mappings()
    return [_decoded(row, row["definition"], columns[row["id"]]) for row in rows]


def changed_in(tx: Transaction) -> Epoch:
    """The last epoch in which a relation came, went or became another: at it and since, all are as they are now."""
    newest = sa.union_all(
        sa.select(sa.func.max(definitions.c.from_epoch).label("epoch")),
        sa.select(sa.func.max(schemas.c.from_epoch)),
        sa.select(sa.func.max(relations.c.created_epoch)),
        sa.select(sa.func.max(relations.c.dropped_epoch)),
    ).subquery()
    return Epoch(tx.execute(sa.select(sa.func.max(newest.c.epoch))).scalar() or 0)


def by_id(tx: Transaction, id_: RelationId, at: Epoch | None = None) -> Relation | None:
    """The relation of this number, unless it is dropped, or was not there at an epoch."""
    exists = relations.c.dropped_epoch.is_(None) if at is None else _exists_at(at)
    row = tx.execute(sa.select(relations).where(relations.c.id == id_, exists)).mappings().one_or_none()
    return _relation(tx, row, at) if row else None


def known_ids(tx: Transaction) -> dict[RelationId, int | None]:
    """Every relation the catalog remembers, dropped ones with the moment they were dropped."""
    query = sa.select(relations.c.id, relations.c.dropped_at)
    return {RelationId(row.id): row.dropped_at for row in tx.execute(query)}


def droppable(tx: Transaction, readable: Epoch) -> set[RelationId]:
    """The dropped relations whose last epoch can be read, so that no barrier needs them any more."""
    query = sa.select(relations.c.id).where(relations.c.dropped_epoch <= readable + 1)
    return {RelationId(id_) for id_ in tx.execute(query).scalars()}


def drop(tx: Transaction, id_: RelationId, now: int) -> None:
    """Free the name at once; the files go when nobody can need them."""
    epoch = control.lock(tx).open_epoch
    control.redefine(tx)
    tx.execute(sa.update(relations).where(relations.c.id == id_).values(dropped_epoch=epoch, dropped_at=now))
    in_force.end(tx, definitions, [id_], epoch)


def redefine(tx: Transaction, id_: RelationId, definition: Definition) -> None:
    """Give a relation another definition from the open epoch on; its columns stay."""
    epoch = control.lock(tx).open_epoch
    control.redefine(tx)
    in_force.begin(tx, definitions, id_, epoch, {"definition": _encode(definition)})


def set_columns(tx: Transaction, id_: RelationId, columns: tuple[Column, ...]) -> None:
    """Give a relation these columns from the open epoch on."""
    epoch = control.lock(tx).open_epoch
    control.redefine(tx)
    _add_schema(tx, id_, epoch, columns)


def forget(tx: Transaction, ids: Iterable[RelationId]) -> None:
    """Remove dropped relations whose files are gone."""
    chosen = list(ids)
    tx.execute(sa.delete(schemas).where(schemas.c.relation_id.in_(chosen)))
    in_force.forget(tx, definitions, chosen)
    tx.execute(sa.delete(relations).where(relations.c.id.in_(chosen)))


def forget_before(tx: Transaction, oldest: Epoch) -> None:
    """Remove the definitions that no epoch from `oldest` on needs."""
    in_force.forget_before(tx, definitions, oldest)


def created_after(tx: Transaction, last: RelationId) -> list[Relation]:
    """The relations with greater numbers than `last`, in the order of creation."""
    query = sa.select(relations).where(relations.c.id > last, relations.c.dropped_epoch.is_(None))
    return [_relation(tx, row, None) for row in tx.execute(query.order_by(relations.c.id)).mappings().all()]


def last_id(tx: Transaction) -> RelationId:
    """The greatest number of a relation there is."""
    return RelationId(tx.execute(sa.select(sa.func.max(relations.c.id))).scalar() or 0)


def withhold(tx: Transaction, ids: Iterable[RelationId], now: int) -> None:
    """Keep new relations from everybody until they are released; those that never are go as dropped ones do."""
    values = {"dropped_epoch": control.lock(tx).open_epoch, "dropped_at": now}
    tx.execute(sa.update(relations).where(relations.c.id.in_(list(ids))).values(values))


def release(tx: Transaction, ids: Iterable[RelationId]) -> None:
    """Let everybody see relations that were withheld, from the open epoch on."""
    values = {"created_epoch": control.lock(tx).open_epoch, "dropped_epoch": None, "dropped_at": None}
    control.redefine(tx)
    tx.execute(sa.update(relations).where(relations.c.id.in_(list(ids))).values(values))


def rename(tx: Transaction, id_: RelationId, name: str) -> None:
    control.lock(tx)
    control.redefine(tx)
    try:
        tx.execute(sa.update(relations).where(relations.c.id == id_).values(name=name, name_key=name.lower()))
    except IntegrityError as error:
        raise DuplicateNameError(f'relation "{name}" exists already') from error


def add_columns(tx: Transaction, relation: Relation, columns: tuple[Column, ...]) -> None:
    """Give a relation more columns from the open epoch on; rows written before have NULL in them."""
    epoch = control.lock(tx).open_epoch
    current = get(tx, relation.name).columns
    taken = {column.name.lower() for column in current}
    for column in columns:
        if column.name.lower() in taken:
            raise DuplicateNameError(
                f'column "{column.name}" exists already in {relation.kind} "{relation.name}"', sqlstate="42701"
            )
    control.redefine(tx)
    _add_schema(tx, relation.id, epoch, current + columns)


def reserve_rows(tx: Transaction, id_: RelationId, count: int) -> int:
    """The first of `count` row numbers that nobody else has or will have."""
    query = (
        sa.update(relations)
        .where(relations.c.id == id_)
        .values(next_row_id=relations.c.next_row_id + count)
        .returning(relations.c.next_row_id)
    )
    return int(tx.execute(query).scalar_one()) - count


def return_rows(tx: Transaction, id_: RelationId, unused: int, end: int) -> None:
    """Give back the numbers [unused, end), which no row has, if nobody has reserved after them."""
    tx.execute(
        sa.update(relations).where(relations.c.id == id_, relations.c.next_row_id == end).values(next_row_id=unused)
    )


def _exists_at(epoch: Epoch) -> sa.ColumnElement[bool]:
    dropped = relations.c.dropped_epoch
    return sa.and_(relations.c.created_epoch <= epoch, sa.or_(dropped.is_(None), dropped > epoch))


def _relation(tx: Transaction, row: Any, epoch: Epoch | None) -> Relation:
    """A relation as it is now, as it was at an epoch, or as it came if the epoch is before that."""
    order = (definitions.c.from_epoch, schemas.c.from_epoch, schemas.c.id)
    query = sa.select(definitions.c.definition, schemas.c.columns).where(
        definitions.c.relation_id == row["id"], schemas.c.relation_id == definitions.c.relation_id
    )
    if epoch is not None and epoch < row["created_epoch"]:
        query = query.order_by(*order)
    else:
        query = query.order_by(*(each.desc() for each in order))
        if epoch is not None:
            query = query.where(definitions.c.from_epoch <= epoch, schemas.c.from_epoch <= epoch)
    definition, columns = tx.execute(query.limit(1)).one()
    return _decoded(row, definition, columns)


def _decoded(row: Any, definition: dict[str, Any], columns: list[dict[str, Any]]) -> Relation:
    return Relation(
        RelationId(row["id"]),
        row["name"],
        _decode(RelationKind(row["kind"]), definition),
        tuple(Column(each["name"], parse_type(each["type"]), each["nullable"]) for each in columns),
        Epoch(row["created_epoch"]),
    )


def _add_schema(tx: Transaction, id_: RelationId, epoch: Epoch, columns: tuple[Column, ...]) -> None:
    encoded = [{"name": each.name, "type": str(each.type), "nullable": each.nullable} for each in columns]
    tx.execute(sa.insert(schemas).values(relation_id=id_, from_epoch=epoch, columns=encoded))


def _encode(definition: Definition) -> dict[str, object]:
    chunking, watermark = definition.chunking, definition.watermark
    return {
        "key": list(definition.key),
        "chunking": [chunking.column, chunking.width] if chunking else None,
        "watermark": list(dataclasses.astuple(watermark)) if watermark else None,
        "view": _encode_view(definition.view) if definition.view else None,
    }


def _encode_view(view: ViewDefinition) -> dict[str, object]:
    return {
        "text": view.text,
        "bound": view.bound,
        "parents": list(view.parents),
        "inputs": [[each.relation, list(each.columns)] for each in view.inputs],
        "policy": view.policy.value,
        "plan": view.plan,
        "state": view.state,
        "blocks": list(view.blocks),
        "owner": view.owner,
        "priority": view.priority,
        "functions": [list(each) for each in view.functions],
        "time_column": view.time_column,
        "transfer": dataclasses.asdict(view.transfer) if view.transfer else None,
        "emission": [view.emission.mode.value, view.emission.every, view.emission.lateness],
        "judge": dataclasses.asdict(view.judge) if view.judge else None,
        "live": view.live,
        "time_chosen": view.time_chosen,
        "settings": [list(each) for each in view.settings],
        "deferral": dataclasses.asdict(view.deferral) if view.deferral else None,
    }


def _decode_view(stored: dict[str, Any]) -> ViewDefinition:
    return ViewDefinition(
        stored["text"],
        stored["bound"],
        tuple(map(RelationId, stored["parents"])),
        tuple(Input(RelationId(relation), tuple(columns)) for relation, columns in stored["inputs"]),
        RefreshPolicy(stored["policy"]),
        stored["plan"],
        stored["state"],
        tuple(map(RelationId, stored["blocks"])),
        stored["owner"],
        stored.get("priority", 0),
        tuple((name, version) for name, version in stored.get("functions", ())),
        stored.get("time_column"),
        Transfer(**stored["transfer"]) if stored.get("transfer") else None,
        _decode_emission(*stored["emission"]) if stored.get("emission") else Emission(),
        _decode_judge(**stored["judge"]) if stored.get("judge") else None,
        stored.get("live"),
        stored.get("time_chosen", False),
        tuple((name, value) for name, value in stored.get("settings", ())),
        _decode_deferral(**stored["deferral"]) if stored.get("deferral") else None,
    )


def _decode_emission(mode: str, every: int, lateness: int | None) -> Emission:
    return Emission(EmitMode(mode), every, lateness)


def _decode_deferral(transfer: dict[str, Any], dimensions: list[int], **others: Any) -> Deferral:
    return Deferral(transfer=Transfer(**transfer), dimensions=tuple(map(RelationId, dimensions)), **others)


def _decode_judge(column: str, transfer: dict[str, Any], tolerance: int, ledger: int) -> Judge:
    return Judge(column, Transfer(**transfer), tolerance, RelationId(ledger))


def _decode(kind: RelationKind, stored: dict[str, Any]) -> Definition:
    return Definition(
        kind,
        tuple(stored["key"]),
        Chunking(*stored["chunking"]) if stored["chunking"] else None,
        WatermarkRule(*stored["watermark"]) if stored["watermark"] else None,
        _decode_view(stored["view"]) if stored.get("view") else None,
    )

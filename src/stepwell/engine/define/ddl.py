"""DDL: a definition is changed in one transaction of the catalog, and holds from the barrier it asks for."""

from __future__ import annotations

from collections.abc import Callable

from stepwell.catalog import Transaction, control, relations, writes
from stepwell.engine.define.creation import alter_view, create_view, drop_relations, require_built, require_resumed
from stepwell.engine.read.naming import new_name, refuse_system, relation_called
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import ReadOnlyError, StepwellError
from stepwell.model.relations import Definition, RelationKind
from stepwell.sql.statements import (
    AddColumns,
    AlterView,
    CreateTable,
    CreateView,
    Ddl,
    DropRelations,
    RenameTable,
    ViewAction,
)


def define(runtime: Runtime, body: Ddl, wait: Callable[[Epoch], None]) -> None:
    """Carry out a DDL statement; `wait` returns once an epoch can be read."""
    if isinstance(body, CreateView):
        new_name(body.name)
        built = create_view(runtime, body)
        if built is not None:
            wait(built)
            require_built(runtime, body.name.last)
        return
    with runtime.catalog.write() as tx:
        control.lock(tx)
        if not _change(runtime, tx, body):
            return
        epoch = control.look(tx).open_epoch
        writes.request_barrier(tx, epoch, runtime.clock.now())
    wait(epoch)
    if isinstance(body, AlterView) and body.action == ViewAction.RESUME:
        require_resumed(runtime, body.name)


def _change(
    runtime: Runtime, tx: Transaction, body: CreateTable | DropRelations | AlterView | RenameTable | AddColumns
) -> bool:
    """Change the catalog; whether there was anything to change."""
    match body:
        case CreateTable():
            return _create_table(tx, body)
        case DropRelations():
            for each in body.names:
                refuse_system(each)
            drop_relations(runtime, tx, body)
        case AlterView():
            alter_view(runtime, tx, body)
        case RenameTable():
            relations.rename(tx, relation_called(tx, body.name).id, new_name(body.new_name))
        case AddColumns():
            relation = relation_called(tx, body.name)
            if relation.kind != RelationKind.TABLE:
                raise ReadOnlyError(
                    f'{relation.kind} "{relation.name}" has the columns of its query',
                    place=body.name.slice.place,
                    hint="CREATE OR REPLACE it.",
                )
            relations.add_columns(tx, relation, body.columns)
    return True


def _create_table(tx: Transaction, body: CreateTable) -> bool:
    name = new_name(body.name)
    if body.if_not_exists and relations.find(tx, name):
        return False
    definition = Definition(key=body.key, chunking=body.chunking, watermark=body.watermark)
    try:
        relations.create(tx, name, definition, body.columns)
    except StepwellError as error:
        raise error.at(body.name.slice.place) from None
    return True

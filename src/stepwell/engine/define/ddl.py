"""DDL: a definition is changed in one transaction of the catalog, and holds from the barrier it asks for."""

from __future__ import annotations

from collections.abc import Callable

from stepwell.catalog import Transaction, control, relations, writes
from stepwell.engine.define.creation import alter_view, drop_relations, require_resumed
from stepwell.engine.read.naming import new_name, refuse_system, relation_called
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import ReadOnlyError
from stepwell.model.relations import RelationKind
from stepwell.sql.statements import (
    AddColumns,
    AlterView,
    Ddl,
    DropRelations,
    RenameTable,
    ViewAction,
)


def define(runtime: Runtime, body: Ddl, wait: Callable[[Epoch], None]) -> None:
    """Carry out a DDL statement that creates nothing; `wait` returns once an epoch can be read."""
    with runtime.catalog.write() as tx:
        control.lock(tx)
        _change(runtime, tx, body)
        epoch = control.look(tx).open_epoch
        writes.request_barrier(tx, epoch, runtime.clock.now())
    wait(epoch)
    if isinstance(body, AlterView) and body.action == ViewAction.RESUME:
        require_resumed(runtime, body.name)


def _change(runtime: Runtime, tx: Transaction, body: Ddl) -> None:
    match body:
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

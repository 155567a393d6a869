"""The mark of a restore under way, and what to do about one whose process died."""

from __future__ import annotations

from stepwell.catalog import Catalog, exports
from stepwell.engine.processes import is_alive, this_process
from stepwell.model.errors import WarehouseError
from stepwell.storage import Warehouse


def mark_of(warehouse: Warehouse) -> str:
    """Where a warehouse says that it is being restored, and by whom."""
    return f"{warehouse.root}/restoring"


def clear(warehouse: Warehouse) -> None:
    """Leave a warehouse empty, its mark last: until then, the next one goes on with it."""
    warehouse.delete_folder(f"{warehouse.root}/data")
    warehouse.delete(mark_of(warehouse))


def mend_restore(warehouse: Warehouse, catalog: Catalog) -> None:
    """Remove what a restore has left whose process died; one that had come to its end only forgot its mark."""
    if not warehouse.has(mark_of(warehouse)):
        return
    with warehouse.open_input(mark_of(warehouse)) as source:
        holder = bytes(source.read()).decode()
    with catalog.read() as tx:
        is_unused = exports.is_unused(tx)
    if is_unused and holder != this_process() and is_alive(holder):
        raise WarehouseError(
            f'the warehouse "{warehouse.url}" is being restored', detail=f"By {holder}.", hint="Wait until it is done."
        )
    if is_unused:
        clear(warehouse)
    warehouse.delete(mark_of(warehouse))

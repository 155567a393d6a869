"""Opening a warehouse: its catalog, its files and Spark, put together."""

from __future__ import annotations

from pyspark.sql import SparkSession

from stepwell.catalog import Catalog, exports, open_catalog, sqlite_url
from stepwell.engine.half_restored import mend_restore
from stepwell.engine.runtime import Runtime
from stepwell.engine.session import Spark
from stepwell.model.clock import Clock, SystemClock
from stepwell.model.errors import NoWarehouseError, WarehouseError
from stepwell.model.limits import Limits
from stepwell.storage import DeltaLogs, Warehouse


def open_runtime(
    place: Warehouse,
    catalog: str | None,
    spark: SparkSession | str | None = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
) -> Runtime:
    """The parts of a database; `catalog` is by default SQLite inside the warehouse."""
    opened = _open_catalog(place, catalog)
    try:
        mend_restore(place, opened)
        _require_known(place, opened)
    except BaseException:
        opened.close()
        raise
    limits = limits or Limits()
    return Runtime(opened, place, clock or SystemClock(), Spark(spark, limits), DeltaLogs(place), limits)


def open_existing(warehouse: str, catalog: str | None) -> Runtime:
    """A warehouse that is there; nothing is created."""
    place = Warehouse(warehouse)
    if not place.exists():
        raise NoWarehouseError(
            f'there is no warehouse at "{place.url}"', hint='stepwell sql -c "CREATE TABLE …" makes one.'
        )
    opened = _open_catalog(place, catalog)
    try:
        _require_known(place, opened)
    except BaseException:
        opened.close()
        raise
    return Runtime(opened, place, SystemClock(), Spark(None, Limits()), DeltaLogs(place), Limits())


def _open_catalog(place: Warehouse, catalog: str | None) -> Catalog:
    return open_catalog(catalog or sqlite_url(f"{place.root}/catalog.db"))


def _require_known(place: Warehouse, opened: Catalog) -> None:
    """Fail if there is data that nobody knows of."""
    with opened.read() as tx:
        is_unused = exports.is_unused(tx)
    if is_unused and place.list(f"{place.root}/data"):
        raise WarehouseError(
            f'the warehouse "{place.url}" holds data that the catalog "{opened.url}" knows nothing of',
            hint="Open it with the catalog it was made with, or choose an empty folder.",
        )

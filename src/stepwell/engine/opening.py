"""Opening a warehouse: its catalog, its files and Spark, put together."""

from __future__ import annotations

from pyspark.sql import SparkSession

from stepwell.catalog import control, open_catalog, relations, sqlite_url
from stepwell.engine.runtime import Runtime
from stepwell.engine.session import Spark
from stepwell.model.clock import Clock, SystemClock
from stepwell.model.epochs import FIRST_EPOCH
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
    opened = open_catalog(catalog or sqlite_url(f"{place.root}/catalog.db"))
    with opened.read() as tx:
        unused = control.look(tx).open_epoch == FIRST_EPOCH and not relations.known_ids(tx)
    if unused and place.list(f"{place.root}/data"):
        opened.close()
        raise WarehouseError(
            f'the warehouse "{place.url}" holds data that the catalog "{opened.url}" knows nothing of',
            hint="Open it with the catalog it was made with, or choose an empty folder.",
        )
    limits = limits or Limits()
    return Runtime(opened, place, clock or SystemClock(), Spark(spark, limits), DeltaLogs(place), limits)


def open_existing(warehouse: str, catalog: str | None) -> Runtime:
    """A warehouse that is there; nothing is created."""
    place = Warehouse(warehouse)
    if not place.exists():
        raise NoWarehouseError(
            f'there is no warehouse at "{place.url}"', hint='stepwell sql -c "CREATE TABLE …" makes one.'
        )
    return open_runtime(place, catalog)

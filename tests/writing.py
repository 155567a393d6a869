"""The commit protocol without a JVM: finished Arrow batches go the way that every write goes.

As a program, it writes numbers until it is told to stop or dies at a fail point, and prints each when it is safe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

import stepwell
from stepwell.catalog import control, files, relations
from stepwell.engine import Runtime, open_runtime, vacuum
from stepwell.engine.write.staging import reserve
from stepwell.model.errors import WarehouseError
from stepwell.model.files import ROW_ID, Store
from stepwell.model.limits import Limits
from stepwell.model.relations import Relation
from stepwell.model.writes import EVERYTHING, RelationWrite
from stepwell.plan import content_at
from stepwell.storage import Warehouse, read_batch, write_batch


def table(db: stepwell.Database, name: str = "t") -> Relation:
    """The table of numbers, made if it is not there."""
    db.sql(f"CREATE TABLE IF NOT EXISTS {name} (v BIGINT)")
    with db._runtime.catalog.read() as tx:
        return relations.get(tx, name)


def write(db: stepwell.Database, relation: Relation, values: Sequence[int]) -> None:
    """Insert numbers, and return when they can be read; again if the process slept amid its acknowledgement."""
    while True:
        try:
            return _write(db, relation, values)
        except stepwell.ConflictError:
            continue


def _write(db: stepwell.Database, relation: Relation, values: Sequence[int]) -> None:
    runtime = db._runtime
    numbers = reserve(runtime, relation, len(values))
    ids = list(range(*numbers))
    batch = pa.table({"v": pa.array(values, pa.int64()), ROW_ID: pa.array(ids, pa.int64())})
    file = write_batch(runtime.warehouse, relation, Store.ROWS, f"{runtime.attempt()}.parquet", batch)
    change = RelationWrite(relation.id, (file,), EVERYTHING, None, numbers)
    db._writer.acknowledge((change,), change)


def read(runtime: Runtime, name: str = "t") -> list[int]:
    """What the newest readable epoch holds, read by the driver."""
    with runtime.catalog.read() as tx:
        epoch = control.look(tx).readable_epoch
        relation = relations.find(tx, name)
        if relation is None:
            return []
        content = content_at(files.content(tx, relation.id, epoch), epoch)
    assert not content.changes
    return [value for file in content.rows for value in read_batch(runtime.warehouse, file).column("v").to_pylist()]


def main(warehouse: str, catalog: str, first: int, count: int) -> None:
    with stepwell.connect(warehouse, catalog=catalog) as db:
        relation = table(db)
        for value in range(first, first + count):
            try:
                write(db, relation, [value])
            except WarehouseError:  # asleep amid COMMIT itself: nobody can say whether it was heard
                continue
            print(value, flush=True)
    lazy_readers = os.environ.get("STEPWELL_TEST_LAZY_READERS")
    clean(warehouse, catalog, int(lazy_readers) if lazy_readers else Limits().lazy_readers_microseconds)


def clean(warehouse: str, catalog: str, lazy_readers: int) -> None:
    """Let files go that nobody can need, of a database that nobody has open."""
    limits = replace(Limits(), lazy_readers_microseconds=lazy_readers)
    runtime = open_runtime(Warehouse(warehouse), catalog, limits=limits)
    vacuum(runtime, 0)
    runtime.catalog.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

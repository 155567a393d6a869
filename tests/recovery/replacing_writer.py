"""A writer without a JVM whose every write takes back the row of the one before: what is published is always a copy.

As a program, it does so until it has written a few or dies at a fail point, and prints each number when it is safe.
"""

from __future__ import annotations

import sys

import pyarrow as pa

import stepwell
import writing
from stepwell.engine.write.staging import reserve
from stepwell.model.files import DIFF, ROW_ID, Store
from stepwell.model.relations import Relation
from stepwell.model.writes import EVERYTHING, RelationWrite
from stepwell.storage import write_batch


def replace(db: stepwell.Database, relation: Relation, value: int, before: tuple[int, int] | None) -> tuple[int, int]:
    """Insert a number and take back the (number, row id) before it; the new number and its row id."""
    runtime = db._runtime
    numbers = reserve(runtime, relation, 1)
    rows = [(value, numbers[0], 1), *([(*before, -1)] if before else [])]
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    batch = pa.table(columns, ["v", ROW_ID, DIFF])
    file = write_batch(runtime.warehouse, relation, Store.CHANGES, f"{runtime.attempt()}.parquet", batch)
    change = RelationWrite(relation.id, (file,), EVERYTHING, None, numbers)
    db._writer.acknowledge((change,), change)
    return value, numbers[0]


def main(warehouse: str, count: int) -> None:
    with stepwell.connect(warehouse) as db:
        relation = writing.table(db)
        last = None
        for value in range(count):
            last = replace(db, relation, value, last)
            print(value, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

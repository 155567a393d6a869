"""Results as files: a small one is collected and written by the driver as one file, a large one is written by Spark.

Which of the two is decided by how much was read for it, and corrected if the result proves too large to collect.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from stepwell.engine.failures import is_too_large
from stepwell.engine.runtime import Runtime
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DIFF, NewFile, Store
from stepwell.model.limits import Limits
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.storage import chunk_number, inspect, leaves, write_batch
from stepwell.storage.types import arrow_schema

_WRITER = {
    "maxRecordsPerFile": "4000000",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Row numbers and instants grow from row to row: as differences they take next to no room, and no time to pack.
    "parquet.writer.version": "v2",
    "parquet.compression.codec.zstd.level": "1",
    "parquet.page.write-checksum.enabled": "true",
}

SIGN, CHUNK = "_sw_sign", "_sw_chunk"


def collect_small(frame: DataFrame, limits: Limits, *, reads: int) -> pa.Table | None:
    """The rows of a frame that reads so many bytes, or None if they are too many for the driver."""
    if reads > limits.small_result_bytes:
        return None
    try:
        return frame.toArrow()
    except (PySparkException, Py4JJavaError) as error:
        if not is_too_large(error):
            raise
        return None


def write_result(
    runtime: Runtime, relation: Relation, frame: DataFrame, *, reads: int, signed: bool = False
) -> list[NewFile]:
    """Compute a frame that reads so many bytes, and write it: rows, or changes with their signs."""
    batch = collect_small(frame, runtime.limits, reads=reads)
    if batch is None:
        return write_frame(runtime, relation, Store.CHANGES if signed else Store.ROWS, frame, signed=signed)
    return write_collected(runtime, relation, batch)


def write_collected(runtime: Runtime, relation: Relation, batch: pa.Table) -> list[NewFile]:
    """Write what was collected: as changes if any of it is taken back, else as plain rows."""
    store = Store.ROWS
    if DIFF in batch.schema.names:
        if -1 in batch.column(DIFF).to_pylist():
            store = Store.CHANGES
        else:
            batch = batch.drop_columns([DIFF])
    return write_batch_as(runtime, relation, store, batch)


def write_batch_as(runtime: Runtime, relation: Relation, store: Store, batch: pa.Table) -> list[NewFile]:
    """Write what was collected as one file of a store; nothing is none."""
    if not batch.num_rows:
        return []
    return [write_batch(runtime.warehouse, relation, store, f"{runtime.attempt()}.parquet", batch)]


def write_frame(runtime: Runtime, relation: Relation, store: Store, frame: DataFrame, *, signed: bool) -> list[NewFile]:
    """Let Spark write a large result: apart by sign and chunk, sorted by time or key, in small row groups."""
    failpoint("write.before")
    attempt = runtime.attempt()
    folder = runtime.warehouse.path(relation.id, store, attempt)
    apart = []
    if signed:
        frame = frame.withColumn(SIGN, F.col(DIFF))
        apart.append(SIGN)
    if relation.chunking:
        frame = frame.withColumn(CHUNK, chunk_number(relation))
        frame = frame.repartition(CHUNK)
        apart.append(CHUNK)
    order = [quote(relation.chunking.column)] if relation.chunking else [quote(name) for name in relation.key]
    if apart or order:
        frame = frame.sortWithinPartitions(*apart, *order)
    writer = frame.write.options(**_WRITER)
    if order or relation.definition.view:  # small row groups, so that those not touched can be left out
        writer = writer.option("parquet.block.row.count.limit", "65536")
    writer = writer.options(**_by_column(relation))
    try:
        (writer.partitionBy(*apart) if apart else writer).parquet(runtime.warehouse.uri(folder))
        written = []
        for path in runtime.warehouse.list(folder):
            if not path.endswith(".parquet"):
                runtime.warehouse.delete(path)
                continue
            written.append(path)
        runtime.warehouse.sync(written)
        base = runtime.warehouse.folder(relation.id, store) + "/"
        found = [_inspect(runtime, relation, store, path.removeprefix(base)) for path in written]
    except BaseException:
        runtime.warehouse.delete_folder(folder)
        raise
    failpoint("write.after")
    return [file for file in found if file.statistics.rows]


def _by_column(relation: Relation) -> dict[str, str]:
    """What Spark's writer is told of single columns: bloom filters on the key, and nothing but values of floats."""
    floats = [path for path, is_float in leaves(arrow_schema(relation.columns)) if is_float]
    options = {}
    for path in floats:
        options[f"parquet.column.statistics.enabled#{path}"] = "false"
        options[f"parquet.enable.dictionary#{path}"] = "false"
    for name in relation.key:
        if name not in floats:
            options[f"parquet.bloom.filter.enabled#{name}"] = "true"
            options[f"parquet.bloom.filter.expected.ndv#{name}"] = "65536"
    return options


def _inspect(runtime: Runtime, relation: Relation, store: Store, path: str) -> NewFile:
    file = inspect(runtime.warehouse, relation, store, path)
    if f"{SIGN}=-1/" not in path:
        return file
    return replace(file, statistics=replace(file.statistics, retracted=file.statistics.rows))

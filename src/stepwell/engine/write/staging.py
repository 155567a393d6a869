"""Staging: a statement's delta, computed by Spark and laid down as files that nobody knows of yet.

A small result is collected as Arrow and written by the driver as one file; a large one is written by Spark, by chunk
and in order. Which of the two is decided by how much the statement reads, and corrected if the result proves too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from stepwell.catalog import relations
from stepwell.engine.failures import is_too_large, null_message
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import ConflictError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION, NewFile, Store
from stepwell.model.relations import Relation
from stepwell.model.types import DATE, INSTANTS, quote
from stepwell.model.writes import EVERYTHING, MANY_KEYS, Position, RelationWrite, Touch
from stepwell.storage import inspect, leaves, write_batch
from stepwell.storage.types import arrow_schema

SMALL_BYTES = 64 * 2**20
"""A statement that reads no more than this has its result collected by the driver."""

_WRITER = {
    "maxRecordsPerFile": "4000000",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Row numbers and instants grow from row to row: as differences they take next to no room, and no time to pack.
    "parquet.writer.version": "v2",
    "parquet.compression.codec.zstd.level": "1",
}

TOUCH, SIGN, CHUNK = "_sw_touch", "_sw_sign", "_sw_chunk"

_SPARK_STRIDE = 1 << 33
"""Spark's own numbers start at a multiple of this in each partition."""


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """A reserved range of row numbers, [start, end): `stride` for each of up to `partitions` of Spark's."""

    start: int
    partitions: int
    stride: int

    @property
    def end(self) -> int:
        return self.start + self.partitions * self.stride

    def added_to(self, frame: DataFrame, name: str) -> DataFrame:
        """`frame` with a number for each row in `name`, growing in the order of the rows."""
        number = F.monotonically_increasing_id()
        if self.stride != _SPARK_STRIDE:
            inside = number.bitwiseAND(_SPARK_STRIDE - 1)
            number = F.shiftright(number, 33) * F.lit(self.stride) + inside
        return frame.coalesce(self.partitions).withColumn(name, F.lit(self.start) + number)


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Exactly as many row numbers as there are rows, [start, end), for rows that know their place in a column."""

    start: int
    end: int
    place: str

    def added_to(self, frame: DataFrame, name: str) -> DataFrame:
        return frame.withColumn(name, F.lit(self.start) + F.col(self.place)).drop(self.place)


def reserve_counted(runtime: Runtime, relation: Relation, rows: int, place: str) -> CountedRows:
    """Row numbers for rows that are counted already."""
    with runtime.catalog.write() as tx:
        start = relations.reserve_rows(tx, relation.id, rows)
    return CountedRows(start, start + rows, place)


def reserve(runtime: Runtime, relation: Relation, *, reads: int = 0) -> RowNumbers:
    """Row numbers for a statement that reads so much; what it does not use goes back when it is acknowledged."""
    # What a small statement reserves can be lost a billion times before the numbers of a table run out.
    partitions, stride = (64, 1 << 27) if reads <= SMALL_BYTES else (2048, _SPARK_STRIDE)
    with runtime.catalog.write() as tx:
        start = relations.reserve_rows(tx, relation.id, partitions * stride)
    failpoint("reserve.after")
    return RowNumbers(start, partitions, stride)


def stage(
    runtime: Runtime,
    relation: Relation,
    delta: DataFrame,
    numbers: RowNumbers | CountedRows,
    *,
    reads: int,
    read_at: Position | None,
) -> RelationWrite:
    """Compute and write `delta`: the relation's columns, `_sw_id`, `_sw_ver` and, unless all are inserts, `_diff`."""
    runtime.require_wanted()
    delta = _without_nulls(relation, delta)
    if reads <= SMALL_BYTES:
        try:
            with_touch = delta.withColumn(TOUCH, _touch(relation))
            batch = with_touch.toArrow()
        except (PySparkException, Py4JJavaError) as error:
            if not is_too_large(error):
                raise
        else:
            return _stage_batch(runtime, relation, batch, numbers, read_at)
    return _stage_large(runtime, relation, delta, numbers, read_at)


def _without_nulls(relation: Relation, delta: DataFrame) -> DataFrame:
    """Fail at the first NULL where none may be; a file's statistics do not tell for every type and length."""
    required = [column.name for column in relation.columns if not column.nullable]
    if not required:
        return delta
    checks = {
        name: F.expr(f"coalesce({quote(name)}, raise_error('{null_message(relation, name)}'))") for name in required
    }
    return delta.withColumns(checks)


def _stage_batch(
    runtime: Runtime, relation: Relation, batch: pa.Table, numbers: RowNumbers | CountedRows, read_at: Position | None
) -> RelationWrite:
    if batch.num_rows == 0:
        return RelationWrite(relation.id, (), EVERYTHING, read_at, (numbers.start, numbers.end))
    touch = _touched(relation, batch.column(TOUCH).to_pylist())
    batch = batch.drop_columns([TOUCH])
    store = Store.ROWS
    if DIFF in batch.schema.names:
        if -1 in batch.column(DIFF).to_pylist():
            store = Store.CHANGES
        else:
            batch = batch.drop_columns([DIFF])  # nothing is retracted: these are plain rows
    file = write_batch(runtime.warehouse, relation, store, f"{runtime.attempt()}.parquet", batch)
    return RelationWrite(relation.id, (file,), touch, read_at, _unused([file], numbers))


def _stage_large(
    runtime: Runtime, relation: Relation, delta: DataFrame, numbers: RowNumbers | CountedRows, read_at: Position | None
) -> RelationWrite:
    signed = DIFF in delta.columns
    store = Store.CHANGES if signed else Store.ROWS
    files = write_frame(runtime, relation, store, delta, signed=signed)
    touch = EVERYTHING
    chunking = relation.chunking
    if chunking and not relation.key:
        ranges = [(file.statistics.time_min, file.statistics.time_max) for file in files]
        known = [(low, high) for low, high in ranges if low is not None and high is not None]
        if len(known) == len(ranges):
            chunks = {
                chunk for low, high in known for chunk in range(low // chunking.width, high // chunking.width + 1)
            }
            touch = Touch(chunks=frozenset(chunks))
    return RelationWrite(relation.id, tuple(files), touch, read_at, _unused(files, numbers))


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


def discard(runtime: Runtime, write: RelationWrite) -> None:
    """Delete the files of a write that will never be acknowledged."""
    for file in write.files:
        runtime.warehouse.delete(runtime.warehouse.path(write.relation, file.store, file.path))


def require_files(runtime: Runtime, write: RelationWrite) -> None:
    """Make sure that the files of a write are still there: a transaction may have been open for days."""
    for file in write.files:
        path = runtime.warehouse.path(write.relation, file.store, file.path)
        if not runtime.warehouse.has(path):
            raise ConflictError(
                "what this transaction has written was cleaned away meanwhile",
                detail=f'"{path}" is gone; a day after it is written, a file that nobody has committed may go.',
                hint="Run it again.",
            )


def chunk_number(relation: Relation) -> Column:
    """The chunk each row belongs to; NULL without event time."""
    assert relation.chunking is not None
    column = relation.column(relation.chunking.column)
    value = quote(column.name)
    if column.type in INSTANTS or column.type == DATE:
        value = f"unix_micros(CAST({value} AS TIMESTAMP))"
    width = relation.chunking.width
    return F.expr(f"CAST({value} AS BIGINT) DIV {width} - IF(CAST({value} AS BIGINT) % {width} < 0, 1, 0)")


def _touch(relation: Relation) -> Column:
    """For each row, the hash of its key or the number of its chunk: what a conflict would be about."""
    if relation.key:
        return F.xxhash64(*(F.col(quote(name)) for name in relation.key))
    if relation.chunking:
        return chunk_number(relation)
    return F.lit(None).cast("bigint")


def _touched(relation: Relation, values: list[int | None]) -> Touch:
    if None in values or not values:
        return EVERYTHING
    known = frozenset(value for value in values if value is not None)
    if relation.key:
        return Touch(keys=known) if len(known) <= MANY_KEYS else EVERYTHING
    return Touch(chunks=known)


def _inspect(runtime: Runtime, relation: Relation, store: Store, path: str) -> NewFile:
    file = inspect(runtime.warehouse, relation, store, path)
    if f"{SIGN}=-1/" not in path:
        return file
    return inspect(runtime.warehouse, relation, store, path, retracted=file.statistics.rows)


def _unused(files: list[NewFile], numbers: RowNumbers | CountedRows) -> tuple[int, int]:
    last = max((file.last_number for file in files), default=0)
    return max(numbers.start, last + 1), numbers.end


def signed(delta: list[tuple[Column, list[Column], Column, Column]], names: list[str], frame: DataFrame) -> DataFrame:
    """Each row of `frame` as several signed rows: for each of `delta`, (diff, values, id, version)."""
    fields = [*names, ROW_ID, ROW_VERSION, DIFF]
    structs = [
        F.struct(
            *(
                value.alias(name)
                for name, value in zip(fields, [*values, id_, version, diff.cast("bigint")], strict=True)
            )
        )
        for diff, values, id_, version in delta
    ]
    return frame.select(F.inline(F.array(*structs)))

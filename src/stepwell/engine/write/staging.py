"""Staging: a statement's delta, computed by Spark and laid down as files that nobody knows of yet.

With the files a write remembers which chunks or keys it touches, and which of its reserved row numbers it has not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from stepwell.catalog import relations
from stepwell.engine.failures import null_message
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.results import SMALL_BYTES, chunk_number, collect_small, write_collected, write_frame
from stepwell.model.errors import ConflictError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION, NewFile, Store
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.writes import EVERYTHING, MANY_KEYS, Position, RelationWrite, Touch

TOUCH = "_sw_touch"

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
    batch = collect_small(delta.withColumn(TOUCH, _touch(relation)), reads=reads)
    if batch is not None:
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
    files = write_collected(runtime, relation, batch.drop_columns([TOUCH]))
    return RelationWrite(relation.id, tuple(files), touch, read_at, _unused(files, numbers))


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

"""Staging: a statement's delta, computed by Spark and laid down as files that nobody knows of yet.

With the files a write remembers which chunks or keys it touches, and which of its reserved row numbers it has not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from stepwell.catalog import relations
from stepwell.engine.failures import null_message
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.results import collect_small, write_collected, write_frame
from stepwell.model.errors import ConflictError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION, NewFile, Store
from stepwell.model.limits import Limits
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import RelationId
from stepwell.model.writes import EVERYTHING, Position, RelationWrite, Touch
from stepwell.storage import chunk_number

TOUCH = "_sw_touch"

_FIRST = -(1 << 62)
"""The first provisional row number. Those that rows keep are not below zero."""

_SERIES, _SPARK_STRIDE = 1 << 60, 1 << 33
"""How far apart the series of provisional numbers are, and in each the partitions, as Spark itself numbers them."""

_TOO_MANY_ROWS = "stepwell: a partition has more rows than numbers were reserved for it"


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """Provisional numbers for the rows of a statement: below zero, growing in the order of the rows.

    Which numbers they keep is decided when it is known how many there are: a statement that fails or is rolled back, or
    that comes to nothing, uses none up. A statement may number two sets of rows; `series` tells them apart.
    """

    partitions: int
    series: int = 0

    def added_to(self, frame: DataFrame, name: str) -> DataFrame:
        """`frame` with a number for each row in `name`."""
        number = F.monotonically_increasing_id() + F.lit(_FIRST + self.series * _SERIES)
        return frame.coalesce(self.partitions).withColumn(name, number)


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Provisional numbers for rows that are counted already, and that know their place among them in a column."""

    rows: int
    place: str

    def added_to(self, frame: DataFrame, name: str) -> DataFrame:
        return frame.withColumn(name, F.lit(_FIRST) + F.col(self.place)).drop(self.place)


def row_numbers(limits: Limits, reads: int, series: int = 0) -> RowNumbers:
    """Numbers for a statement that reads so many bytes."""
    return RowNumbers(limits.few_partitions if reads <= limits.small_result_bytes else limits.many_partitions, series)


def reserve(runtime: Runtime, relation: Relation, count: int) -> tuple[int, int]:
    """So many row numbers that nobody else has or will have, [start, end)."""
    with runtime.catalog.write() as tx:
        start = relations.reserve_rows(tx, relation.id, count)
    failpoint("reserve.after")
    return start, start + count


def give_back(runtime: Runtime, relation: RelationId, start: int, end: int) -> None:
    """Let others have the numbers [start, end), which no row has got, unless somebody has reserved after them.

    Once only: whoever gets them next may have reserved just as many.
    """
    with runtime.catalog.write() as tx:
        relations.return_rows(tx, relation, start, end)


def stage(
    runtime: Runtime,
    relation: Relation,
    delta: DataFrame,
    numbers: RowNumbers | CountedRows | None,
    *,
    reads: int,
    read_at: Position | None,
) -> RelationWrite:
    """Compute and write `delta`: the relation's columns, `_sw_id`, `_sw_ver` and, unless all are inserts, `_diff`.

    `numbers` are those that its new rows and versions have; the last series, if there are several.
    """
    runtime.require_wanted()
    delta = _without_nulls(relation, delta)
    batch = collect_small(delta.withColumn(TOUCH, _touch(relation)), runtime.limits, reads=reads)
    if batch is not None:
        return _stage_batch(runtime, relation, batch, read_at)
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


def _stage_batch(runtime: Runtime, relation: Relation, batch: pa.Table, read_at: Position | None) -> RelationWrite:
    if batch.num_rows == 0:
        return RelationWrite(relation.id, (), EVERYTHING, read_at)
    touch = _touched(relation, batch.column(TOUCH).to_pylist(), runtime.limits.conflict_keys)
    batch = batch.drop_columns([TOUCH])
    provisional = _provisional(batch)
    numbers = reserve(runtime, relation, len(provisional)) if provisional else None
    try:
        if numbers is not None:
            batch = _renumbered(batch, dict(zip(provisional, range(*numbers), strict=True)))
        files = write_collected(runtime, relation, batch)
    except BaseException:
        if numbers is not None:
            give_back(runtime, relation.id, *numbers)
        raise
    return RelationWrite(relation.id, tuple(files), touch, read_at, numbers)


def _provisional(batch: pa.Table) -> list[int]:
    """The provisional numbers in a batch, in their order."""
    columns = [batch.column(name).to_pylist() for name in (ROW_ID, ROW_VERSION) if name in batch.schema.names]
    return sorted({number for column in columns for number in column if number is not None and number < 0})


def _renumbered(batch: pa.Table, final: Mapping[int, int]) -> pa.Table:
    """A batch with the numbers that its rows keep."""
    for name in (ROW_ID, ROW_VERSION):
        if name in batch.schema.names:
            index = batch.schema.get_field_index(name)
            kept = pa.array([final.get(number, number) for number in batch.column(index).to_pylist()], pa.int64())
            batch = batch.set_column(index, batch.schema.field(index), kept)
    return batch


def _stage_large(
    runtime: Runtime,
    relation: Relation,
    delta: DataFrame,
    numbers: RowNumbers | CountedRows | None,
    read_at: Position | None,
) -> RelationWrite:
    try:
        files, given = _write_numbered(runtime, relation, delta, numbers, runtime.limits.partition_numbers)
    except (PySparkException, Py4JJavaError) as error:
        if _TOO_MANY_ROWS not in str(error):
            raise
        files, given = _write_numbered(runtime, relation, delta, numbers, _SPARK_STRIDE)
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
    return RelationWrite(relation.id, tuple(files), touch, read_at, given)


def _write_numbered(
    runtime: Runtime, relation: Relation, delta: DataFrame, numbers: RowNumbers | CountedRows | None, stride: int
) -> tuple[list[NewFile], tuple[int, int] | None]:
    """Let Spark write a change, each new row under the number it keeps; the files, and the numbers that were needed."""
    signed = DIFF in delta.columns
    store = Store.CHANGES if signed else Store.ROWS
    if numbers is None:
        return write_frame(runtime, relation, store, delta, signed=signed), None
    start, end = reserve(runtime, relation, _wanted(numbers, stride))
    last = start - 1
    try:
        final = {
            name: F.when(F.col(name) < 0, _final(F.col(name) - F.lit(_FIRST), numbers, start, stride)).otherwise(
                F.col(name)
            )
            for name in (ROW_ID, ROW_VERSION)
            if name in delta.columns
        }
        files = write_frame(runtime, relation, store, delta.withColumns(final), signed=signed)
        last = max((file.last_number for file in files), default=last)
    finally:
        needed = max(start, last + 1)
        give_back(runtime, relation.id, needed, end)
    return files, (start, needed)


def _wanted(numbers: RowNumbers | CountedRows, stride: int) -> int:
    """How many numbers there must be for rows that only Spark has counted."""
    return (numbers.series + 1) * numbers.partitions * stride if isinstance(numbers, RowNumbers) else numbers.rows


def _final(place: Column, numbers: RowNumbers | CountedRows, start: int, stride: int) -> Column:
    """The number that a row keeps, by its place among the provisional ones."""
    if isinstance(numbers, CountedRows):
        return place + F.lit(start)
    series, rest = F.shiftright(place, 60), place.bitwiseAND(_SERIES - 1)
    partition, inside = F.shiftright(rest, 33), rest.bitwiseAND(_SPARK_STRIDE - 1)
    number = (series * F.lit(numbers.partitions) + partition) * F.lit(stride) + inside + F.lit(start)
    return F.when(inside < stride, number).otherwise(F.raise_error(F.lit(_TOO_MANY_ROWS)).cast("bigint"))


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


def _touched(relation: Relation, values: list[int | None], most_keys: int) -> Touch:
    if None in values or not values:
        return EVERYTHING
    known = frozenset(value for value in values if value is not None)
    if relation.key:
        return Touch(keys=known) if len(known) <= most_keys else EVERYTHING
    return Touch(chunks=known)


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

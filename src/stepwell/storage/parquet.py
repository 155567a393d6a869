"""Parquet files as the driver writes and inspects them: finished batches in, statistics out. No JVM."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stepwell.model.failpoints import failpoint
from stepwell.model.files import DIFF, ROW_EPOCH, ROW_ID, ROW_VERSION, DataFile, FileStatistics, NewFile, Store
from stepwell.model.relations import Relation
from stepwell.model.types import DATE, INSTANTS, INTEGERS, STRING
from stepwell.storage.checksums import checksum_of, damaged, missing, require_whole
from stepwell.storage.types import to_arrow
from stepwell.storage.warehouse import Warehouse, write_failed

ROW_GROUP = 65_536
_DAY = 86_400_000_000


def write_batch(warehouse: Warehouse, relation: Relation, store: Store, path: str, batch: pa.Table) -> NewFile:
    """Write one finished batch as one file, and make it safe."""
    failpoint("write.before")
    batch = _in_utc(batch)
    where = warehouse.path(relation.id, store, path)
    warehouse.make_folder(where.rsplit("/", 1)[0])
    try:
        with (
            warehouse.open_output(where) as stream,
            pq.ParquetWriter(
                stream,
                batch.schema,
                compression="zstd",
                bloom_filter_options=_bloom_filters(relation, batch),
                write_statistics=(ordered := [path for path, is_float in leaves(batch.schema) if not is_float]),
                use_dictionary=ordered,
                write_page_checksum=True,
            ) as writer,
        ):
            writer.write_table(batch, row_group_size=ROW_GROUP)
        warehouse.sync([where])
    except OSError as error:
        warehouse.delete(where)
        raise write_failed(where, error) from error
    retracted = batch.column(DIFF).to_pylist().count(-1) if DIFF in batch.schema.names else 0
    written = inspect(warehouse, relation, store, path, retracted)
    failpoint("write.after")
    return written


def _in_utc(batch: pa.Table) -> pa.Table:
    """Instants have the zone of the session that computed them; in files all are written in one."""
    schema = pa.schema([field.with_type(_utc(field.type)) for field in batch.schema])
    return batch if schema.equals(batch.schema) else batch.cast(schema)


def _utc(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, tz="UTC")
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_utc(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_utc(type_.value_type)))
    if pa.types.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(key.with_type(_utc(key.type)), item.with_type(_utc(item.type)))
    return type_


def leaves(schema: pa.Schema) -> Iterator[tuple[str, bool]]:
    """The columns of a file, nested ones by the path that Parquet gives them, and whether each holds FLOAT or DOUBLE.

    Those are written without statistics, dictionary and bloom filter. Parquet's statistics know no NaN, which SQL takes
    for the greatest number, and its dictionaries and bloom filters tell −0.0 from 0.0, which SQL takes for equal: who
    chooses row groups by them, Spark included, loses rows.
    """
    for field in schema:
        yield from _leaves_of(field.name, field.type)


def _leaves_of(path: str, type_: pa.DataType) -> Iterator[tuple[str, bool]]:
    if pa.types.is_struct(type_):
        for field in type_:
            yield from _leaves_of(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(type_):
        yield from _leaves_of(f"{path}.key_value.key", type_.key_type)
        yield from _leaves_of(f"{path}.key_value.value", type_.item_type)
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        yield from _leaves_of(f"{path}.list.element", type_.value_type)
    else:
        yield path, pa.types.is_floating(type_)


def inspect(warehouse: Warehouse, relation: Relation, store: Store, path: str, retracted: int = 0) -> NewFile:
    """What the footer of a written file says."""
    where = warehouse.path(relation.id, store, path)
    with warehouse.open_input(where) as source:
        footer = pq.read_metadata(source)
        checksum = checksum_of(source, footer)
    columns = {footer.schema.column(index).path: index for index in range(footer.num_columns)}
    time: tuple[int | None, int | None] = (None, None)
    key: tuple[int | str | None, int | str | None] = (None, None)
    if relation.chunking and relation.chunking.column in columns:
        type_ = relation.column(relation.chunking.column).type
        low, high = _range(footer, columns[relation.chunking.column], raw=True)
        if isinstance(low, int) and isinstance(high, int) and (type_ in INSTANTS or type_ in INTEGERS or type_ == DATE):
            scale = _DAY if type_ == DATE else 1
            time = (low * scale, high * scale)
    if relation.key and relation.key[0] in columns:
        type_ = relation.column(relation.key[0]).type
        if type_ in INTEGERS or type_ == STRING:
            key = _range(footer, columns[relation.key[0]], raw=False)
    size = warehouse.size(where)
    return NewFile(
        store,
        path,
        FileStatistics(footer.num_rows, retracted, size, time[0], time[1], key[0], key[1], checksum),
        max((_largest(footer, columns[name]) for name in (ROW_ID, ROW_VERSION) if name in columns), default=0),
    )


def concatenate(
    warehouse: Warehouse, relation: Relation, inputs: Sequence[DataFile], store: Store, path: str
) -> NewFile:
    """Put small files together as they are, one after the other, each row with the epoch of its file."""
    tables = []
    for file in inputs:
        table = read_batch(warehouse, file)
        table = table.cast(_as_defined(relation, table.schema))
        if ROW_EPOCH not in table.schema.names:
            table = table.append_column(
                pa.field(ROW_EPOCH, pa.int64()), pa.array([int(file.from_epoch)] * table.num_rows, pa.int64())
            )
        tables.append(table)
    return write_batch(warehouse, relation, store, path, pa.concat_tables(tables, promote_options="default"))


def _as_defined(relation: Relation, schema: pa.Schema) -> pa.Schema:
    """A file's schema with the relation's own types: Spark and Arrow may have written the same column differently."""
    types = {column.name: to_arrow(column.type) for column in relation.columns}
    return pa.schema([field.with_type(types.get(field.name, field.type)) for field in schema])


def read_batch(warehouse: Warehouse, file: DataFile, columns: list[str] | None = None) -> pa.Table:
    """The whole of a small file, or some columns of it."""
    require_whole(warehouse, [file])
    where = warehouse.path(file.relation, file.store, file.path)
    try:
        with warehouse.open_input(where) as source:
            return pq.ParquetFile(source, page_checksum_verification=True).read(columns)
    except FileNotFoundError as error:
        raise missing(where) from error
    except (pa.ArrowException, OSError) as error:
        raise damaged(where, str(error).splitlines()[0]) from error


def read_delta(warehouse: Warehouse, relation: Relation, files: Sequence[DataFile]) -> pa.Table:
    """What one epoch did to a relation, if that is little: its columns, identities, versions and `_diff`."""
    hidden = [pa.field(name, pa.int64()) for name in (ROW_ID, ROW_VERSION, DIFF)]
    wanted = pa.schema([*(pa.field(column.name, to_arrow(column.type)) for column in relation.columns), *hidden])
    tables = []
    for file in files:
        found = read_batch(warehouse, file, wanted.names)
        columns = []
        for each in wanted:
            if each.name in found.schema.names:
                columns.append(found.column(each.name).cast(each.type))
            elif each.name == DIFF:
                columns.append(pa.array([1] * found.num_rows, each.type))
            else:
                columns.append(pa.nulls(found.num_rows, each.type))
        tables.append(pa.table(columns, wanted))
    return pa.concat_tables(tables) if tables else wanted.empty_table()


@lru_cache(maxsize=1024)
def retracted_versions(warehouse: Warehouse, file: DataFile) -> pa.ChunkedArray:
    """The versions that a file of changes takes back. Files never change, so once read is read for good."""
    batch = read_batch(warehouse, file, [DIFF, ROW_ID, ROW_VERSION])
    gone = batch.filter(pa.array([diff < 0 for diff in batch.column(DIFF).to_pylist()], pa.bool_()))
    ids = gone.column(ROW_ID)
    if ROW_VERSION not in gone.schema.names:
        return ids
    versions = gone.column(ROW_VERSION)
    if not versions.null_count:
        return versions
    pairs = zip(ids.to_pylist(), versions.to_pylist(), strict=True)
    return pa.chunked_array([pa.array([id_ if version is None else version for id_, version in pairs], pa.int64())])


@lru_cache(maxsize=1024)
def signed_versions(warehouse: Warehouse, file: DataFile) -> tuple[tuple[tuple[int, int], int], ...]:
    """((identity, version), diff) of every row of a file of changes."""
    batch = read_batch(warehouse, file, [ROW_ID, ROW_VERSION, DIFF])
    columns = (batch.column(name).to_pylist() for name in (ROW_ID, ROW_VERSION, DIFF))
    return tuple(((id_, version), diff) for id_, version, diff in zip(*columns, strict=True))


def _bloom_filters(relation: Relation, batch: pa.Table) -> dict[str, dict[str, float]] | None:
    """Filters on the key, where a batch is large enough that skipping a row group of it pays."""
    if batch.num_rows < ROW_GROUP:
        return None
    floats = {path for path, is_float in leaves(batch.schema) if is_float}
    return {name: {"ndv": ROW_GROUP, "fpp": 0.01} for name in relation.key if name not in floats} or None


def _range(footer: pq.FileMetaData, column: int, *, raw: bool) -> tuple[int | str | None, int | str | None]:
    """The smallest and largest value, or (None, None) if a row group does not tell or holds a NULL."""
    lows, highs = [], []
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_min_max or statistics.null_count:
            return None, None
        lows.append(statistics.min_raw if raw else statistics.min)
        highs.append(statistics.max_raw if raw else statistics.max)
    return (min(lows), max(highs)) if lows else (None, None)


def _largest(footer: pq.FileMetaData, column: int) -> int:
    groups = (footer.row_group(group).column(column).statistics for group in range(footer.num_row_groups))
    return max((each.max_raw for each in groups if each is not None and each.has_min_max), default=0)


def column_range(warehouse: Warehouse, files: Iterable[DataFile], column: str) -> tuple[Any, Any] | None:
    """The least and the greatest number or date of a column in some files; None if their footers do not say."""
    found = [_column_range(warehouse, file, column) for file in files]
    plain = [each for each in found if all(type(value) in (int, datetime.date) for value in each)]
    return (min(low for low, _ in plain), max(high for _, high in plain)) if found and found == plain else None


def _footer(warehouse: Warehouse, file: DataFile) -> pq.FileMetaData:
    require_whole(warehouse, [file])
    where = warehouse.path(file.relation, file.store, file.path)
    try:
        with warehouse.open_input(where) as source:
            return pq.read_metadata(source)
    except (pa.ArrowException, OSError) as error:
        raise damaged(where, str(error).splitlines()[0]) from error


@lru_cache(maxsize=4096)
def _column_range(warehouse: Warehouse, file: DataFile, column: str) -> tuple[Any, Any]:
    """The least and the greatest value of a column. Files never change, so once read is read for good."""
    footer = _footer(warehouse, file)
    columns = {footer.schema.column(index).path: index for index in range(footer.num_columns)}
    return _range(footer, columns[column], raw=False) if column in columns else (None, None)


@dataclass(frozen=True, slots=True)
class TimeReach:
    """The least and the greatest moment of a time column, None where there is none, and how many rows have none."""

    low: int | None
    high: int | None
    nulls: int
    is_known: bool = True
    """Whether the files say it; else any moment may be there."""


def time_reach(warehouse: Warehouse, relation: Relation, files: Iterable[DataFile], column: str) -> TimeReach:
    """How far the event time of some files reaches, by their footers."""
    reaches = [_time_reach(warehouse, file, column) for file in files]
    scale = _DAY if relation.column(column).type == DATE else 1
    lows = [each.low for each in reaches if each.low is not None]
    highs = [each.high for each in reaches if each.high is not None]
    nulls = sum(each.nulls for each in reaches)
    is_known = all(each.is_known for each in reaches)
    return TimeReach(min(lows) * scale if lows else None, max(highs) * scale if highs else None, nulls, is_known)


@lru_cache(maxsize=4096)
def _time_reach(warehouse: Warehouse, file: DataFile, column: str) -> TimeReach:
    """How far a column of a file reaches, in its own unit. Files never change, so once read is read for good."""
    footer = _footer(warehouse, file)
    index = next((each for each in range(footer.num_columns) if footer.schema.column(each).path == column), None)
    if index is None:  # a column that is younger than the file
        return TimeReach(None, None, footer.num_rows)
    found = [footer.row_group(group).column(index).statistics for group in range(footer.num_row_groups)]
    known = [each for each in found if each is not None]
    told = [each.has_min_max or each.null_count == footer.row_group(at).num_rows for at, each in enumerate(known)]
    if len(known) < len(found) or not all(told):
        return TimeReach(None, None, 0, is_known=False)
    lows = [each.min_raw for each in known if each.has_min_max]
    highs = [each.max_raw for each in known if each.has_min_max]
    nulls = sum(each.null_count or 0 for each in known)
    return TimeReach(min(lows, default=None), max(highs, default=None), nulls)

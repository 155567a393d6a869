"""Sources: what a program hands to `insert`, as a DataFrame of our session with columns to match by name."""

from __future__ import annotations

import datetime
import decimal
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import pyarrow as pa
import pyarrow.ipc
from pyspark.sql import DataFrame

from stepwell.engine.failures import translated
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import DuplicateNameError, SqlSyntaxError, TypeMismatchError
from stepwell.model.relations import Column, Relation
from stepwell.model.types import DATE, DOUBLE, FLOAT, INSTANTS, INTEGERS, Array, DataType, Decimal, Map, Struct
from stepwell.storage.types import to_arrow


def source_frame(runtime: Runtime, relation: Relation, data: Any) -> tuple[DataFrame, list[Column], int]:
    """`data` as a DataFrame, the columns it fills in its order, and how many bytes it holds; -1 if that is unknown."""
    if isinstance(data, DataFrame):
        return _adopt(runtime, data), named_in(relation, data.columns), -1
    try:
        table = _arrow_table(relation, data)
        columns = named_in(relation, table.column_names)
        with translated():
            return runtime.spark.session.createDataFrame(table), columns, int(table.nbytes)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise TypeMismatchError(
            f'this data cannot be inserted into table "{relation.name}"',
            detail=str(error).splitlines()[0],
            hint="Cast its columns to types that Spark has.",
        ) from error


def repeatable(data: Any) -> Any:
    """`data` in a form that can be read again, should the insert have to be run again."""
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    return list(data) if isinstance(data, Iterator) else data


def digest_of(relation: Relation, data: Any) -> str:
    """What tells `data` from other data under one label; of a DataFrame, whose rows may be many, its columns alone."""
    if isinstance(data, DataFrame):
        return hashlib.sha256(data.schema.simpleString().encode()).hexdigest()
    try:
        table = _arrow_table(relation, data).combine_chunks()
    except (pa.ArrowException, ValueError, TypeError):
        return ""  # it cannot be inserted, and whoever tries is told why
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return hashlib.sha256(memoryview(sink.getvalue())).hexdigest()


def named_in(relation: Relation, names: list[str]) -> list[Column]:
    """The columns of a relation that these names fill, each at most once."""
    columns = [relation.column(name) for name in names]
    for index, column in enumerate(columns):
        if column in columns[:index]:
            raise DuplicateNameError(f'column "{column.name}" is there twice', sqlstate="42701")
    return columns


def _adopt(runtime: Runtime, frame: DataFrame) -> DataFrame:
    """A DataFrame of another session, through a global view that both see."""
    ours = runtime.spark.session
    if frame.sparkSession is ours:
        return frame
    name = runtime.temporary_name()
    frame.createGlobalTempView(name)
    try:
        return ours.table(f"global_temp.{name}")
    finally:
        ours.catalog.dropGlobalTempView(name)


def _arrow_table(relation: Relation, data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc"):
        return pa.table(data)
    if hasattr(data, "iloc"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if isinstance(data, Mapping) or not isinstance(data, Iterable) or isinstance(data, str):
        raise TypeMismatchError(
            f"{type(data).__name__} cannot be inserted",
            hint="Insert an Arrow table, a pandas or Spark DataFrame, or a list of tuples or dicts.",
        )
    return _from_rows(relation, list(data))


def _from_rows(relation: Relation, rows: list[Any]) -> pa.Table:
    """Rows as tuples by position, or by name as dicts, Spark rows or dataclasses."""
    names = [column.name for column in relation.columns]
    records: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        if is_dataclass(row) and not isinstance(row, type):
            row = asdict(row)
        elif hasattr(row, "asDict"):
            row = row.asDict()
        if isinstance(row, Mapping):
            records.append({relation.column(str(name)).name: value for name, value in row.items()})
        elif isinstance(row, tuple | list):
            if len(row) != len(names):
                raise SqlSyntaxError(
                    f'row {number} has {len(row)} values, and table "{relation.name}" has {len(names)} columns'
                )
            records.append(dict(zip(names, row, strict=True)))
        else:
            raise TypeMismatchError(f"row {number} is {type(row).__name__}, not a tuple or a dict")
    used = [column for column in relation.columns if any(column.name in record for record in records)] or list(
        relation.columns
    )
    arrays = []
    for column in used:
        values = [_plain(record.get(column.name), column.type) for record in records]
        try:
            arrays.append(pa.array(values, to_arrow(column.type)))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            wrong = next((number for number, value in enumerate(values) if not _is_fit(value, column.type)), 0)
            raise TypeMismatchError(
                f'row {wrong}: {values[wrong]!r} does not fit column "{column.name}" of table "{relation.name}", '
                f"which is {column.type}",
                detail=str(error).splitlines()[0],
            ) from error
    return pa.table(arrays, names=[column.name for column in used])


def _is_fit(value: Any, type_: DataType) -> bool:
    try:
        pa.array([value], to_arrow(type_))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _plain(value: Any, type_: DataType) -> Any:
    """Dicts as Arrow wants them where the column is a map, and numbers, dates and instants that are written out."""
    if value is None:
        return None
    if isinstance(value, str):
        return _read_out(value, type_)
    match type_:
        case Map(key, held) if isinstance(value, Mapping):
            return [(_plain(each, key), _plain(other, held)) for each, other in value.items()]
        case Array(element) if isinstance(value, list | tuple):
            return [_plain(each, element) for each in value]
        case Struct(fields) if isinstance(value, Mapping):
            return {name: _plain(value.get(name), field) for name, field in fields}
        case Struct(fields) if isinstance(value, tuple):
            return {name: _plain(each, field) for (name, field), each in zip(fields, value, strict=False)}
    return value


def _read_out(text: str, type_: DataType) -> Any:
    """What a text says where the column is of numbers, dates or instants; else the text, which fits or does not."""
    try:
        if type_ in INTEGERS:
            return int(text)
        if isinstance(type_, Decimal):
            return decimal.Decimal(text)
        if type_ in (FLOAT, DOUBLE):
            return float(text)
        if type_ == DATE:
            return datetime.date.fromisoformat(text)
        if type_ in INSTANTS:
            return datetime.datetime.fromisoformat(text)
    except (ValueError, decimal.InvalidOperation):
        return text
    return text

"""Scans: files to DataFrames, by the plan of which files to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.types import LongType, StructField, StructType

from stepwell.model.epochs import Epoch
from stepwell.model.files import DIFF, EPOCH, ROW_EPOCH, ROW_ID, ROW_VERSION, DataFile, Store
from stepwell.model.limits import Limits
from stepwell.model.relations import Relation
from stepwell.model.types import DOUBLE, FLOAT, quote
from stepwell.plan import Content
from stepwell.storage.checksums import VERIFIED, require_whole
from stepwell.storage.memory import listed_frame, small_frame
from stepwell.storage.parquet import retracted_versions, signed_versions
from stepwell.storage.types import spark_schema
from stepwell.storage.warehouse import Warehouse, no_pattern

_HIDDEN = StructType(
    [
        StructField(ROW_ID, LongType()),
        StructField(ROW_VERSION, LongType()),
        StructField(ROW_EPOCH, LongType()),
    ]
)
_SIGNED = StructType([*_HIDDEN.fields, StructField(DIFF, LongType())])

_RESOLVED = f"coalesce({ROW_VERSION}, {ROW_ID})"
"""The version of a row: the first one has the number of the row itself."""

_ID, _GONE = "_sw_gone_id", "_sw_gone"
_SAME = f"{ROW_ID} = {_ID} AND {ROW_VERSION} = {_GONE}"

Narrowing = Callable[[DataFrame], DataFrame]
"""Some rows of a relation, chosen by what they are."""


def _all(rows: DataFrame) -> DataFrame:
    return rows


def scan_content(
    session: SparkSession,
    warehouse: Warehouse,
    relation: Relation,
    content: Content,
    limits: Limits,
    columns: Sequence[str] | None = None,
    narrow: Narrowing = _all,
) -> DataFrame:
    """A relation's rows with `_sw_id` and `_sw_ver`: every version inserted, less every version retracted.

    With all its columns, or with those that are named: what Spark does not know of, it does not look at either. Where
    few rows are wanted, `narrow` chooses them before it is asked which of them were retracted.
    """
    if columns is not None:
        wanted = {name.lower() for name in columns}
        shown = tuple(column for column in relation.columns if column.name.lower() in wanted)
        relation = replace(relation, columns=shown)
    names = _quoted([column.name for column in relation.columns] + [ROW_ID])
    versioned = [*names, f"{_RESOLVED} AS {ROW_VERSION}"]
    inserted = _read(session, warehouse, relation, content.rows, content.upto).selectExpr(*versioned)
    if not content.changes:
        return narrow(inserted)
    if relation.versions_return:
        return _net_content(session, warehouse, relation, content, inserted, narrow, limits)
    changes = _read(session, warehouse, relation, content.changes, content.upto)
    if any(file.statistics.inserted for file in content.changes):
        new = changes.where(f"{DIFF} > 0").selectExpr(*versioned)
        inserted = inserted.union(new) if content.rows else new
    inserted = narrow(inserted)
    count = sum(file.statistics.retracted for file in content.changes)
    if not count:
        return inserted
    if narrow is not _all:  # a retraction says what it retracts, so those that can matter are as few as the rows
        retracted = narrow(changes.where(f"{DIFF} < 0").selectExpr(*versioned)).selectExpr(f"{ROW_VERSION} AS {_GONE}")
        retracted = F.broadcast(retracted)
    elif count <= limits.held_versions and content.upto is None:
        chunks = [chunk for file in content.changes for chunk in retracted_versions(warehouse, file).chunks]
        versions = pa.chunked_array(chunks, pa.int64())
        if count <= limits.literal_versions:
            return inserted.where(f"{ROW_VERSION} NOT IN ({', '.join(map(str, versions.to_pylist()))})")
        retracted = small_frame(session, pa.table({_GONE: versions}), limits)
    else:
        retracted = changes.where(f"{DIFF} < 0").selectExpr(f"{_RESOLVED} AS {_GONE}")
        retracted = F.broadcast(retracted) if count <= limits.broadcast_rows else retracted
    return inserted.join(retracted, F.expr(f"{ROW_VERSION} = {_GONE}"), "left_anti")


def _net_content(
    session: SparkSession,
    warehouse: Warehouse,
    relation: Relation,
    content: Content,
    rows: DataFrame,
    narrow: Narrowing,
    limits: Limits,
) -> DataFrame:
    """The rows of a relation whose versions come again: what the changes come to, version by version.

    A version is in the plain files once at most, so -1 in the changes takes it from there, 1 puts it there, and 0
    leaves it as it was.
    """
    names = _quoted([column.name for column in relation.columns] + [ROW_ID, ROW_VERSION])
    changes = _read(session, warehouse, relation, content.changes, content.upto)
    pending = sum(file.statistics.rows for file in content.changes)
    if pending <= limits.counted_changes and content.upto is None:
        came: Counter[tuple[int, int]] = Counter()
        net: Counter[tuple[int, int]] = Counter()
        for file in content.changes:
            for version, diff in signed_versions(warehouse, file):
                net[version] += diff
                came[version] += diff > 0
        gone = [version for version, total in net.items() if total < 0]
        rows, new = narrow(rows), narrow(changes.where(f"{DIFF} > 0").select(*names))
        twice = [version for version, count in came.items() if count > 1 and net[version] > 0]
        left_out = [version for version, count in came.items() if count and (net[version] <= 0 or count > 1)]
        parts = [_without(rows, gone, limits), _without(new, left_out, limits)]
        if twice:
            parts.append(_among(new, twice, limits).dropDuplicates([ROW_ID, ROW_VERSION]))
        wanted = [bool(content.rows), len(came) > len(left_out), bool(twice)]
        chosen = [part for part, is_wanted in zip(parts, wanted, strict=False) if is_wanted] or [rows]
        return reduce(DataFrame.union, chosen)
    each = Window.partitionBy(ROW_ID, ROW_VERSION)
    summed = changes.withColumn("_sw_net", F.sum(DIFF).over(each)).withColumn(
        "_sw_rank", F.row_number().over(each.orderBy(F.col(DIFF).desc()))
    )
    once = summed.where("_sw_rank = 1")
    retracted = once.where("_sw_net < 0").select(ROW_ID, ROW_VERSION)
    if pending <= limits.broadcast_rows:
        retracted = F.broadcast(retracted)
    new = once.where("_sw_net > 0").select(*names)
    return narrow(rows.join(retracted, [ROW_ID, ROW_VERSION], "left_anti").select(*names).union(new))


Version = tuple[int, int]
"""The identity of a row, and its version."""


def _without(rows: DataFrame, versions: Sequence[Version], limits: Limits) -> DataFrame:
    """The rows that are none of these."""
    if not versions:
        return rows
    if len(versions) <= limits.literal_versions:
        return rows.where(f"NOT ({_is_one(versions)})")
    return rows.join(_offered(rows.sparkSession, versions, limits), F.expr(_SAME), "left_anti")


def _among(rows: DataFrame, versions: Sequence[Version], limits: Limits) -> DataFrame:
    """The rows that are one of these."""
    if len(versions) <= limits.literal_versions:
        return rows.where(_is_one(versions))
    return rows.join(_offered(rows.sparkSession, versions, limits), F.expr(_SAME), "left_semi")


def _is_one(versions: Sequence[Version]) -> str:
    """The pair is told by its parts, which tell others apart all the same."""
    ids, numbers = ({str(pair[part]) + "L" for pair in versions} for part in (0, 1))
    return f"{ROW_VERSION} IN ({', '.join(sorted(numbers))}) AND {ROW_ID} IN ({', '.join(sorted(ids))})"


def _offered(session: SparkSession, versions: Sequence[Version], limits: Limits) -> DataFrame:
    ids, numbers = (pa.array([pair[part] for pair in versions], pa.int64()) for part in (0, 1))
    return small_frame(session, pa.table({_ID: ids, _GONE: numbers}), limits)


def scan_delta(session: SparkSession, warehouse: Warehouse, relation: Relation, files: Sequence[DataFile]) -> DataFrame:
    """What one epoch did to a relation, by its files: rows with their identity and version, and `_diff`."""
    names = _quoted([column.name for column in relation.columns] + [ROW_ID, ROW_VERSION])
    parts = []
    for store, diff in ((Store.ROWS, "1L"), (Store.CHANGES, DIFF)):
        chosen = [file for file in files if file.store == store]
        if chosen:
            parts.append(_read(session, warehouse, relation, chosen, None).selectExpr(*names, f"{diff} AS {DIFF}"))
    return reduce(DataFrame.union, parts)


def scan_changes(
    session: SparkSession,
    warehouse: Warehouse,
    relation: Relation,
    files: Sequence[DataFile],
    after: Epoch,
    upto: Epoch,
) -> DataFrame:
    """The changelog of the epochs (after, upto]: rows with their identity, `_diff` and `_epoch`."""
    names = [column.name for column in relation.columns] + [ROW_ID, ROW_VERSION]
    parts = []
    for store, diff in ((Store.ROWS, F.lit(1).cast("bigint")), (Store.CHANGES, F.col(DIFF))):
        chosen = [file for file in files if file.store == store]
        if chosen:
            read = _read(session, warehouse, relation, chosen, None).withColumn(ROW_VERSION, F.expr(_RESOLVED))
            epoch = _row_epoch(session, warehouse, chosen, read)
            parts.append(epoch.select(*_quoted(names), diff.alias(DIFF), F.col(EPOCH)))
    if not parts:
        schema = StructType([*spark_schema(relation.columns).fields, *_HIDDEN.fields[:2]])
        return listed_frame(session, [], schema).select("*", F.lit(1).cast("bigint").alias(DIFF),
                                                          F.lit(0).cast("bigint").alias(EPOCH))  # fmt: skip
    whole = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    return whole.where((F.col(EPOCH) > after) & (F.col(EPOCH) <= upto))


def net_changes(relation: Relation, changes: DataFrame) -> DataFrame:
    """What changes of several epochs come to: each version that has come or gone, once."""
    values = [F.any_value(quote(column.name)).alias(column.name) for column in relation.columns]
    summed = changes.groupBy(ROW_ID, ROW_VERSION).agg(*values, F.sum(DIFF).alias(DIFF))
    return summed.where(f"{DIFF} <> 0")


def scan_files(session: SparkSession, warehouse: Warehouse, relation: Relation, files: Sequence[DataFile]) -> DataFrame:
    """Files of one store as they are, each row with its epoch in `_sw_epoch`."""
    read = _read(session, warehouse, relation, files, None)
    return _row_epoch(session, warehouse, files, read).drop(ROW_EPOCH).withColumnRenamed(EPOCH, ROW_EPOCH)


def _read(
    session: SparkSession, warehouse: Warehouse, relation: Relation, files: Sequence[DataFile], upto: Epoch | None
) -> DataFrame:
    signed = bool(files) and files[0].store == Store.CHANGES
    schema = StructType([*spark_schema(relation.columns).fields, *(_SIGNED if signed else _HIDDEN).fields])
    if not files:
        return listed_frame(session, [], schema)
    paths = [no_pattern(warehouse.uri(warehouse.path(file.relation, file.store, file.path))) for file in files]
    require_whole(warehouse, files)
    rows = session.read.options(**VERIFIED).schema(schema).parquet(*paths)
    rows = _with_numbers_unseen(relation, rows)
    if upto is not None:
        rows = rows.where(F.col(ROW_EPOCH).isNull() | (F.col(ROW_EPOCH) <= upto))
    return rows


_ONE = {FLOAT: "1F", DOUBLE: "1D"}


def _with_numbers_unseen(relation: Relation, rows: DataFrame) -> DataFrame:
    """The same rows, but no filter on a FLOAT or DOUBLE column reaches the files.

    A filter that is handed to the reader chooses row groups by statistics and dictionaries, and loses NaN and −0.0 to
    them. What is written today has none for such columns; older files, and those of other writers, do. Times one is
    the same number, NaN and −0.0 included, and no column that Spark would hand on. (Nested columns: see the setting
    `nestedPredicatePushdown` of our sessions.)
    """
    ones = {column.name: _ONE[column.type] for column in relation.columns if column.type in _ONE}
    if not ones:
        return rows
    names = {name: quote(name) for name in rows.columns}
    return rows.selectExpr(
        *(f"{text} * {ones[name]} AS {text}" if name in ones else text for name, text in names.items())
    )


def _row_epoch(session: SparkSession, warehouse: Warehouse, files: Sequence[DataFile], read: DataFrame) -> DataFrame:
    """Rows with `_epoch`: their own where the file spans several, else the one the catalog knows for the file."""
    single = {file.path: int(file.from_epoch) for file in files if not file.spans_epochs}
    epochs = set(single.values())
    if not single:
        return read.withColumn(EPOCH, F.col(ROW_EPOCH))
    if len(epochs) == 1:
        return read.withColumn(EPOCH, F.coalesce(F.col(ROW_EPOCH), F.lit(epochs.pop()).cast("bigint")))
    # One write may give the same name to files in several folders; they are of one epoch, so the name is enough.
    names = sorted({path.rsplit("/", 1)[-1]: epoch for path, epoch in single.items()}.items())
    schema = StructType([StructField("_sw_file", read.select("_metadata.file_name").schema[0].dataType),
                         StructField("_sw_file_epoch", LongType())])  # fmt: skip
    known = F.broadcast(listed_frame(session, names, schema))
    named = read.withColumn("_sw_file", F.col("_metadata.file_name"))
    joined = named.join(known, "_sw_file", "left")
    return joined.withColumn(EPOCH, F.coalesce(F.col(ROW_EPOCH), F.col("_sw_file_epoch"))).drop(
        "_sw_file", "_sw_file_epoch"
    )


def _quoted(names: Sequence[str]) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in names]

"""Inserts. Into a table without a key every row is new; into one with a key a row replaces the one of its key."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from stepwell.engine.read.canonical import differs
from stepwell.engine.read.snapshots import Snapshot
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.results import collect_small
from stepwell.engine.write.staging import CountedRows, row_numbers, signed, stage
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.relations import Relation
from stepwell.model.types import INTEGERS, STRING, literal, quote
from stepwell.model.writes import RelationWrite
from stepwell.plan import Content
from stepwell.storage import small_frame

NEW = "_sw_new"


def stage_insert(
    runtime: Runtime,
    snapshot: Snapshot,
    relation: Relation,
    rows: DataFrame,
    *,
    reads: int,
    numbers: CountedRows | None = None,
) -> RelationWrite:
    """Put `rows`, which have the table's columns, into the table; `numbers` if they know their places."""
    numbering = numbers or row_numbers(runtime.limits, reads)
    if not relation.key:
        plain = numbering.added_to(rows, ROW_ID)
        return stage(runtime, relation, plain, numbering, reads=reads, read_at=None)
    content = snapshot.content(relation)
    last = last_of_each_key(relation, numbering.added_to(rows, NEW))
    if not content.files:
        fresh = last.withColumnRenamed(NEW, ROW_ID)
        return stage(runtime, relation, fresh, numbering, reads=reads, read_at=snapshot.position)
    batch = collect_small(last, runtime.limits, reads=reads)
    if batch is not None:  # computed once, so that its keys can be written into the read of what is there
        read_back = small_frame(runtime.spark.session, batch, runtime.limits)
        casts = [f"CAST({quote(each.name)} AS {each.type}) AS {quote(each.name)}" for each in relation.columns]
        last = read_back.selectExpr(*casts, NEW)
        keys = batch.column(relation.key[0]).to_pylist()
        existing = _with_keys(snapshot, relation, content, keys, runtime.limits.literal_keys)
    else:
        existing = snapshot.rows(relation, content)
    delta = upsert_delta(relation, last, existing)
    return stage(runtime, relation, delta, numbering, reads=reads, read_at=snapshot.position)


def last_of_each_key(relation: Relation, rows: DataFrame) -> DataFrame:
    """The last row of each key: within a statement too, the last write wins."""
    order = Window.partitionBy(*(quote(name) for name in relation.key)).orderBy(F.col(NEW).desc())
    return rows.withColumn("_sw_rank", F.row_number().over(order)).where("_sw_rank = 1").drop("_sw_rank")


def upsert_delta(relation: Relation, rows: DataFrame, existing: DataFrame) -> DataFrame:
    """New rows as they are; for a key that is there, its row taken back and the new one under the same identity."""
    names = [column.name for column in relation.columns]
    old = {name: f"_sw_old_{index}" for index, name in enumerate([*names, ROW_ID, ROW_VERSION])}
    before = existing.select(*(F.col(quote(name)).alias(old[name]) for name in old))
    match = [F.col(quote(name)) == F.col(old[name]) for name in relation.key]
    joined = rows.join(before, match, "left")
    is_new = F.col(old[ROW_ID]).isNull()
    changed = differs([(F.col(old[column.name]), F.col(quote(column.name)), column) for column in relation.columns])
    delta = signed(
        [
            (F.lit(-1), [F.col(old[name]) for name in names], F.col(old[ROW_ID]), F.col(old[ROW_VERSION])),
            (
                F.lit(1),
                [F.col(quote(name)) for name in names],
                F.when(is_new, F.col(NEW)).otherwise(F.col(old[ROW_ID])),
                F.when(~is_new, F.col(NEW)),
            ),
        ],
        names,
        joined.where(is_new | changed),
    )
    return delta.where((F.col(DIFF) > 0) | F.col(ROW_ID).isNotNull())


def _with_keys(
    snapshot: Snapshot, relation: Relation, content: Content, keys: list[object], most_literals: int
) -> DataFrame:
    """What is there under the given values of the key's first column, read no wider than that needs."""
    type_ = relation.column(relation.key[0]).type
    known = [key for key in keys if isinstance(key, int | str)]
    if not known or len(known) < len(keys) or not (type_ in INTEGERS or type_ == STRING):
        return snapshot.rows(relation, content)
    low, high = min(known), max(known)
    rows = snapshot.rows(relation, content.within(low, high))
    column = quote(relation.key[0])
    if len(known) <= most_literals:  # as text: a call to Spark for each of a thousand keys takes a second
        return rows.where(f"{column} IN ({', '.join(sorted({literal(key) for key in known}))})")
    return rows.where(f"{column} BETWEEN {literal(low)} AND {literal(high)}")

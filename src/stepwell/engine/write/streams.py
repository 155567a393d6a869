"""Streams: whatever Spark can read as a stream goes into a table, each micro-batch once, by a label of its own.

Spark writes down which rows a batch has before it runs it, and runs it again after a crash. The label of the batch is
acknowledged together with its rows, so a batch that is there already is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from stepwell.engine.read.snapshots import Snapshot
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.assignment import require_assignable
from stepwell.engine.write.sources import named_in
from stepwell.engine.write.statements import writable
from stepwell.model.errors import InvalidSettingError, StepwellError, TypeMismatchError

_NAME = re.compile(r"\w[\w.-]*")

InsertBatch = Callable[[DataFrame, str], object]
"""Inserts the rows of a batch under a label, unless that label is there."""


def start_stream(
    runtime: Runtime,
    stream: DataFrame,
    table: str,
    insert: InsertBatch,
    *,
    name: str,
    every: str | None,
    checkpoint: str | None,
    once: bool,
) -> StreamingQuery:
    """Start the stream; what it has read is remembered at `checkpoint`, in the warehouse by default."""
    if not isinstance(stream, DataFrame) or not stream.isStreaming:
        raise TypeMismatchError(
            "this is no stream", hint="spark.readStream gives one; insert() takes everything that is finished."
        )
    if not _NAME.fullmatch(name):
        raise InvalidSettingError("the name of a stream consists of letters, digits, _, . and -")
    _require_fit(runtime, stream, table)
    warehouse = runtime.warehouse
    place = checkpoint or warehouse.uri(f"{warehouse.root}/streams/{name}")

    def insert_batch(batch: DataFrame, number: int) -> None:
        insert(batch, f"stream {name} batch {number}")

    writer = stream.writeStream.queryName(name).foreachBatch(insert_batch).option("checkpointLocation", place)
    if once:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)
    return writer.start()


def _require_fit(runtime: Runtime, stream: DataFrame, table: str) -> None:
    """Refuse a stream whose columns are not those of the table, before a row of it was read."""
    relation = writable(Snapshot(runtime).relation(table))
    for column, field in zip(named_in(relation, stream.columns), stream.schema.fields, strict=True):
        try:
            require_assignable(field.dataType, column, relation)
        except StepwellError as error:
            error.hint = error.hint or "CAST it in the stream."
            raise

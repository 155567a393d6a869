"""Small tables: rows that the driver holds, offered to Spark without a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from stepwell.model.limits import Limits


def small_frame(session: SparkSession, table: pa.Table, limits: Limits) -> DataFrame:
    """A small table as a frame that says of itself that it is small.

    Our sessions keep tables of more than a few rows out of the plan (`Limits.in_plan_bytes`). What is not in the plan
    has no size that Spark knew, hence the hint.
    """
    # Without a schema, what a time without a zone becomes would depend on the settings of the session.
    frame = session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
    return F.broadcast(frame) if table.nbytes <= limits.broadcast_bytes else frame


def listed_frame(session: SparkSession, rows: Sequence[tuple[Any, ...]], schema: StructType) -> DataFrame:
    """A list of rows as a frame; of none, as an empty one.

    They go by way of Arrow: a list that Spark is handed as it is goes through a Python process of its own when it is
    read, even if nothing is in it, which takes longer than what is done with it. Naive times are UTC.
    """
    shape = to_arrow_schema(schema, timezone="UTC")
    columns = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(shape)]
    return session.createDataFrame(pa.Table.from_arrays(columns, schema=shape), schema)

"""Small tables: rows that the driver holds, offered to Spark without a file."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.pandas.types import from_arrow_schema

from stepwell.model.limits import Limits


def small_frame(session: SparkSession, table: pa.Table, limits: Limits) -> DataFrame:
    """A small table as a frame that says of itself that it is small.

    Our sessions keep tables of more than a few rows out of the plan (`Limits.in_plan_bytes`). What is not in the plan
    has no size that Spark knew, hence the hint.
    """
    # Without a schema, what a time without a zone becomes would depend on the settings of the session.
    frame = session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
    return F.broadcast(frame) if table.nbytes <= limits.broadcast_bytes else frame

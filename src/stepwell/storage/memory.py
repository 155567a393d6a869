"""Small tables: rows that the driver holds, offered to Spark without a file."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

SENT_AROUND = 64 * 2**20
"""A table of no more bytes than this is sent to every task that joins it."""


def small_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """A small table as a frame that says of itself that it is small.

    Our sessions keep tables of more than a few rows out of the plan (`arrow.localRelationThreshold`): whenever Spark
    compares two plans it compares all rows in them, and it does so dozens of times. What is not in the plan has no
    size that Spark knew, hence the hint.
    """
    frame = session.createDataFrame(table)
    return F.broadcast(frame) if table.nbytes <= SENT_AROUND else frame

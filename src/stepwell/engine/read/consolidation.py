"""Consolidation: several writes of one epoch as the one change that they are together.

A version that is inserted and retracted within the epoch never was; what is left is what the epoch did.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from stepwell.engine.read.canonical import canonical
from stepwell.model.files import EPOCH, ROW_ID, ROW_VERSION
from stepwell.model.relations import Relation
from stepwell.model.types import quote


def consolidate(delta: DataFrame) -> DataFrame:
    """Δ without the versions that it both inserts and retracts."""
    both = F.count("*").over(Window.partitionBy(ROW_VERSION))
    return delta.withColumn("_sw_both", both).where("_sw_both = 1").drop("_sw_both")


def without_idle_updates(relation: Relation, changes: DataFrame) -> DataFrame:
    """Changelogs without the rows that an epoch took back and put there again just as they were.

    One statement never writes such a pair, but several in one epoch can. The versions stay in storage, where later
    changes may speak of them; nobody else needs to see them.
    """
    value = F.struct(*(canonical(F.col(quote(column.name)), column.type) for column in relation.columns))
    pair = Window.partitionBy(EPOCH, ROW_ID)
    marked = changes.withColumn("_sw_value", value.alias("_sw_value")).withColumn(
        "_sw_idle",
        (F.count("*").over(pair) == 2) & F.min("_sw_value").over(pair).eqNullSafe(F.max("_sw_value").over(pair)),
    )
    return marked.where("NOT _sw_idle").drop("_sw_value", "_sw_idle")

"""Plain Spark: what a query means, over rows that are held beside the warehouse."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

Bag = Counter[Any]

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    # Tables of a test stand in the plan itself: no job only to read a few rows.
    "spark.sql.execution.arrow.localRelationThreshold": "10MB",
}

FAILURES = (PySparkException, Py4JJavaError)
"""What Spark raises: for queries that it refuses, rows that it fails on, and its own bugs."""


def condition(error: PySparkException | Py4JJavaError) -> str:
    """The name of what went wrong."""
    if isinstance(error, PySparkException):
        return error.getCondition() or str(error).splitlines()[0]
    return str(error.java_exception.getClass().getSimpleName())


def canonical(value: Any, type_: pa.DataType) -> Any:
    """A value in a form in which equality is identity: NaN is NaN, -0.0 is not 0.0, maps compare."""
    if value is None:
        return None
    if pa.types.is_floating(type_):
        return repr(value)
    if pa.types.is_map(type_):
        entries = [(canonical(key, type_.key_type), canonical(held, type_.item_type)) for key, held in value]
        return tuple(sorted(entries, key=repr))
    if pa.types.is_list(type_):
        return tuple(canonical(each, type_.value_type) for each in value)
    if pa.types.is_struct(type_):
        return tuple(canonical(value[field.name], field.type) for field in type_)
    return value


def bag(rows: pa.Table) -> Bag:
    """Rows as a bag, with each how often it is there."""
    columns = [[canonical(value, column.type) for value in column.to_pylist()] for column in rows.columns]
    return Counter(zip(*columns, strict=True))


class Plain:
    """A session of Spark's own, without anything of stepwell's, in which relations are temporary views."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark.newSession()
        for name, value in SETTINGS.items():
            self.spark.conf.set(name, value)

    def set(self, name: str, rows: pa.Table, schema: StructType) -> None:
        """Let a relation have these rows from now on."""
        self.spark.createDataFrame(rows, schema).createOrReplaceTempView(name)

    def declare(self, name: str, columns: str) -> None:
        """Let a relation have these columns and no rows, about which a plan knows nothing."""
        self.spark.createDataFrame([], columns).createOrReplaceTempView(name)

    def refusal(self, text: str) -> str | None:
        """Why Spark does not take a query or cannot plan it, or None if it can."""
        try:
            self.spark.sql(text)._jdf.queryExecution().executedPlan()
        except FAILURES as error:
            return condition(error)
        return None

    def query(self, text: str) -> DataFrame:
        return self.spark.sql(text)

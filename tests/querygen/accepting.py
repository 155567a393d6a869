"""What Spark takes: a query over the tables and over other views is analyzed, without a row of any of them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from plain import Plain
from querygen.cases import View
from querygen.schema import TABLES, quoted
from querygen.types import SPARK


class Accepting:
    """Says of a query why Spark does not take it. Views it is told about are analyzed once."""

    def __init__(self, spark: SparkSession) -> None:
        self.plain = Plain(spark)
        self.known: dict[str, str] = {}
        for table in TABLES:
            columns = ", ".join(f"{quoted(name)} {SPARK[type_]}" for name, type_ in table.columns)
            self.plain.declare(table.name, columns)

    def __call__(self, text: str, views: list[View]) -> str | None:
        for view in views:
            if self.known.get(view.name) != view.text:
                self.plain.spark.sql(view.text).createOrReplaceTempView(view.name)
                self.known[view.name] = view.text
        return self.plain.refusal(text)

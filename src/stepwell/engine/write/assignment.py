"""Assignment: the values of a statement, as the columns of the table they go into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType as SparkType

from stepwell.engine.runtime import Runtime
from stepwell.model.errors import DuplicateNameError, SqlSyntaxError, StepwellError, TypeMismatchError
from stepwell.model.relations import Column as RelationColumn
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.plan import check_assignment
from stepwell.sql import TypedLiteral
from stepwell.sql.statements import Slice
from stepwell.storage.types import from_spark, to_spark


def assigned(value: Column, type_: SparkType, column: RelationColumn, relation: Relation) -> Column:
    """`value` as one of `column`, if it may be one."""
    require_assignable(type_, column, relation)
    return value.cast(to_spark(column.type))


def require_assignable(type_: SparkType, column: RelationColumn, relation: Relation) -> None:
    """Refuse to put a value of Spark's `type_` into `column` unless it may be."""
    try:
        source = from_spark(type_)
    except StepwellError as error:
        raise TypeMismatchError(
            f'column "{column.name}" of table "{relation.name}" is {column.type}, '
            f"and the value is {type_.simpleString().upper()}",
            hint=error.hint,
        ) from error
    check_assignment(column, source, relation.name)


def arrange(
    relation: Relation, frame: DataFrame, columns: Sequence[RelationColumn], beside: Sequence[str] = ()
) -> DataFrame:
    """A query's columns, by position, as those of the table; the ones not named are NULL.

    What is `beside` them, last in the frame, stays as it is.
    """
    if len(frame.columns) != len(columns) + len(beside):
        named = f"{len(columns)} column{'' if len(columns) == 1 else 's'}"
        raise SqlSyntaxError(
            f'{named} of table "{relation.name}" to fill, and {len(frame.columns)} '
            f"value{'' if len(frame.columns) == 1 else 's'} a row",
            detail=f"The columns are {', '.join(column.name for column in columns)}.",
        )
    source = frame.toDF(*(f"_sw_value_{index}" for index in range(len(columns))), *beside)
    values = dict.fromkeys((column.name for column in relation.columns), "NULL")
    for column, field in zip(columns, source.schema.fields, strict=False):
        require_assignable(field.dataType, column, relation)
        values[column.name] = field.name
    # as text: a call to Spark for each column and cast takes longer than the insert of a thousand rows
    return source.selectExpr(
        *(f"CAST({values[each.name]} AS {each.type}) AS {quote(each.name)}" for each in relation.columns),
        *beside,
    )


@contextmanager
def naming_literals(runtime: Runtime, relation: Relation, literals: Sequence[TypedLiteral]) -> Iterator[None]:
    """Let an error inside the block point at the literal that cannot be one of its column, if there is one."""
    try:
        yield
    except StepwellError as error:
        for each in literals:
            text = f"SELECT try_cast({each.slice.text} AS {each.column.type}) IS NULL"
            if runtime.spark.session.sql(text).collect()[0][0]:
                raise TypeMismatchError(
                    f'{each.slice.text} is no {each.column.type}, which column "{each.column.name}" of table'
                    f' "{relation.name}" is',
                    place=each.slice.place,
                    sqlstate="22018",
                ) from error
        raise


def named_columns(relation: Relation, names: Sequence[Slice]) -> list[RelationColumn]:
    """The columns that a list of names means, each at most once."""
    found: list[RelationColumn] = []
    for name in names:
        try:
            column = relation.column(name.unquoted)
        except StepwellError as error:
            raise error.at(name.place) from None
        if column in found:
            raise DuplicateNameError(f'column "{column.name}" is assigned twice', place=name.place, sqlstate="42701")
        found.append(column)
    return found

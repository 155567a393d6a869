"""Our types in the words of Spark, Arrow and Delta."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark

from stepwell.model import types as ours
from stepwell.model.relations import Column
from stepwell.model.types import Array, DataType, Decimal, Map, Primitive, Struct, unstorable

_SPARK: dict[DataType, spark.DataType] = {
    ours.BOOLEAN: spark.BooleanType(),
    ours.TINYINT: spark.ByteType(),
    ours.SMALLINT: spark.ShortType(),
    ours.INT: spark.IntegerType(),
    ours.BIGINT: spark.LongType(),
    ours.FLOAT: spark.FloatType(),
    ours.DOUBLE: spark.DoubleType(),
    ours.STRING: spark.StringType(),
    ours.BINARY: spark.BinaryType(),
    ours.DATE: spark.DateType(),
    ours.TIMESTAMP: spark.TimestampType(),
    ours.TIMESTAMP_NTZ: spark.TimestampNTZType(),
}
_OURS = {type(value): key for key, value in _SPARK.items()}

_ARROW: dict[DataType, pa.DataType] = {
    ours.BOOLEAN: pa.bool_(),
    ours.TINYINT: pa.int8(),
    ours.SMALLINT: pa.int16(),
    ours.INT: pa.int32(),
    ours.BIGINT: pa.int64(),
    ours.FLOAT: pa.float32(),
    ours.DOUBLE: pa.float64(),
    ours.STRING: pa.string(),
    ours.BINARY: pa.binary(),
    ours.DATE: pa.date32(),
    ours.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    ours.TIMESTAMP_NTZ: pa.timestamp("us"),
}


def to_spark(type_: DataType) -> spark.DataType:
    match type_:
        case Primitive():
            return _SPARK[type_]
        case Decimal(precision, scale):
            return spark.DecimalType(precision, scale)
        case Array(element):
            return spark.ArrayType(to_spark(element))
        case Map(key, value):
            return spark.MapType(to_spark(key), to_spark(value))
        case Struct(fields):
            return spark.StructType([spark.StructField(name, to_spark(field)) for name, field in fields])


def from_spark(type_: spark.DataType) -> DataType:
    """Our name for Spark's type, or an error if it cannot be stored."""
    match type_:
        case spark.NullType():
            return ours.VOID
        case spark.DecimalType():
            return Decimal(type_.precision, type_.scale)
        case spark.ArrayType():
            return Array(from_spark(type_.elementType))
        case spark.MapType():
            return Map(from_spark(type_.keyType), from_spark(type_.valueType))
        case spark.StructType():
            return Struct(tuple((field.name, from_spark(field.dataType)) for field in type_.fields))
        case spark.StringType():
            return ours.STRING
    found = _OURS.get(type(type_))
    if found is None:
        raise unstorable(type_.simpleString().upper())
    return found


def to_arrow(type_: DataType) -> pa.DataType:
    match type_:
        case Primitive():
            return _ARROW[type_]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(to_arrow(element))
        case Map(key, value):
            return pa.map_(to_arrow(key), to_arrow(value))
        case Struct(fields):
            return pa.struct([pa.field(name, to_arrow(field)) for name, field in fields])


def spark_schema(columns: tuple[Column, ...]) -> spark.StructType:
    """Columns for a Spark reader. All are nullable: a column added later is missing in older files."""
    return spark.StructType([spark.StructField(column.name, to_spark(column.type)) for column in columns])


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    return pa.schema([pa.field(column.name, to_arrow(column.type), column.nullable) for column in columns])

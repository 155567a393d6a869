"""The settings of Spark that change what a query means, as data: each with what it usually is, and what it decides.

Every session of ours begins with the usual values, whatever the Spark that it comes from was started with; a user can
set others in `Database.spark`. What differs when a view is created is recorded with it, and the view is analyzed,
maintained and verified under these settings ever after, in whatever process. What decides only how fast a query is, or
how it is shown, is not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepwell.model.views import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME_ZONE = "spark.sql.session.timeZone"

MEANINGS: dict[str, tuple[str, str]] = {
    TIME_ZONE: ("UTC", "between instants and dates, hours or texts"),
    "spark.sql.ansi.enabled": ("true", "overflow, wrong casts and missing elements: an error or NULL; implicit casts"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("false", "whether double quotes hold a name or a text"),
    "spark.sql.ansi.enforceReservedKeywords": ("false", "which words can be names"),
    "spark.sql.ansi.relationPrecedence": ("false", "whether JOIN binds more closely than a comma in FROM"),
    "spark.sql.caseSensitive": ("false", "whether a and A are two columns"),
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "what TIMESTAMP is: an instant, or a time without a zone"),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("true", "digits of a decimal result that does not fit"),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("true", "the type of a decimal beside an integer"),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("false", "whether 1e3 is a DOUBLE or a DECIMAL"),
    "spark.sql.legacy.interval.enabled": ("false", "which type an INTERVAL has"),
    "spark.sql.mapKeyDedupPolicy": ("LAST_WIN", "a key that comes twice in a map: an error, or the last one"),
    "spark.sql.groupByAliases": ("true", "whether GROUP BY knows the names of the SELECT list"),
    "spark.sql.groupByOrdinal": ("true", "whether a number in GROUP BY is a place in the SELECT list"),
    "spark.sql.orderByOrdinal": ("true", "whether a number in ORDER BY is a place in the SELECT list"),
    "spark.sql.parser.quotedRegexColumnNames": ("false", "whether a name in back-ticks is a pattern"),
    "spark.sql.parser.escapedStringLiterals": ("false", "what a backslash in a text is"),
    "spark.sql.legacy.setopsPrecedence.enabled": ("false", "whether INTERSECT comes before UNION and EXCEPT"),
    "spark.sql.legacy.ctePrecedencePolicy": ("CORRECTED", "which of two CTEs of one name is meant"),
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": ("false", "HAVING without GROUP BY"),
    "spark.sql.legacy.timeParserPolicy": ("CORRECTED", "the patterns of to_date, date_format and their like"),
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": ("false", "how a date is compared with a text"),
    "spark.sql.legacy.castComplexTypesToString.enabled": ("false", "how arrays, maps and structs are written as text"),
    "spark.sql.legacy.sizeOfNull": ("true", "size(NULL) without ANSI: -1 or NULL"),
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": ("true", "exists() over NULLs"),
    "spark.sql.legacy.statisticalAggregate": ("false", "the deviation of a single value: NULL or NaN"),
    "spark.sql.legacy.integerGroupingId": ("false", "the type of grouping_id()"),
    "spark.sql.legacy.groupingIdWithAppendedUserGroupBy": ("false", "the value of grouping_id()"),
    "spark.sql.legacy.percentileDiscCalculation": ("false", "which value PERCENTILE_DISC takes"),
    "spark.sql.legacy.negativeIndexInArrayInsert": ("false", "where array_insert counts from"),
    "spark.sql.legacy.lpadRpadAlwaysReturnString": ("false", "the type of lpad and rpad of bytes"),
    "spark.sql.legacy.charVarcharAsString": ("false", "whether CAST to VARCHAR(n) cuts"),
    "spark.sql.function.concatBinaryAsString": ("false", "the type of bytes put together"),
    "spark.sql.function.eltOutputAsString": ("false", "the type of elt() of bytes"),
    "spark.sql.jsonGenerator.ignoreNullFields": ("true", "whether to_json writes NULLs"),
    "spark.sql.chunkBase64String.enabled": ("true", "whether base64() breaks lines"),
    "spark.sql.icu.caseMappings.enabled": ("true", "lower() and upper() of some letters"),
}  # fmt: skip


def usual() -> dict[str, str]:
    """What a session of ours begins with."""
    return {name: value for name, (value, _) in MEANINGS.items()}


def recorded(session: SparkSession) -> Settings:
    """What is set otherwise than usual in a session, in the order of the names."""
    found = ((name, session.conf.get(name, value)) for name, value in sorted(usual().items()))
    return tuple((name, value) for name, value in found if value is not None and not _is_usual(name, value))


def _is_usual(name: str, value: str) -> bool:
    expected = MEANINGS[name][0]
    return value.lower() == expected.lower() or (name == TIME_ZONE and value in _UTC)


_UTC = frozenset({"Etc/UTC", "GMT", "Z", "+00:00", "UTC+00:00", "Zulu", "Universal", "Etc/Zulu", "Etc/Universal"})

"""Failures: what Spark says went wrong, in our own shape and pointing into the user's text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from stepwell.errors import (
    CancelledError,
    CardinalityError,
    DataFileError,
    Place,
    QueryError,
    SqlSyntaxError,
    StepwellError,
    UndefinedColumnError,
    nearest,
)
from stepwell.sql import Composition

CARDINALITY = "stepwell: two source rows change one target row"


@contextmanager
def translated(composition: Composition | None = None) -> Iterator[None]:
    """Turn Spark's errors inside the block into ours."""
    try:
        yield
    except PySparkException as error:
        raise translate(error, composition) from error
    except Py4JJavaError as error:
        raise _from_java(error) from error
    except Py4JError as error:
        raise StepwellError("the connection to Spark is lost", detail=str(error), sqlstate="08006") from error


def translate(error: PySparkException, composition: Composition | None = None) -> StepwellError:
    """Spark's error as one of ours."""
    condition, parameters = error.getCondition() or "", error.getMessageParameters() or {}
    message = _sentence(str(error))
    place = _place(error, composition)
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = parameters.get("objectName", "").replace("`", "")
        known = re.findall(r"`([^`]+)`(?=,|$|\])", parameters.get("proposal", ""))
        hint = nearest(name.split(".")[-1], known)
        return UndefinedColumnError(
            f'column "{name}" does not exist',
            place=place,
            hint=hint or (f"There are {', '.join(known)}." if known else None),
        )
    if condition == "PARSE_SYNTAX_ERROR":
        return SqlSyntaxError(message, place=place)
    if condition == "USER_RAISED_EXCEPTION" and CARDINALITY in message:
        return CardinalityError(
            "two rows of the source match one row of the target",
            place=place,
            detail="A MERGE can change a row only once.",
            hint="Make the source unique on what it is matched by.",
        )
    if condition.startswith("FAILED_READ_FILE"):
        path = parameters.get("path", "").removeprefix("file://")
        gone = condition.endswith("FILE_NOT_EXIST")
        return DataFileError(f'the data file "{path}" is {"missing" if gone else "damaged"}', detail=message)
    if "cancel" in condition.lower() or "was cancelled" in message.lower() or "interrupted" in condition.lower():
        return CancelledError("the statement was cancelled", detail="Nothing of it was applied.")
    return QueryError(message, place=place, sqlstate=error.getSqlState() or None)


def _from_java(error: Py4JJavaError) -> StepwellError:
    text = str(error.java_exception)
    if "cancelled" in text.lower():
        return CancelledError("the statement was cancelled", detail="Nothing of it was applied.")
    return QueryError(_sentence(text), sqlstate="XX000")


def is_too_large(error: PySparkException | Py4JJavaError) -> bool:
    """Whether a result was too large to be collected by the driver."""
    return "maxResultSize" in str(error)


def _sentence(message: str) -> str:
    """Spark's message without its error class, its SQLSTATE and the plan it prints behind."""
    text = re.sub(r"^\s*(?:[\w.]+Exception: )?\[[\w.]+\] ", "", message.strip())
    text = re.split(r"\s*SQLSTATE: \w{5}|\n== SQL|\n\nJVM stacktrace", text)[0]
    text = re.sub(r" If necessary set \"spark\.sql\.ansi\.enabled\".*?bypass this error\.", "", text)
    return re.sub(r"`_sw_\d+`\.", "", text).strip()


def _place(error: PySparkException, composition: Composition | None) -> Place | None:
    if composition is None:
        return None
    for context in error.getQueryContext() or []:
        try:
            start, stop = context.startIndex(), context.stopIndex()
        except PySparkException:
            continue
        if start >= 0 and (place := composition.origin(start, stop + 1)):
            return place
    match = re.search(r"\(line (\d+), pos (\d+)\)", str(error))
    if match:
        lines = composition.text.split("\n")
        index = sum(len(line) + 1 for line in lines[: int(match.group(1)) - 1]) + int(match.group(2))
        word = re.match(r"\w+|\S", composition.text[index:])
        return composition.origin(min(index, len(composition.text) - 1), index + len(word.group() if word else " "))
    return None

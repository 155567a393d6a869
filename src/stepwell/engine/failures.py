"""Failures: what Spark says went wrong, in our own shape and pointing into the user's text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from stepwell.model.errors import (
    CancelledError,
    CardinalityError,
    NotNullError,
    Place,
    QueryError,
    SqlSyntaxError,
    StepwellError,
    UndefinedColumnError,
    WarehouseError,
    nearest,
)
from stepwell.model.files import HIDDEN_PREFIX
from stepwell.model.relations import Relation
from stepwell.sql import Composition
from stepwell.sql.statements import Statement
from stepwell.storage import damaged, missing

CARDINALITY = "stepwell: two source rows change one target row"


_NULL = "stepwell: NULL in column"

LOST_SPARK = "08006"
"""The SQLSTATE of an error that says nothing about the query."""


def null_message(relation: Relation, column: str) -> str:
    """What a task says when it meets a NULL where none may be, as it stands inside a SQL string."""
    text = f'{_NULL} "{column}" of {relation.kind} "{relation.name}"'
    return text.replace("\\", "\\\\").replace("'", "\\'")


@contextmanager
def pointing_at(statement: Statement) -> Iterator[None]:
    """Let an error inside the block that points nowhere point at a statement, if that is short enough for a caret."""
    try:
        yield
    except StepwellError as error:
        if "\n" not in statement.slice.text and len(statement.slice.text) < 100:
            error.at(statement.slice.place)
        raise


@contextmanager
def translated(composition: Composition | None = None) -> Iterator[None]:
    """Turn Spark's errors inside the block into ours."""
    try:
        yield
    except PySparkException as error:
        raise translate(error, composition) from error
    except Py4JJavaError as error:
        raise _from_java(error, composition) from error
    except (Py4JError, ConnectionError) as error:
        raise StepwellError(
            "the connection to Spark is lost",
            detail=str(error) or type(error).__name__,
            hint="Run it again: a Spark of our own is started anew.",
            sqlstate=LOST_SPARK,
        ) from error


def translate(error: PySparkException, composition: Composition | None = None) -> StepwellError:
    """Spark's error as one of ours."""
    return _shape(
        error.getCondition() or "",
        error.getMessageParameters() or {},
        _in_users_words(str(error), composition),
        error.getSqlState(),
        _context_place(error, composition) or _text_place(str(error), composition),
    )


def _from_java(error: Py4JJavaError, composition: Composition | None) -> StepwellError:
    """An error that a task met: Spark's own sentence is somewhere among its causes."""
    causes: list[str] = []
    cause = error.java_exception
    while cause is not None and len(causes) < 20:
        causes.append(str(cause.toString()))
        cause = cause.getCause()
    if any("No space left on device" in each or "File too large" in each for each in causes):
        return WarehouseError(
            "the disk is full",
            detail="While Spark was writing. Nothing of the statement was applied.",
            hint="Free some space and run it again; VACUUM removes files that nobody needs any more.",
            sqlstate="53100",
        )
    text = next((each for each in reversed(causes) if re.search(r"\[[A-Z_]+[A-Z_.0-9]*\]", each)), causes[-1])
    condition = re.search(r"\[([A-Z_]+[A-Z_.0-9]*)\]", text)
    state = re.search(r"SQLSTATE: (\w{5})", text)
    path = re.search(r"(?:reading file|at) (file:\S+?\.parquet)", " ".join(causes))
    parameters = {"path": path.group(1)} if path else {}
    damaged = any("is not a Parquet file" in each or "FAILED_READ_FILE" in each for each in causes)
    name = "FAILED_READ_FILE" if damaged and path else condition.group(1) if condition else ""
    return _shape(
        name,
        parameters,
        _in_users_words(text, composition),
        state.group(1) if state else "XX000",
        _text_place(text, composition),
    )


def _shape(
    condition: str, parameters: dict[str, str], text: str, sqlstate: str | None, place: Place | None
) -> StepwellError:
    message = _raised(_sentence(text))
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = parameters.get("objectName", "").replace("`", "")
        known = re.findall(r"`([^`]+)`(?=,|$|\])", parameters.get("proposal", ""))
        known = [each for each in known if not each.startswith(HIDDEN_PREFIX)]
        hint = nearest(name.split(".")[-1], known)
        return UndefinedColumnError(
            f'column "{name}" does not exist',
            place=place,
            hint=hint or (f"There are {', '.join(known)}." if known else None),
        )
    if condition == "PARSE_SYNTAX_ERROR":
        return SqlSyntaxError(message, place=place)
    if _NULL in message:
        where = re.search(rf"{_NULL} (.*)", message)
        return NotNullError(f"column {where.group(1) if where else ''} must not be NULL", place=place)
    if CARDINALITY in message:
        return CardinalityError(
            "two rows of the source match one row of the target",
            place=place,
            detail="A MERGE can change a row only once.",
            hint="Make the source unique on what it is matched by.",
        )
    if condition.startswith("FAILED_READ_FILE"):
        path = parameters.get("path", "").removeprefix("file://").removeprefix("file:")
        return missing(path) if condition.endswith("FILE_NOT_EXIST") else damaged(path, message)
    if "CANCEL" in condition or "was cancelled" in message.lower() or "INTERRUPT" in condition:
        return CancelledError("the statement was cancelled", detail="Nothing of it was applied.")
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = parameters.get("routineName", "").replace("`", "")
        return QueryError(
            f'function "{name}" does not exist',
            place=place,
            hint="A function in Python is registered with Database.function.",
            sqlstate="42883",
        )
    error = QueryError(message, place=place, sqlstate=sqlstate)
    error.fragment = _drawn(text)
    return error


def _raised(message: str) -> str:
    """What a function in Python has raised, and where, without the way there."""
    if "Traceback (most recent call last)" not in message:
        return message
    raised = [line for line in message.splitlines() if line.strip() and not line.startswith(" ")][-1]
    frames = re.findall(r'File "([^"]*)", line (\d+), in (\w+)', message)
    if not frames:
        return raised
    path, line, name = frames[-1]
    return f"{raised}, in {name}() at line {line} of {path.rsplit('/', 1)[-1]}"


def _drawn(text: str) -> str | None:
    """The part of a query that Spark has drawn carets below."""
    lines = text.partition("== SQL")[2].splitlines()
    for above, below in itertools.pairwise(lines):
        if found := re.fullmatch(r"( *)(\^+) *", below):
            return above[found.start(2) : found.end(2)].strip() or None
    return None


def _in_users_words(message: str, composition: Composition | None) -> str:
    return composition.in_users_words(message) if composition else message


def is_bug(error: StepwellError) -> bool:
    """Whether what Spark says of a text that we wrote is no fault of the user's: it does not know a name, or a check of
    ours has failed.
    """
    is_ours = "stepwell: " in error.message
    return is_ours or (isinstance(error, UndefinedColumnError | SqlSyntaxError) or _is_analysis(error))


def _is_analysis(error: StepwellError) -> bool:
    return type(error) is QueryError and (error.sqlstate or "").startswith("42") and error.sqlstate != "42883"


def is_too_large(error: PySparkException | Py4JJavaError) -> bool:
    """Whether a result was too large to be collected by the driver."""
    return "maxResultSize" in str(error)


def _sentence(message: str) -> str:
    """Spark's message without its error class, its SQLSTATE and the plan it prints behind."""
    text = re.sub(r"^\s*(?:[\w.]+Exception: )?\[[\w.]+\] ", "", message.strip())
    text = re.split(r"\s*SQLSTATE: \w{5}|\n== SQL|\n\nJVM stacktrace", text)[0]
    text = re.sub(r" If necessary set \"spark\.sql\.ansi\.enabled\".*?bypass this error\.", "", text)
    return re.sub(r"`_sw_\d+`\.", "", text).strip()


def _context_place(error: PySparkException, composition: Composition | None) -> Place | None:
    """Where Spark says that the mistake stands, in the user's text."""
    for context in (error.getQueryContext() or []) if composition else []:
        try:
            start, stop = context.startIndex(), context.stopIndex()
        except PySparkException:
            continue
        if composition and start >= 0 and (place := composition.origin(start, stop + 1)):
            return place
    return None


def _text_place(message: str, composition: Composition | None) -> Place | None:
    """The same from the message alone: `(line 1, pos 13)`, or `(line 1, position 8)` above a drawn line."""
    match = re.search(r"\(line (\d+), pos(ition)? (\d+)\)", message)
    if match is None or composition is None:
        return None
    lines = composition.text.split("\n")
    index = sum(len(line) + 1 for line in lines[: int(match.group(1)) - 1]) + int(match.group(3))
    index -= 1 if match.group(2) else 0
    drawn = re.search(r"^ *(\^+)", message[match.end() :], re.MULTILINE) if match.group(2) else None
    word = re.match(r"\w+|\S", composition.text[index:])
    width = len(drawn.group(1)) if drawn else len(word.group()) if word else 1
    return composition.origin(min(index, len(composition.text) - 1), index + width)

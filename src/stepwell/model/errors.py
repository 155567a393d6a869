"""Everything that stepwell tells a caller has gone wrong: one tree under `StepwellError`.

An error is one sentence; DETAIL says more of what happened, HINT what to do about it, and `sqlstate` names its kind the
way SQL does. When the mistake stands in a text, the error carries the place, and `str(error)` draws it.
"""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where in `text` something stands: the half-open range of characters [start, end)."""

    text: str
    start: int
    end: int

    @property
    def line(self) -> int:
        """The number of the line it starts on, counted from 1."""
        return self.text.count("\n", 0, self.start) + 1

    def draw(self) -> str:
        """The line of the text, with carets below the place."""
        begins = self.text.rfind("\n", 0, self.start) + 1
        ends = self.text.find("\n", self.start)
        line = _blotted(self.text[begins : ends if ends >= 0 else len(self.text)])
        offset = self.start - begins
        width = max(1, min(self.end - self.start, len(line) - offset))
        number = str(self.line)
        if len(line) > 160:  # a thousand VALUES stand on one line: show the neighbourhood only
            cut = max(0, offset - 60)
            line, offset = ("…" if cut else "") + line[cut : cut + 140] + "…", offset - cut + (1 if cut else 0)
            width = min(width, 80)
        pad = " " * len(number)
        return f"  {number} | {line}\n  {pad} | {' ' * offset}{'^' * width}"


class StepwellError(Exception):
    """What every error of stepwell is. Its `sqlstate` is the class's unless one is given."""

    sqlstate = "XX000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        place: Place | None = None,
        sqlstate: str | None = None,
    ) -> None:
        super().__init__(mask(message))
        self.message = mask(message)
        self.detail = mask(detail) if detail else None
        self.hint = mask(hint) if hint else None
        self.place = place
        self.fragment: str | None = None
        """The part of a query of our own that it happened in, where there is no place in the user's text."""
        if sqlstate:
            self.sqlstate = sqlstate

    def at(self, place: Place | None) -> StepwellError:
        """The same error, pointing at `place` unless it points somewhere already."""
        self.place = self.place or place
        return self

    def __str__(self) -> str:
        lines = [self.message]
        if self.place:
            lines.append(self.place.draw())
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        lines.append(f"SQLSTATE: {self.sqlstate}")
        return "\n".join(lines)


class SqlSyntaxError(StepwellError):
    """The text is not a statement that stepwell knows."""

    sqlstate = "42601"


class UnsupportedError(StepwellError):
    """Understood, and not offered."""

    sqlstate = "0A000"


class UndefinedTableError(StepwellError):
    """A relation that does not exist."""

    sqlstate = "42P01"


class UndefinedColumnError(StepwellError):
    """A column that does not exist."""

    sqlstate = "42703"


class DuplicateNameError(StepwellError):
    """A relation or column that exists already."""

    sqlstate = "42P07"


class ReservedNameError(StepwellError):
    """A name that stepwell keeps for itself."""

    sqlstate = "42939"


class InvalidDefinitionError(StepwellError):
    """A CREATE or ALTER whose parts do not fit together."""

    sqlstate = "42P16"


class UnstorableTypeError(StepwellError):
    """A type that no published table could hold."""

    sqlstate = "42704"


class TypeMismatchError(StepwellError):
    """A value that may not be assigned to its column."""

    sqlstate = "42804"


class NotNullError(StepwellError):
    """NULL for a column that must not be NULL."""

    sqlstate = "23502"


class CardinalityError(StepwellError):
    """A MERGE in which two source rows want to change one target row."""

    sqlstate = "21000"


class DependentsError(StepwellError):
    """What others read cannot be dropped or changed under them."""

    sqlstate = "2BP01"


class ReadOnlyError(StepwellError):
    """A write to something that cannot be written."""

    sqlstate = "42809"


class ParameterError(StepwellError):
    """A parameter without a value, a value without a parameter, or a parameter where none can be."""

    sqlstate = "07001"


class QueryError(StepwellError):
    """Spark refused a query, or failed on a row of it; `sqlstate` is Spark's own."""

    sqlstate = "42000"


class TransactionStateError(StepwellError):
    """BEGIN inside a transaction, or COMMIT outside one."""

    sqlstate = "25001"


class ConflictError(StepwellError):
    """What a statement read was changed before it could be acknowledged; nothing of it was applied."""

    sqlstate = "40001"


class FencedError(StepwellError):
    """Another process leads the warehouse now; nothing of the attempt was applied."""

    sqlstate = "57P01"


class EpochNotRetainedError(StepwellError):
    """An epoch that is not readable: not yet, or no longer."""

    sqlstate = "22023"


class WarehouseError(StepwellError):
    """The warehouse or its catalog cannot be opened or written."""

    sqlstate = "58030"


class NoWarehouseError(WarehouseError):
    """There is no warehouse where one was looked for."""


class CatalogVersionError(StepwellError):
    """The catalog was written by a newer stepwell."""

    sqlstate = "55000"


class DataFileError(StepwellError):
    """A data file is missing or damaged."""

    sqlstate = "58030"
    path: str | None = None
    """The file, where it is one of the warehouse's own."""


class CheckpointError(StepwellError):
    """A checkpoint that is not there, is damaged or incomplete, or belongs to another database."""

    sqlstate = "58030"


class BadLineError(StepwellError):
    """A line of a file that is to be loaded cannot be read; nothing of the load was applied."""

    sqlstate = "22P04"


class LabelError(StepwellError):
    """The label of a load that names another load already."""

    sqlstate = "42710"


class AlreadyLoadedError(StepwellError):
    """A load that was acknowledged before, under its label; it is not applied twice."""

    sqlstate = "42710"


class JavaNotFoundError(StepwellError):
    """No Java that Spark can run on."""

    sqlstate = "58000"


class CancelledError(StepwellError):
    """The user stopped the statement."""

    sqlstate = "57014"


class InvalidSettingError(StepwellError):
    """A SET or an option with a value that makes no sense."""

    sqlstate = "22023"


class InternalError(StepwellError):
    """stepwell itself is wrong: what it computed cannot be. Nothing of it was applied."""

    sqlstate = "XX000"


class DatabaseClosedError(StepwellError):
    """The database was closed before."""

    sqlstate = "08003"


class StepwellWarning(UserWarning):
    """Something that a caller should know and that stops nobody: a view has failed, or does not follow."""


def warn(message: str) -> None:
    """Warn whoever called stepwell: the warning points at the first line that is not ours."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "stepwell":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, StepwellWarning, stacklevel=level)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The hint "Did you mean …?" for a misspelt `name`, or None if nothing known comes close."""
    by_key = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), by_key, n=1, cutoff=0.6)
    return f'Did you mean "{by_key[found[0]]}"?' if found else None


_SECRETS = (
    # scheme://user:password@host. A password may have signs in it that it should not, an @ too: up to the last one.
    re.compile(r"(?P<before>\w://[^:/\s\"']*:)(?P<secret>[^\s\"']+)(?=@)"),
    # ?password=… in a URL, password=… in the words of a driver, and keys and tokens of object stores.
    re.compile(
        r"(?P<before>\b[\w-]*(?:passw(?:or)?d|pwd|secret|token|credential|signature|access[_-]?key|api[_-]?key)[\w-]*=)"
        r"(?P<secret>'[^']*'|[^\s&;\"']+)",
        re.IGNORECASE,
    ),
)


def mask(text: str) -> str:
    """`text` with every password, key and token of a URL in it hidden."""
    for secret in _SECRETS:
        text = secret.sub(r"\g<before>***", text)
    return text


def _blotted(line: str) -> str:
    """The same as `mask`, in as many signs."""
    for secret in _SECRETS:
        line = secret.sub(lambda found: found["before"] + "*" * len(found["secret"]), line)
    return line

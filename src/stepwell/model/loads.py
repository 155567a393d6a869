"""Loads: what COPY asks for, and the label that lets it be asked twice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from stepwell.model.views import RelationId


class Format(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


class OnError(StrEnum):
    """What becomes of a load with a line that cannot be read: nothing is loaded, or that line is not."""

    ABORT = "abort"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How files are to be read. `format` None goes by the names of the files; the rest but `label` is for text."""

    format: Format | None = None
    label: str | None = None
    on_error: OnError = OnError.ABORT
    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    null: str = ""
    multiline: bool = False


@dataclass(frozen=True, slots=True)
class OutsideFile:
    """A file of somebody else's, to be read and left alone."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a load, and what it loads: the same name again is the same load, or a mistake."""

    text: str
    digest: str
    files: int
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """A load that was acknowledged."""

    label: Label
    relation: RelationId
    epoch: int
    at: int


def label_of(text: str, files: Iterable[OutsideFile]) -> Label:
    """A label for these files, told apart from others by their names and sizes."""
    named = [f"{file.size} {file.path}" for file in files]
    return Label(text, hashlib.sha256("\n".join(named).encode()).hexdigest(), len(named))

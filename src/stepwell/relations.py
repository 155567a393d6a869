"""Relations: tables now, views beside them. A relation is a relation: one shape in the catalog and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from stepwell.epochs import Epoch
from stepwell.errors import UndefinedColumnError, nearest
from stepwell.types import DATE, INSTANTS, INTEGERS, DataType

RelationId = NewType("RelationId", int)


class RelationKind(StrEnum):
    """What a relation is."""

    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation, in the user's spelling."""

    name: str
    type: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Chunking:
    """A relation is stored by ranges of `column`, each `width` wide (microseconds, or the integer's own unit)."""

    column: str
    width: int


@dataclass(frozen=True, slots=True)
class WatermarkRule:
    """`WATERMARK FOR column AS column - delay`, in microseconds or the integer's own unit."""

    column: str
    delay: int


@dataclass(frozen=True, slots=True)
class Definition:
    """What CREATE says of a relation, but for its name and columns."""

    kind: RelationKind = RelationKind.TABLE
    key: tuple[str, ...] = ()
    chunking: Chunking | None = None
    watermark: WatermarkRule | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation at some epoch; `columns` are those of that epoch."""

    id: RelationId
    name: str
    definition: Definition
    columns: tuple[Column, ...]
    created_epoch: Epoch

    @property
    def kind(self) -> RelationKind:
        return self.definition.kind

    @property
    def key(self) -> tuple[str, ...]:
        return self.definition.key

    @property
    def chunking(self) -> Chunking | None:
        return self.definition.chunking

    def column(self, name: str) -> Column:
        """The column called `name`, compared without case."""
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        raise UndefinedColumnError(
            f'column "{name}" does not exist in {self.kind} "{self.name}"',
            hint=nearest(name, [column.name for column in self.columns])
            or f"Its columns are {', '.join(column.name for column in self.columns)}.",
        )


def can_be_time(type_: DataType) -> bool:
    """Whether a column of this type can be event time."""
    return type_ in INSTANTS or type_ in INTEGERS or type_ == DATE


def is_integer_time(type_: DataType) -> bool:
    """Whether event time of this type is the integer itself rather than microseconds."""
    return type_ in INTEGERS

"""Relations: tables, and views beside them. A relation is a relation: one shape in the catalog and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stepwell.model.epochs import Epoch
from stepwell.model.errors import UndefinedColumnError, nearest
from stepwell.model.types import DATE, INSTANTS, INTEGERS, DataType
from stepwell.model.views import Deferral, RelationId, ViewDefinition


class RelationKind(StrEnum):
    """What a relation is."""

    TABLE = "table"
    MATERIALIZED = "materialized view"
    VIEW = "view"
    """A name for a query: nothing is stored, whoever reads it reads what it reads."""
    BLOCK = "block"
    """A part of a view's query that is kept like a view of its own, and that no user sees."""
    STATE = "state"
    """What a view remembers to be able to go on: a row of partial results a group."""
    LEDGER = "ledger"
    """The changes that came too late for a view, signed."""


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
    """`WATERMARK FOR column AS column - delay`, in microseconds or the integer's own unit.

    After `idle_timeout` microseconds without rows the table has no say. A row that lies more than `max_future` ahead of
    the clock does not move the watermark.
    """

    column: str
    delay: int
    idle_timeout: int | None = None
    max_future: int | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """What CREATE says of a relation, but for its name and columns."""

    kind: RelationKind = RelationKind.TABLE
    key: tuple[str, ...] = ()
    chunking: Chunking | None = None
    watermark: WatermarkRule | None = None
    view: ViewDefinition | None = None


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
    def view(self) -> ViewDefinition:
        """What makes a view of it; asked of views only."""
        assert self.definition.view is not None, f"{self.name} is a {self.kind}"
        return self.definition.view

    @property
    def is_stored(self) -> bool:
        """Whether it has rows of its own."""
        return self.kind != RelationKind.VIEW

    @property
    def is_hidden(self) -> bool:
        """Whether it is a part of a view rather than a relation that a user made."""
        return self.kind in (RelationKind.BLOCK, RelationKind.STATE, RelationKind.LEDGER)

    @property
    def is_maintained(self) -> bool:
        """Whether its rows follow from those of others."""
        return self.kind in (RelationKind.MATERIALIZED, RelationKind.BLOCK)

    @property
    def deferral(self) -> Deferral | None:
        """What makes a continuous aggregate of it, if it is one."""
        return self.definition.view.deferral if self.definition.view is not None else None

    @property
    def versions_return(self) -> bool:
        """Whether a row that was taken back can come again under the version it had.

        A table gives every version a number of its own. A derived row's version is a fingerprint of what it is, so
        that its retraction can be computed from what caused it instead of being looked up.
        """
        return self.kind != RelationKind.TABLE

    @property
    def key(self) -> tuple[str, ...]:
        return self.definition.key

    @property
    def chunking(self) -> Chunking | None:
        return self.definition.chunking

    @property
    def time_column(self) -> str | None:
        """The column that is its event time, if it has one."""
        if self.definition.view is not None:
            return self.definition.view.time_column
        if self.definition.watermark is not None:
            return self.definition.watermark.column
        return self.chunking.column if self.chunking else None

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

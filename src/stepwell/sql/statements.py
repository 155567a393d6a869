"""Statements: what a text asks for, as frozen values that remember where each part stood.

A `Slice` is a stretch of the user's own text: queries and expressions are handed to Spark as slices, as written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stepwell.model.errors import Place
from stepwell.model.loads import LoadOptions
from stepwell.model.relations import Chunking, Column, WatermarkRule
from stepwell.model.views import EmitMode, ViewOptions


@dataclass(frozen=True, slots=True)
class Slice:
    """The half-open stretch [start, end) of `source`."""

    source: str = field(repr=False)
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source[self.start : self.end]

    @property
    def unquoted(self) -> str:
        """The name that a quoted or plain identifier means."""
        quoted = self.text.startswith("`")
        return self.text[1:-1].replace("``", "`") if quoted else self.text

    @property
    def place(self) -> Place:
        return Place(self.source, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Name:
    """A name as the user wrote it: one part, or two with a point between them."""

    parts: tuple[str, ...]
    slice: Slice

    @property
    def last(self) -> str:
        return self.parts[-1]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Query:
    """Whatever Spark can answer."""

    text: Slice


@dataclass(frozen=True, slots=True)
class ExplainQuery:
    text: Slice
    extended: bool


@dataclass(frozen=True, slots=True)
class CreateTable:
    name: Name
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    watermark: WatermarkRule | None = None
    chunking: Chunking | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class EmitClause:
    """EMIT … and ALLOW LATENESS …, the latter as a whole number or as the words of an interval."""

    mode: EmitMode | None = None
    every: int = 0
    lateness: tuple[int | None, str | None] | None = None
    emit_slice: Slice | None = None
    lateness_slice: Slice | None = None


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE MATERIALIZED VIEW, or CREATE VIEW for a name of a query."""

    name: Name
    columns: tuple[Slice, ...] | None
    query: Slice
    materialized: bool
    or_replace: bool = False
    if_not_exists: bool = False
    options: ViewOptions = field(default_factory=ViewOptions)
    emit: EmitClause = field(default_factory=lambda: EmitClause())


@dataclass(frozen=True, slots=True)
class DropRelations:
    """`kind` is the word that the user said they are: table, materialized view or view."""

    kind: str
    names: tuple[Name, ...]
    if_exists: bool
    cascade: bool


class ViewAction(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    RENAME = "rename"
    SET = "set"


@dataclass(frozen=True, slots=True)
class AlterView:
    name: Name
    action: ViewAction
    new_name: Name | None = None
    options: ViewOptions = field(default_factory=ViewOptions)


@dataclass(frozen=True, slots=True)
class ExplainCreate:
    """How a view would be maintained, without creating it."""

    view: CreateView


@dataclass(frozen=True, slots=True)
class ExplainRefresh:
    """What the next epoch would do to a view."""

    name: Name


@dataclass(frozen=True, slots=True)
class RefreshView:
    """REFRESH MATERIALIZED VIEW: of a range of event time, whose ends are as the user wrote them, or of all."""

    name: Name
    start: Slice | None = None
    end: Slice | None = None
    cascade: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class ExplainStaleness:
    """EXPLAIN STALENESS: which ranges of a continuous aggregate have to be computed when it is read."""

    name: Name


@dataclass(frozen=True, slots=True)
class Verify:
    """Compare a view with its query; `repair` makes them equal."""

    name: Name
    repair: bool


@dataclass(frozen=True, slots=True)
class ShowViews:
    pass


@dataclass(frozen=True, slots=True)
class ShowWatermarks:
    pass


@dataclass(frozen=True, slots=True)
class ShowJobs:
    pass


class JobAction(StrEnum):
    """What can be done about a job."""

    CANCEL = "CANCEL"
    PAUSE = "PAUSE"
    RESUME = "RESUME"


@dataclass(frozen=True, slots=True)
class ChangeJob:
    """CANCEL, PAUSE or RESUME JOB."""

    action: JobAction
    number: int
    slice: Slice = field(compare=False)


@dataclass(frozen=True, slots=True)
class WaitForJobs:
    """WAIT: for the jobs of one view, or for all of them."""

    name: Name | None = None


@dataclass(frozen=True, slots=True)
class ShowDependencies:
    name: Name


@dataclass(frozen=True, slots=True)
class ShowLineage:
    """What the columns of a view are made of; `column` for one of them."""

    name: Name
    column: Slice | None


@dataclass(frozen=True, slots=True)
class RenameTable:
    name: Name
    new_name: Name


@dataclass(frozen=True, slots=True)
class AddColumns:
    name: Name
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """`columns` are those the user listed, or None for all of the table's in order."""

    table: Name
    columns: tuple[Slice, ...] | None
    query: Slice


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column = value`; the value DEFAULT stands for NULL and is written so by the parser's caller."""

    column: Slice
    value: Slice


@dataclass(frozen=True, slots=True)
class Update:
    table: Name
    alias: str | None
    assignments: tuple[Assignment, ...]
    condition: Slice | None


@dataclass(frozen=True, slots=True)
class Delete:
    table: Name
    alias: str | None
    condition: Slice | None


@dataclass(frozen=True, slots=True)
class MergeUpdate:
    """None for `UPDATE SET *`: each column from the source column of its name."""

    assignments: tuple[Assignment, ...] | None


@dataclass(frozen=True, slots=True)
class MergeDelete:
    pass


@dataclass(frozen=True, slots=True)
class MergeInsert:
    """None for `INSERT *`; columns None for all of the table's in order."""

    columns: tuple[Slice, ...] | None
    values: tuple[Slice, ...] | None


MergeAction = MergeUpdate | MergeDelete | MergeInsert


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN: the pairs it speaks of (`matched`, `not matched`, `not matched by source`), and what to do."""

    pairs: str
    condition: Slice | None
    action: MergeAction
    slice: Slice


@dataclass(frozen=True, slots=True)
class Merge:
    """`source` is the slice of a relation or of a query in parentheses."""

    table: Name
    alias: str | None
    source: Slice
    source_alias: str | None
    source_columns: tuple[Slice, ...]
    condition: Slice
    clauses: tuple[MergeClause, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """Files into a table; `columns` are those the user listed, or None for all of the table's."""

    table: Name
    columns: tuple[Slice, ...] | None
    paths: tuple[str, ...]
    options: LoadOptions


@dataclass(frozen=True, slots=True)
class Truncate:
    table: Name


@dataclass(frozen=True, slots=True)
class Begin:
    pass


@dataclass(frozen=True, slots=True)
class Commit:
    pass


@dataclass(frozen=True, slots=True)
class Rollback:
    pass


@dataclass(frozen=True, slots=True)
class Flush:
    """Wait until all that was written can be read; with `publishes` in Delta tables too, of one relation or of all."""

    publishes: bool = False
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class SetOption:
    """`SET name = value`; the value as a string, whatever it was written as."""

    name: str
    value: str
    slice: Slice


@dataclass(frozen=True, slots=True)
class ShowTables:
    pass


@dataclass(frozen=True, slots=True)
class ShowCreate:
    name: Name


@dataclass(frozen=True, slots=True)
class Describe:
    name: Name


@dataclass(frozen=True, slots=True)
class Optimize:
    """Fold what is pending into plain rows, and publish."""

    table: Name


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Remove the files that nobody can need any more."""


@dataclass(frozen=True, slots=True)
class CheckpointTo:
    """Copy the whole database, at one epoch."""

    path: str


@dataclass(frozen=True, slots=True)
class RestoreFrom:
    """Fill an empty warehouse from a checkpoint, the newest if no epoch is named."""

    path: str
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class ShowCheckpoints:
    path: str


Create = CreateTable | CreateView
Dml = Insert | Update | Delete | Merge | Truncate
Ddl = DropRelations | RenameTable | AddColumns | AlterView
Inspection = (
    ShowTables | ShowCreate | Describe | ShowViews | ShowWatermarks | ShowJobs | ShowDependencies | ShowLineage
    | ExplainCreate | ExplainRefresh | ExplainStaleness
)  # fmt: skip
Single = (
    Query | ExplainQuery | Dml | Copy | Ddl | Inspection | Verify | RefreshView | Begin | Commit | Rollback | Flush
    | SetOption | Optimize | Vacuum | ChangeJob | WaitForJobs | CheckpointTo | RestoreFrom | ShowCheckpoints
)  # fmt: skip
"""What is carried out by itself."""

Body = Create | Single


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text, and the stretch of the text that it is."""

    body: Body
    slice: Slice = field(compare=False)

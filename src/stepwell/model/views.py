"""Views: what CREATE VIEW says, as the catalog keeps it, and what an epoch did to one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType

from stepwell.model.functions import Versions
from stepwell.model.watermarks import NEVER, Transfer

RelationId = NewType("RelationId", int)

Settings = tuple[tuple[str, str], ...]
"""Settings of Spark by name, those that are not as usual."""


class RefreshPolicy(StrEnum):
    """What a view may cost: whatever is cheapest, never a recomputation of everything, or always one."""

    AUTO = "auto"
    INCREMENTAL = "incremental strict"
    FULL = "full"


class EmitMode(StrEnum):
    """When a view shows what has become of it."""

    UPDATE = "ON UPDATE"
    WATERMARK = "AFTER WATERMARK"
    PERIODICALLY = "PERIODICALLY"


@dataclass(frozen=True, slots=True)
class Emission:
    """EMIT and ALLOW LATENESS. `every` is the interval of PERIODICALLY; no `lateness` says nothing."""

    mode: EmitMode = EmitMode.UPDATE
    every: int = 0
    lateness: int | None = None

    @property
    def is_gated(self) -> bool:
        """Whether the view shows less than is known of it."""
        return self.mode != EmitMode.UPDATE

    @property
    def tolerance(self) -> int | None:
        """How long after a window has closed it can still change; None for ever."""
        return 0 if self.lateness is None and self.mode == EmitMode.WATERMARK else self.lateness


@dataclass(frozen=True, slots=True)
class Judge:
    """What tells whether a change comes too late: `column` of the rows that are read, and its watermark.

    What does is not applied but kept in `ledger`.
    """

    column: str
    transfer: Transfer
    tolerance: int
    ledger: RelationId

    def final(self, incoming: int) -> int:
        """The windows before this moment never change again, if `incoming` is the watermark of what is read."""
        return NEVER if incoming == NEVER else self.transfer(max(incoming - self.tolerance, NEVER + 1))


@dataclass(frozen=True, slots=True)
class Input:
    """A stored relation that a view reads, with the columns that it had when the view was created."""

    relation: RelationId
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deferral:
    """What makes a view a continuous aggregate: it is refreshed range by range, and not at each epoch.

    It groups by buckets over `column` of `source`, and shows their starts as `label`; `dimensions` are the other
    relations that it reads. A refresh leaves the last `lag` of event time alone, counted from the largest time of the
    source or, `from_now`, from the clock; times further ahead of the clock than `max_future` do not count.
    """

    source: RelationId
    column: str
    label: str
    transfer: Transfer
    integer: bool = False
    dimensions: tuple[RelationId, ...] = ()
    lag: int = 0
    from_now: bool = False
    max_future: int = 0
    batch: int = 1000
    """How many buckets are computed and committed at once."""
    materialized_only: bool = False
    """Whether a read shows what is stored, and nothing that a refresh has still to compute."""
    schedule: int = 0
    """Microseconds from one refresh by itself to the next; 0 is never."""
    start_offset: int | None = None
    end_offset: int | None = None
    """How far back refreshes by schedule begin and end, counted from where the lag is."""
    paused: bool = False
    """Whether its schedule stands still."""
    chunk: int = 0
    """How wide the chunks of its source are, if partial results are kept for each of those in a bucket; else 0."""


Width = tuple[int | None, str | None]
"""A stretch of event time as it was written: a number, or the text of an interval."""


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """What WITH or SET says of a view, and None where it says nothing.

    Of views that are ready at the same time, those of the highest priority start first.
    """

    policy: RefreshPolicy | None = None
    priority: int | None = None
    time_column: str | None = None
    deferred: bool | None = None
    lag: Width | None = None
    from_now: bool | None = None
    max_future: int | None = None
    batch: int | None = None
    materialized_only: bool | None = None
    schedule: int | None = None
    start_offset: Width | None = None
    end_offset: Width | None = None


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view's query. `text` is the user's; `bound` is the same with `placeholder`s instead of names.

    `parents` are the relations that the text names, plain views among them; `inputs` the stored ones behind those.
    """

    text: str
    bound: str
    parents: tuple[RelationId, ...]
    inputs: tuple[Input, ...]
    policy: RefreshPolicy = RefreshPolicy.AUTO
    plan: dict[str, Any] = field(default_factory=dict)
    state: RelationId | None = None
    blocks: tuple[RelationId, ...] = ()
    owner: RelationId | None = None
    priority: int = 0
    functions: Versions = ()
    """The functions in Python that its query calls."""
    time_column: str | None = None
    transfer: Transfer | None = None
    """How the watermark of its time column follows from the least of those that it reads."""
    emission: Emission = Emission()
    judge: Judge | None = None
    live: RelationId | None = None
    """What it shows a part of, if it does not show all that is known of it."""
    time_chosen: bool = False
    """Whether its time column was named, and did not follow from its query alone."""
    settings: Settings = ()
    """What of all that changes the meaning of a query was not as usual when it was created."""
    deferral: Deferral | None = None


OUTDATED = "its plan is of another version of stepwell"
"""Why a view is planned anew from its text, and computed anew."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """What one epoch did to one view."""

    epoch: int
    relation: RelationId
    rule: str
    steps: str
    rows_in: int
    inserted: int
    retracted: int
    bytes_read: int
    jobs: int
    microseconds: int
    started_at: int = 0
    rows_there: int = 0
    expected: int | None = None
    recompute_expected: int | None = None
    """Rows of the inputs; microseconds that the rule was expected to take, and that a recomputation was."""


def placeholder(relation: int) -> str:
    """The name that stands for a relation in a bound text; a negative number is a block that is not made yet."""
    return f"_sw_rel{relation}" if relation >= 0 else f"_sw_part{-relation}"

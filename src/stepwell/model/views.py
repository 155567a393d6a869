"""Views: what CREATE VIEW says, as the catalog keeps it, and how a view fares."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NewType

from stepwell.model.functions import Versions
from stepwell.model.watermarks import NEVER, Transfer

RelationId = NewType("RelationId", int)


class ViewState(StrEnum):
    """How a view fares: it follows its parents, waits for one that failed, or has failed itself."""

    RUNNING = "running"
    PAUSED = "paused"
    ERROR = "error"


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
class ViewOptions:
    """What WITH or SET says of a view, and None where it says nothing.

    Of views that are ready at the same time, those of the highest priority start first.
    """

    policy: RefreshPolicy | None = None
    priority: int | None = None
    time_column: str | None = None


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


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """How a view stands: `reflects` is the epoch of its parents that it shows."""

    relation: RelationId
    state: ViewState
    reflects: int
    reason: str | None


REPAIR = "repair"
"""The reason of a view that is to be written anew, whatever is stored."""

RESUMED = "resumed"
"""The reason of a view that is to catch up with the changes that it has missed."""

UNBUILT = -1
"""What a view reflects before it has been computed for the first time."""


def stale(reflects: int) -> int:
    """What a view reflects that holds rows of this epoch and must be computed anew, whatever has changed since."""
    return reflects if reflects < 0 else -2 - reflects


def held(reflects: int) -> int:
    """The epoch of the rows that a view holds, stale or not."""
    return reflects if reflects >= UNBUILT else -2 - reflects


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an epoch has made of a view that stood as `was`."""

    was: ViewRecord
    becomes: ViewRecord

    def settled(self, now: ViewRecord) -> ViewRecord:
        """How the view stands at the end, where it stands as `now` already: what was said of it meanwhile holds."""
        if now == self.was:
            return self.becomes
        if self.becomes.state != ViewState.RUNNING:
            return now
        due = now.reflects != self.was.reflects or (now.reflects < 0 and now.state == ViewState.RUNNING)
        return replace(now, reflects=stale(self.becomes.reflects) if due else self.becomes.reflects)


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

"""The life of a view: it is being built, has no rows and nobody fills it, or serves the rows of an epoch.

A view that serves runs, is paused or has failed; whichever it is, the next barrier at which it runs may owe it more
than to follow its parents. Statements and epochs turn one life into another by the functions below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum

from stepwell.model.epochs import Epoch
from stepwell.model.views import RelationId


class ViewState(StrEnum):
    """A life in one word, as users see it."""

    CREATING = "creating"
    UNPOPULATED = "unpopulated"
    RUNNING = "running"
    PAUSED = "paused"
    ERROR = "error"


class Owed(IntEnum):
    """What the next barrier owes a view beyond following its parents; each includes what those before it do."""

    NOTHING = 0
    CATCH_UP = 1
    """The changes that it has missed while it did not run."""
    RECOMPUTE = 2
    """All of its query, to be compared with what is stored: its definition, or what it reads, is not what it was."""
    REPLAN = 3
    """The same, since its plan was of another version of stepwell."""
    REWRITE = 4
    """All of its rows written anew, whatever is stored."""


@dataclass(frozen=True, slots=True)
class ByUser:
    """A pause until a user says RESUME."""


@dataclass(frozen=True, slots=True)
class ByParent:
    """A pause because a parent does not run; it ends with the parent's."""

    parent: RelationId


@dataclass(frozen=True, slots=True)
class Running:
    """The view follows its parents."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The view stays at the epoch that it reflects."""

    by: ByUser | ByParent


@dataclass(frozen=True, slots=True)
class Failed:
    """The view stays at the epoch that it reflects, because the next one could not be computed."""

    why: str


@dataclass(frozen=True, slots=True)
class Building:
    """The view has no rows yet. `job` builds it, or else the next barrier; it has `failed` if that says why."""

    job: int | None = None
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Unpopulated:
    """The view has no rows, and nobody fills it."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The view holds the rows of its query over its parents at the epoch `reflects`.

    If it is owed a recomputation, these are the rows of the query that it had then.
    """

    reflects: Epoch
    condition: Running | Paused | Failed = field(default_factory=Running)
    owed: Owed = Owed.NOTHING


Life = Building | Unpopulated | Serving


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an epoch has made of a view that lived as `was`."""

    relation: RelationId
    was: Life
    becomes: Life

    @property
    def only_advances(self) -> bool:
        """Whether the view ran, was owed nothing, and still is so: it just reflects another epoch."""
        return follows(self.was) and follows(self.becomes)


# -- what a life means ------------------------------------------------------------------------------------------------


def state_of(life: Life) -> ViewState:
    match life:
        case Building(failed=None):
            return ViewState.CREATING
        case Building() | Serving(condition=Failed()):
            return ViewState.ERROR
        case Unpopulated():
            return ViewState.UNPOPULATED
        case Serving(condition=Paused()):
            return ViewState.PAUSED
        case Serving():
            return ViewState.RUNNING


def why_stopped(life: Life, name: Callable[[RelationId], str]) -> str | None:
    """Why a view does not run, in words; `name` tells what a relation is called today."""
    match life:
        case Building(failed=why) | Serving(condition=Failed(why)):
            return why
        case Serving(condition=Paused(ByUser())):
            return "paused by a user"
        case Serving(condition=Paused(ByParent(parent))):
            return f'"{name(parent)}" does not run'
        case _:
            return None


def reflected(life: Life) -> Epoch | None:
    """The epoch whose rows a view holds, if it holds any."""
    return life.reflects if isinstance(life, Serving) else None


def runs(life: Life) -> bool:
    """Whether the next barrier does anything for a view."""
    if isinstance(life, Building):
        return life.job is None and life.failed is None
    return state_of(life) == ViewState.RUNNING


def is_due(life: Life) -> bool:
    """Whether the next barrier has to do something for a view even if its parents do not change."""
    return runs(life) and not follows(life)


def is_outdated(life: Life) -> bool:
    """Whether a view is computed anew because another version of stepwell had planned it."""
    return isinstance(life, Serving) and life.owed == Owed.REPLAN


def follows(life: Life) -> bool:
    """Whether a view reflects every epoch that is committed: it runs, and is owed nothing."""
    return isinstance(life, Serving) and life.condition == Running() and life.owed == Owed.NOTHING


def waits_for_parent(life: Life) -> bool:
    """Whether a view is paused because of a parent, and not by its own name."""
    return isinstance(life, Serving) and isinstance(life.condition, Paused) and isinstance(life.condition.by, ByParent)


# -- what statements make of it ---------------------------------------------------------------------------------------


def paused(life: Life) -> Life:
    """PAUSE: a view stays where it is; one that is being built is no longer."""
    if isinstance(life, Serving):
        return replace(life, condition=Paused(ByUser()))
    return Unpopulated()


def resumed(life: Life) -> Life:
    """RESUME: a view runs again, and catches up with what it has missed."""
    if isinstance(life, Serving):
        return Serving(life.reflects, Running(), max(life.owed, Owed.CATCH_UP))
    return Building()


def replaced(life: Life) -> Life:
    """A view runs with another definition, its own or that of what it waited for."""
    if isinstance(life, Serving):
        return Serving(life.reflects, Running(), max(life.owed, Owed.RECOMPUTE))
    return Building()


def rebuilt(life: Life) -> Life:
    """REPAIR of a view whose rows cannot be read: it begins from nothing, unless a user has paused it."""
    if not isinstance(life, Serving):
        return Unpopulated() if isinstance(life, Unpopulated) else Building()
    condition = life.condition if life.condition == Paused(ByUser()) else Running()
    return Serving(life.reflects, condition, Owed.REWRITE)


def owing(life: Life, owed: Owed) -> Life:
    """A view is owed at least this from now on; one without rows is computed anyway."""
    return replace(life, owed=max(life.owed, owed)) if isinstance(life, Serving) else life


# -- what epochs make of it -------------------------------------------------------------------------------------------


def failed(life: Life, why: str) -> Life:
    """An epoch could not be computed. What the view was owed it still is."""
    match life:
        case Serving():
            return replace(life, condition=Failed(why))
        case Building(job):
            return Building(job, why)
        case Unpopulated():
            return Building(failed=why)


def joined(position: Epoch) -> Life:
    """A job has built a view up to an epoch; the next barrier brings it what has come since."""
    return Serving(position, Running(), Owed.CATCH_UP)


def stopped_by(life: Life, parent: RelationId) -> Life:
    """A parent does not run. A view that has no rows yet goes on waiting for it."""
    return replace(life, condition=Paused(ByParent(parent))) if isinstance(life, Serving) else life


def stopped_with(life: Life, part: Life) -> Life:
    """A hidden part of the view's own query does not run: the view fares as its part."""
    match part:
        case Serving(condition=Paused() as condition) if isinstance(life, Serving):
            return replace(life, condition=condition)
        case Serving(condition=Failed(why)):
            return failed(life, why)
        case Building(failed=str(why)):
            return failed(life, why)
        case _:
            return life  # the part waits to be built, and the view with it


def settled(outcome: Outcome, said: Life) -> Life:
    """A view that an epoch has maintained, while statements made `said` out of what it was.

    What they said holds, but the rows are those of the epoch: nothing of it is applied again.
    """
    becomes = outcome.becomes
    if not (isinstance(becomes, Serving) and becomes.condition == Running()):
        return said
    match said:
        case Serving():
            return replace(said, reflects=becomes.reflects)
        case Unpopulated():  # paused while it was being built
            return replace(becomes, condition=Paused(ByUser()))
        case Building():  # replaced while it was being built
            return replace(becomes, owed=Owed.RECOMPUTE)

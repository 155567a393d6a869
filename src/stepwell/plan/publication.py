"""Publication: what a relation's Delta log should say, and when, as a pure function of the catalog.

A Delta table is a set of plain files, so pending changes cannot be shown as they are. Plain files that no pending
retraction can reach are shared with it; what the rest comes to is written anew, as a *copy* that is for outside readers
alone: it is content at no epoch, and goes soon after the next publication. So publishing often costs no history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from stepwell.model.epochs import Epoch
from stepwell.model.files import DataFile, NewFile, Store
from stepwell.model.limits import Limits
from stepwell.plan.compaction import reached
from stepwell.plan.content import Content


@dataclass(frozen=True, slots=True)
class Publication:
    """The commit that brings a Delta log to `epoch`."""

    epoch: Epoch
    adds: tuple[DataFile, ...]
    removes: tuple[DataFile, ...]
    content: tuple[DataFile, ...] = ()
    copies: tuple[NewFile, ...] = ()
    """What was written for this commit alone; it is added beside `adds`."""
    is_change: bool = True
    """Whether rows have changed since the last commit, or files alone."""


@dataclass(frozen=True, slots=True)
class PublicationPlan:
    """How a relation can be published at `epoch`: plain files as they are, and what the others come to."""

    epoch: Epoch
    at: Epoch | None
    """The epoch that the Delta log stands at; None before its first commit."""
    shared: tuple[DataFile, ...]
    rewritten: Content
    """Pending changes, and the plain files that they reach; empty where all content is plain."""
    changed_bytes: int
    """Bytes of what has come since the last commit."""

    @property
    def is_plain(self) -> bool:
        return not self.rewritten.files

    @property
    def rewritten_rows(self) -> int:
        return sum(file.statistics.rows for file in self.rewritten.files)

    def publication(self, copies: Sequence[NewFile], published: Iterable[DataFile]) -> Publication:
        """The commit, once what is rewritten has become `copies`; `published` is what the log names so far."""
        wanted, there = {file.id: file for file in self.shared}, {file.id: file for file in published}
        return Publication(
            self.epoch,
            tuple(file for id_, file in sorted(wanted.items()) if id_ not in there),
            tuple(file for id_, file in sorted(there.items()) if id_ not in wanted),
            self.shared,
            tuple(copies),
            self.epoch != self.at,
        )


def plan_publication(
    content: Iterable[DataFile], published: Iterable[DataFile], epoch: Epoch, at: Epoch | None
) -> PublicationPlan | None:
    """How to publish one relation, whose `content` at `epoch` and `published` files are given.

    None where the Delta log shows these rows already, or cannot show them: it never goes back from `at`, the epoch that
    it stands at, and a file that was merged with later epochs would show too much.
    """
    files = sorted(content, key=lambda file: file.id)
    if any(file.last_epoch > epoch for file in files) or (at is not None and epoch < at):
        return None
    changes = tuple(file for file in files if file.store == Store.CHANGES)
    rows = tuple(file for file in files if file.store == Store.ROWS)
    touched = reached(rows, changes)
    shared = tuple(file for file in rows if file not in touched)
    if changes:
        is_current = at is not None and all(file.last_epoch <= at for file in files)
    else:
        is_current = at is not None and {file.id for file in shared} == {file.id for file in published}
    if is_current:
        return None
    new = [file for file in files if file.logged and (at is None or file.last_epoch > at)]
    return PublicationPlan(epoch, at, shared, Content(touched, changes), sum(file.statistics.bytes for file in new))


@dataclass(frozen=True, slots=True)
class Backlog:
    """How far a Delta log is behind, and what publishing it has taken before. Times are in microseconds."""

    epochs: int
    waited: int
    """Since it was first seen to be behind."""
    rested: int
    """Since its last copies were written, or since it was first seen to be behind."""
    took: int | None = None
    """What its last copies took to write."""


class PublicationTiming(StrEnum):
    """When a relation is published."""

    AT_ONCE = "at once"
    """With the epoch: nothing has to be written for it, or little."""
    NOT_YET = "not yet"
    """Later, since it is not behind for long."""
    DUE = "due"
    """Now, beside the epochs."""
    TOO_DEAR = "too dear"
    """It lags: by now it would write and take too much for what has changed."""


def time_publication(plan: PublicationPlan, backlog: Backlog, lag: int, limits: Limits) -> PublicationTiming:
    """When to carry a plan out. `lag` is how long, in microseconds, a relation may be behind.

    What is written anew is bound to `publish_bytes_factor` times the bytes that have changed, or to
    `publish_time_share` of the time, by what the last time took.
    """
    is_cheap = plan.rewritten.bytes <= limits.publish_bytes_factor * plan.changed_bytes
    if plan.is_plain or (is_cheap and plan.rewritten_rows <= limits.copied_rows):
        return PublicationTiming.AT_ONCE
    if backlog.epochs < limits.publish_epochs and backlog.waited < lag:
        return PublicationTiming.NOT_YET
    expected = limits.copy_microseconds(plan.rewritten.bytes) if backlog.took is None else backlog.took
    is_rare = expected <= limits.publish_time_share * backlog.rested
    return PublicationTiming.DUE if is_cheap or is_rare else PublicationTiming.TOO_DEAR

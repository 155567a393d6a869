"""Publication: what a relation's Delta log should say, as a pure function of the catalog.

A Delta table is a set of plain files. A relation can be published at an epoch at which no retraction is pending; at any
other, its Delta table stays at the last such epoch until the changes are folded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stepwell.model.epochs import Epoch
from stepwell.model.files import DataFile, Store


@dataclass(frozen=True, slots=True)
class Publication:
    """The commit that brings a Delta log to `epoch`."""

    epoch: Epoch
    adds: tuple[DataFile, ...]
    removes: tuple[DataFile, ...]
    content: tuple[DataFile, ...] = ()
    is_change: bool = True
    """Whether rows have changed since the last commit, or files alone."""


def plan_publication(
    content: Iterable[DataFile], published: Iterable[DataFile], epoch: Epoch, at: Epoch | None
) -> Publication | None:
    """The commit for one relation, whose `content` at `epoch` and `published` files are given.

    None where the Delta log is right already, or cannot be at this epoch. `at` is the epoch it stands at.
    """
    files = list(content)
    if any(file.store == Store.CHANGES or file.last_epoch > epoch for file in files) or (at is not None and epoch < at):
        return None
    wanted, there = {file.id: file for file in files}, {file.id: file for file in published}
    adds = tuple(file for id_, file in sorted(wanted.items()) if id_ not in there)
    removes = tuple(file for id_, file in sorted(there.items()) if id_ not in wanted)
    if not adds and not removes and at is not None:
        return None
    return Publication(epoch, adds, removes, tuple(files), epoch != at)

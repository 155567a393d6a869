"""Content: which files, read how, are a relation at an epoch, or its changes between two.

Content is every inserted row version whose retraction is not there too. `rows` files hold inserts only; `changes` files
hold both. A file that spans several epochs is cut by its rows' own epoch where it reaches beyond the one asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stepwell.model.epochs import Epoch
from stepwell.model.files import DataFile, Store


@dataclass(frozen=True, slots=True)
class Content:
    """The files of a relation at an epoch. `upto` is set where rows of a later epoch must be left out."""

    rows: tuple[DataFile, ...]
    changes: tuple[DataFile, ...]
    upto: Epoch | None = None

    @property
    def files(self) -> tuple[DataFile, ...]:
        return self.rows + self.changes

    @property
    def bytes(self) -> int:
        return sum(file.statistics.bytes for file in self.files)

    @property
    def count(self) -> int:
        """How many rows: every retraction takes one insert away."""
        return sum(file.statistics.inserted - file.statistics.retracted for file in self.files)

    def within(self, low: int | str | None, high: int | str | None) -> Content:
        """Without the plain files whose keys all lie outside [low, high]; changes stay, for they retract by version."""
        if low is None or high is None:
            return self
        return Content(tuple(file for file in self.rows if _overlaps(file, low, high)), self.changes, self.upto)


def content_at(files: Iterable[DataFile], epoch: Epoch) -> Content:
    """The files of one relation that are its content at `epoch`."""
    chosen = sorted((file for file in files if file.is_content(epoch)), key=lambda file: (file.from_epoch, file.id))
    late = any(file.last_epoch > epoch for file in chosen)
    return Content(
        tuple(file for file in chosen if file.store == Store.ROWS),
        tuple(file for file in chosen if file.store == Store.CHANGES),
        epoch if late else None,
    )


def changes_between(files: Iterable[DataFile], after: Epoch, upto: Epoch) -> tuple[DataFile, ...]:
    """The files of one relation that hold changelogs of the epochs (after, upto]."""
    chosen = (file for file in files if file.has_changes(after, upto))
    return tuple(sorted(chosen, key=lambda file: (file.from_epoch, file.id)))


def needs_consolidation(files: Iterable[DataFile]) -> bool:
    """Whether one epoch's files of a relation may hold an insert and its retraction.

    What one statement wrote never does, nor do any number of plain inserts. Where Spark wrote, a statement's files are
    in one folder.
    """
    known = list(files)
    statements = {file.path.split("/", 1)[0] for file in known}
    return len(statements) > 1 and any(file.store == Store.CHANGES for file in known)


def _overlaps(file: DataFile, low: int | str, high: int | str) -> bool:
    first, last = file.statistics.key_min, file.statistics.key_max
    if first is None or last is None:
        return True
    if isinstance(low, str) and isinstance(high, str) and isinstance(first, str) and isinstance(last, str):
        return first <= high and low <= last
    if isinstance(low, int) and isinstance(high, int) and isinstance(first, int) and isinstance(last, int):
        return first <= high and low <= last
    return True

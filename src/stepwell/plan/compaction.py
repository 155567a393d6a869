"""Compaction: keep the number of files small, and what is retracted out of the way of readers.

A *merge* puts small files of one kind together: every row keeps its epoch, so the merged file stands for its inputs at
every epoch, as content and as changelog, and nothing is lost by it. A *fold* applies pending retractions: new plain
rows from an epoch on, while the files before it stay for those who look back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from stepwell.model.epochs import Epoch
from stepwell.model.files import DataFile, Store
from stepwell.model.limits import Limits


@dataclass(frozen=True, slots=True)
class FileMerge:
    """Put these files together into one."""

    store: Store
    inputs: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.statistics.rows for file in self.inputs)


@dataclass(frozen=True, slots=True)
class Fold:
    """Apply all pending changes at `epoch`: rewrite `touched` and close `changes`."""

    epoch: Epoch
    touched: tuple[DataFile, ...]
    changes: tuple[DataFile, ...]


def tier(file: DataFile, limits: Limits) -> int:
    """The size class of a file, counted from the smallest."""
    size, level = limits.smallest_tier_rows, 0
    while file.statistics.rows >= size:
        size, level = size * limits.tier_growth, level + 1
    return level


def choose_merge(
    files: Iterable[DataFile], epoch: Epoch, limits: Limits, chunk_width: int | None = None
) -> FileMerge | None:
    """The next merge of one relation's files that are content at `epoch` and stay so, smallest first.

    Files that lie within one chunk are merged with their like only: a large merge is written a file a chunk, and must
    never be offered its own outputs again.
    """
    groups: dict[tuple[int, Store, bool, int | None], list[DataFile]] = defaultdict(list)
    for file in files:
        if file.until_epoch is None and file.last_epoch <= epoch and file.statistics.rows < limits.settled_rows:
            groups[tier(file, limits), file.store, file.logged, _chunk(file, chunk_width)].append(file)
    for (_, store, *_), members in sorted(groups.items(), key=lambda item: item[0][0]):
        members.sort(key=lambda file: (file.from_epoch, file.id))
        is_plain = store == Store.ROWS
        chosen = members if is_plain else _few(members, limits.merged_changes_rows)
        if len(chosen) >= (limits.merged_rows_files if is_plain else limits.merged_changes_files):
            return FileMerge(store, tuple(chosen))
    return None


def _few(files: list[DataFile], most_rows: int) -> list[DataFile]:
    """As many of these as the driver can hold at once."""
    rows, chosen = 0, []
    for file in files:
        rows += file.statistics.rows
        if rows > most_rows:
            break
        chosen.append(file)
    return chosen


def _chunk(file: DataFile, width: int | None) -> int | None:
    """The chunk that a plain file lies within, None if it spans several; changes are read as a whole."""
    first, last = file.statistics.time_min, file.statistics.time_max
    if width is None or first is None or last is None or file.store == Store.CHANGES:
        return None
    return first // width if first // width == last // width else None


def choose_fold(files: Iterable[DataFile], epoch: Epoch, limits: Limits, *, now: bool = False) -> Fold | None:
    """Whether to fold one relation at `epoch`, a readable one; `now` folds however little is pending.

    Every plain file is rewritten whose rows may be retracted: row versions are numbered in the order of their writing,
    but a retraction can reach any of them.
    """
    live = [file for file in files if file.until_epoch is None and file.last_epoch <= epoch]
    changes = tuple(file for file in live if file.store == Store.CHANGES)
    rows = tuple(file for file in live if file.store == Store.ROWS)
    pending = sum(file.statistics.rows for file in changes)
    content = sum(file.statistics.rows for file in rows)
    if not changes or not (now or pending >= max(limits.fold_rows, limits.fold_share * content)):
        return None
    return Fold(epoch, reached(rows, changes), changes)


def reached(rows: tuple[DataFile, ...], changes: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    """The plain files that a pending retraction may reach: those whose time overlaps one of the changes'."""
    reaches = [(each.statistics.time_min, each.statistics.time_max) for each in changes if each.statistics.retracted]

    def is_reached(file: DataFile) -> bool:
        first, last = file.statistics.time_min, file.statistics.time_max
        return any(
            low is None or high is None or first is None or last is None or (first <= high and low <= last)
            for low, high in reaches
        )

    return tuple(file for file in rows if is_reached(file))

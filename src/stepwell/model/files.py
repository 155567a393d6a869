"""Data files: what the catalog knows of each.

A file is content of its relation in the epochs [from_epoch, until_epoch). One written by a statement belongs to one
epoch, and only the catalog knows which: its writer did not. Files merged later cover several, and then every row says
in `_sw_epoch` since when it counts; `last_epoch` is the newest among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from stepwell.model.epochs import Epoch

DIFF = "_diff"
EPOCH = "_epoch"
ROW_ID = "_sw_id"
ROW_VERSION = "_sw_ver"
ROW_EPOCH = "_sw_epoch"
HIDDEN_PREFIX = "_sw_"


_STAGED = Epoch(2**61)
LATEST = Epoch(2**62)
"""Not an epoch, but after all of them: reading here sees everything acknowledged."""


class Store(StrEnum):
    """Where a file lies: plain rows, all of them inserts, or signed changes."""

    ROWS = "rows"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class Checksum:
    """CRC-32 of the bytes of a file: of all of them, and of those from `tail_start` on.

    The tail is what readers choose row groups and pages by, bloom filters and indexes included; what stands before it
    are pages, which have checksums of their own.
    """

    whole: int
    tail_start: int
    tail: int


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """What is known of a file without opening it; ranges are inclusive, None where nothing is known."""

    rows: int
    retracted: int
    bytes: int
    time_min: int | None = None
    time_max: int | None = None
    key_min: int | str | None = None
    key_max: int | str | None = None
    checksum: Checksum | None = None
    """None for a file of a version that kept none."""

    @property
    def inserted(self) -> int:
        return self.rows - self.retracted


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is written and safe on disk, and that no reader knows of yet."""

    store: Store
    path: str
    statistics: FileStatistics
    last_number: int = 0
    """The largest row number in it: what a reservation has used."""

    def staged(self, relation: int) -> DataFile:
        """As content that only its own transaction sees: after everything acknowledged."""
        return DataFile(-1, relation, self.store, self.path, _STAGED, _STAGED, None, True, self.statistics)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file the catalog knows. `path` is relative to the folder of its relation's store."""

    id: int
    relation: int
    store: Store
    path: str
    from_epoch: Epoch
    last_epoch: Epoch
    until_epoch: Epoch | None
    logged: bool
    statistics: FileStatistics

    def is_content(self, epoch: Epoch) -> bool:
        """Whether rows of this file are content at `epoch`."""
        return self.from_epoch <= epoch and (self.until_epoch is None or epoch < self.until_epoch)

    def has_changes(self, after: Epoch, upto: Epoch) -> bool:
        """Whether this file holds a changelog of one of the epochs (after, upto]."""
        return self.logged and self.from_epoch <= upto and self.last_epoch > after

    @property
    def spans_epochs(self) -> bool:
        """Whether the epoch is told by each row, in `_sw_epoch`, instead of by the catalog."""
        return self.last_epoch > self.from_epoch


def total(files: Iterable[DataFile | NewFile]) -> FileStatistics:
    """The counts of several files together."""
    statistics = [file.statistics for file in files]
    return FileStatistics(
        rows=sum(each.rows for each in statistics),
        retracted=sum(each.retracted for each in statistics),
        bytes=sum(each.bytes for each in statistics),
    )

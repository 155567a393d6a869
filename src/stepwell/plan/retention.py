"""Retention: which epochs can still be read, and which files nobody can need any more."""

from __future__ import annotations

from collections.abc import Iterable

from stepwell.model.epochs import Epoch, EpochRecord, EpochState
from stepwell.model.files import DataFile


def oldest_kept(epochs: Iterable[EpochRecord], pins: Iterable[Epoch], now: int, retention: int) -> Epoch | None:
    """The oldest epoch that must stay readable: the newest at the edge of the retention, or a pinned one before it."""
    readable = sorted((each for each in epochs if each.state == EpochState.READABLE), key=lambda each: each.epoch)
    if not readable:
        return None
    before = [each for each in readable if (each.readable_at or 0) <= now - retention]
    edge = before[-1].epoch if before else readable[0].epoch
    return min([edge, *pins])


def removable(
    files: Iterable[tuple[DataFile, int | None]], oldest: Epoch, now: int, *, lazy_readers: int
) -> list[DataFile]:
    """The files that can go: neither content nor changelog of an epoch kept, and long out of use.

    Each comes with the moment it ended, None while it is in use; `lazy_readers`, in microseconds, is how
    long ago that must be.
    """
    gone = []
    for file, ended_at in files:
        if ended_at is None or now - ended_at < lazy_readers:
            continue
        is_content = file.until_epoch is None or file.until_epoch > max(oldest, file.from_epoch)
        is_changelog = file.logged and file.last_epoch > oldest
        if not is_content and not is_changelog:
            gone.append(file)
    return gone

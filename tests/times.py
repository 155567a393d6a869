"""What event time means, in plain Python: a model to hold views against that emit by the watermark and keep late rows.

Nothing here is incremental. Of every change it is said whether it counts; a level is then computed anew from the rows
that do, and shows of that what its EMIT clause lets it show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

SECOND = 1_000_000
NEVER = -(2**63)

Content = dict[Hashable, tuple[Any, ...]]
"""Rows by their identity."""
Window = tuple[int, int]


@dataclass
class Level:
    """A view: the windows of a row, how rows become bars, which of them it shows, and how late a row may come."""

    windows: Callable[[tuple[Any, ...]], list[Window]]
    bars: Callable[[dict[tuple[Hashable, int], tuple[Any, ...]]], dict[Hashable, tuple[tuple[Any, ...], int]]]
    """The rows that count, by identity and window, to bars, each with the end of its window."""
    opens: Callable[[int], int]
    """The time of the first bar that is still open, given the watermark of what is read."""
    after_watermark: bool = False
    lateness: int | None = None
    needs: Callable[[tuple[Any, ...]], tuple[Any, ...]] = lambda row: row
    """What it reads of a row: a change of anything else is none."""
    counted: dict[tuple[Hashable, int], tuple[Any, ...]] = field(default_factory=dict)
    ledger: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    shown: Content = field(default_factory=dict)
    incoming: int = NEVER
    mark: int = NEVER
    corrected: int = 0

    def follow(self, before: Content, after: Content, incoming: int) -> tuple[Content, Content]:
        """What it shows before and after its parent has changed, and the watermark with it."""
        tolerance = 0 if self.after_watermark and self.lateness is None else self.lateness
        for sign, identity, row in changes(before, after, self.needs):
            for start, end in self.windows(row):
                if tolerance is not None and self.incoming != NEVER and end + tolerance <= self.incoming:
                    self.ledger[(*row, sign)] += 1
                elif sign > 0:
                    self.counted[identity, start] = row
                else:
                    del self.counted[identity, start]
        self.incoming = incoming
        self.mark = NEVER if incoming == NEVER else max(self.mark, self.opens(incoming))
        was = self.shown
        closed = incoming if self.after_watermark else 2**63
        self.shown = {key: row for key, (row, end) in self.bars(self.counted).items() if end <= closed}
        self.corrected += sum(key in self.shown and self.shown[key] != row for key, row in was.items())
        return was, self.shown


def changes(
    before: Content, after: Content, needs: Callable[[tuple[Any, ...]], tuple[Any, ...]]
) -> Iterable[tuple[int, Hashable, tuple[Any, ...]]]:
    for identity in {**before, **after}:
        old, new = before.get(identity), after.get(identity)
        if (old and needs(old)) != (new and needs(new)):
            if identity in before:
                yield -1, identity, before[identity]
            if identity in after:
                yield 1, identity, after[identity]


def tumbling(time: int, size: int) -> Callable[[tuple[Any, ...]], list[Window]]:
    return hopping(time, size, size)


def hopping(time: int, every: int, size: int) -> Callable[[tuple[Any, ...]], list[Window]]:
    """The windows of a row whose time is its column `time`; none if it has no time."""

    def windows(row: tuple[Any, ...]) -> list[Window]:
        if row[time] is None:
            return []
        last = row[time] // every * every
        return [(start, start + size) for start in range(last, row[time] - size, -every)]

    return windows


def first_open(every: int, size: int) -> Callable[[int], int]:
    def opens(incoming: int) -> int:
        start = incoming // every * every
        while start + size > incoming:
            start -= every
        return start + every

    return opens


def grouped(
    key: Callable[[tuple[Any, ...]], Hashable],
    order: Callable[[Hashable, tuple[Any, ...]], Any],
    make: Callable[[Any, int, list[tuple[Any, ...]]], tuple[Any, ...]],
    size: int,
) -> Callable[[dict[tuple[Hashable, int], tuple[Any, ...]]], dict[Hashable, tuple[tuple[Any, ...], int]]]:
    """Bars by key and window: `make` gets the key, the start, and the rows in their order."""

    def bars(counted: dict[tuple[Hashable, int], tuple[Any, ...]]) -> dict[Hashable, tuple[tuple[Any, ...], int]]:
        groups: dict[tuple[Hashable, int], list[tuple[Any, tuple[Any, ...]]]] = {}
        for (identity, start), row in counted.items():
            groups.setdefault((key(row), start), []).append((order(identity, row), row))
        return {
            (name, start): (make(name, start, [row for _, row in sorted(rows)]), start + size)
            for (name, start), rows in groups.items()
        }

    return bars


def sessions(
    gap: int,
) -> Callable[[dict[tuple[Hashable, int], tuple[Any, ...]]], dict[Hashable, tuple[tuple[Any, ...], int]]]:
    """Sessions of trades by symbol: (symbol, start, end, how many). A row at the very end still belongs to one."""

    def bars(counted: dict[tuple[Hashable, int], tuple[Any, ...]]) -> dict[Hashable, tuple[tuple[Any, ...], int]]:
        found: dict[Hashable, tuple[tuple[Any, ...], int]] = {}
        for symbol in {row[1] for row in counted.values()}:
            times = sorted(row[4] for row in counted.values() if row[1] == symbol)
            start, last, n = times[0], times[0], 0
            for time in times:
                if time > last + gap:
                    found[symbol, start] = ((symbol, start, last + gap, n), last + gap + 1)
                    start, n = time, 0
                last, n = time, n + 1
            found[symbol, start] = ((symbol, start, last + gap, n), last + gap + 1)
        return found

    return bars

"""What a report shows, as plain values: bars by level and symbol, relations with their parents, epochs, notes.

Texts are shown as they are: whoever makes a report has put instants and durations into words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite


@dataclass(frozen=True, slots=True)
class Bar:
    """What was traded in one stretch of time, which begins `time` seconds after 1970 in UTC.

    `corrected` says that a late row has changed the bar after it had first been shown.
    """

    time: int
    open: float
    high: float
    low: float
    close: float
    volume: float
    corrected: bool

    def __post_init__(self) -> None:
        if not all(isfinite(number) for number in (self.open, self.high, self.low, self.close, self.volume)):
            raise ValueError(f"a bar must consist of finite numbers: {self}")


@dataclass(frozen=True, slots=True)
class Level:
    """One width of bars, such as minutes: for every symbol its bars in order of time, no two at the same time.

    Bars that belong to no symbol stand under "".
    """

    name: str
    label: str
    bars: Mapping[str, tuple[Bar, ...]]

    def __post_init__(self) -> None:
        for symbol, bars in self.bars.items():
            for earlier, later in pairwise(bars):
                if earlier.time >= later.time:
                    raise ValueError(
                        f'bars of "{symbol}" in level "{self.name}" are out of order: '
                        f"{later.time} follows {earlier.time}"
                    )


@dataclass(frozen=True, slots=True)
class ReportNode:
    """A relation in the graph, how it fares, and the names of its parents; what it does not have is None."""

    name: str
    kind: str
    state: str | None
    time_column: str | None
    watermark: str | None
    lag: str | None
    rows: int | None
    rules: tuple[str, ...]
    parents: tuple[str, ...]
    behind: int | None = None
    """How many epochs its Delta table is behind."""
    query: str | None = None
    """The text of a view."""
    columns: tuple[tuple[str, str], ...] = ()
    """Names and types."""
    first_rows: tuple[tuple[str, ...], ...] = ()
    """A few rows, each value as a text."""
    refreshes: tuple[tuple[int, float, int], ...] = ()
    """Of its last epochs: the number, milliseconds of its own work, and rows that came in."""
    late_rows: int | None = None
    """Rows that came too late for it, where rows can."""
    lineage: tuple[str, ...] = ()
    """Every way from one of its columns down to that of a table."""


@dataclass(frozen=True, slots=True)
class ReportEpoch:
    """What one epoch did: rows that its writes brought and took away, Spark's jobs for `views` views, and its time.

    The milliseconds are those of the clock, from its close until it could be read.
    """

    number: int
    readable_at: str
    inserted: int
    retracted: int
    jobs: int
    milliseconds: float
    views: int


@dataclass(frozen=True, slots=True)
class Report:
    """A warehouse as of `epoch`. Nodes have names of their own and make no cycle; they may come in any order."""

    title: str
    made_at: str
    warehouse: str
    epoch: int
    levels: tuple[Level, ...]
    nodes: tuple[ReportNode, ...]
    epochs: tuple[ReportEpoch, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen:
                raise ValueError(f'the graph has two nodes named "{node.name}"')
            seen.add(node.name)

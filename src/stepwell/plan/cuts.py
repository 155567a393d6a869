"""Cuts: how much of each source a change can meet.

A change of a few rows meets a few rows of what it is joined with: those with the same keys. Once a source is known by
its few rows, the sources tied to it can be cut to the keys of these, one after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from stepwell.plan.blocks import Join, Origin, Rows, Select, UnionAll
from stepwell.plan.render import Mode, Term, terms_of
from stepwell.plan.ties import leads

KEYS = -1
"""Stands for the touched keys of a group or a partition, where a source is expected."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Read of `source` only the rows whose `columns` are among the values of `by`, columns of one other source."""

    source: int
    columns: tuple[str, ...]
    by: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """Columns of a relation behind a source, and the SELECT that names them."""

    relation: int
    columns: tuple[str, ...]
    within: Select


FEW, MANY = 0.2, 200_000
"""A change of more than this share of a source, or of more rows than these, is not known by a few keys."""


@dataclass(frozen=True, slots=True)
class Change:
    """How much of an input an epoch changes: rows of the change, retractions among them, rows the input has."""

    rows: int
    retracted: int
    total: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many bytes there are of each relation, what has changed of those that have, and what is much."""

    bytes: Mapping[int, int]
    changes: Mapping[int, Change]
    large: int


def large_sources(select: Select, term: Term, sizes: Sizes) -> list[int]:
    """The sources that a term reads and that hold much."""
    return [
        index
        for index, state in enumerate(term.states)
        if state != Mode.DELTA
        and (relation := relation_of(select, index)) is not None
        and sizes.bytes[relation] > sizes.large
    ]


def worthwhile(select: Select, term: Term, sizes: Sizes) -> list[Cut]:
    """The cuts of a term that begins with a small part of something, and would read much."""
    start = term.touched_by if term.touched_by is not None else term.states.index(Mode.DELTA)
    relation = relation_of(select, start)
    if relation is None:
        return []
    change = sizes.changes[relation]
    large = large_sources(select, term, sizes)
    few = max(1000, min(MANY, FEW * change.total))
    return cuts_of(select, term, large) if large and change.rows <= few else []


def reached(select: Select, index: int, columns: tuple[str, ...]) -> Reach | None:
    """Where columns of a source are stored: in a relation, which may be read by a filter of its own."""
    source = select.sources[index].input
    if isinstance(source, int):
        return Reach(source, columns, select)
    if not isinstance(source, Select) or len(source.sources) != 1 or source.generates or not source.origins:
        return None
    inner = {name.lower(): origin for name, origin in zip(source.names, source.origins, strict=True)}
    origins = [origin for column in columns if (origin := inner.get(column.lower())) is not None]
    relation = source.sources[0].input
    if len(origins) < len(columns) or not isinstance(relation, int):
        return None
    return Reach(relation, tuple(origin.column for origin in origins), source)


def relation_of(select: Select, index: int) -> int | None:
    """The one relation behind a source, if there is just one."""
    source = select.sources[index].input
    if isinstance(source, Select) and len(source.sources) == 1 and not source.generates:
        source = source.sources[0].input
    return source if isinstance(source, int) else None


def filter_of(select: Select, index: int) -> str | None:
    """What every row of the relation behind a source fulfils that counts, if there is such a condition."""
    source = select.sources[index].input
    if isinstance(source, Select):
        return filter_of(source, 0)
    return " AND ".join(f"({each.condition})" for each in select.filters if each.source == index) or None


def cuts_of(select: Select, term: Term, large: Collection[int], keys: Mapping[str, Origin] | None = None) -> list[Cut]:
    """The cuts of the `large` sources for one term, each after those it goes by; `keys` are touched keys by column.

    A source that is not large is cut where a large one is reached through it.
    """
    everything = _cuts(select, term, large, keys)
    needed = set(large)
    found: list[Cut] = []
    for cut in reversed(everything):
        if cut.source in needed:
            needed.add(cut.by[0].source)
            found.append(cut)
    return found[::-1]


def _cuts(select: Select, term: Term, large: Collection[int], keys: Mapping[str, Origin] | None) -> list[Cut]:
    sources = select.sources
    if any(source.join in (Join.RIGHT, Join.FULL) for source in sources):
        return []
    found: list[Cut] = []
    cut: set[int] = set()
    if term.touched_by is not None:  # the rows on the left that meet the change of a partner
        for tie in select.ties:
            for own, other in ((tie.left, tie.right), (tie.right, tie.left)):
                if tie.within == term.touched_by == other.source and own.source not in cut:
                    found.append(Cut(own.source, (own.column,), (other,)))
                    cut.add(own.source)
    for column, origin in (keys or {}).items():
        if origin.source not in cut:
            found.append(Cut(origin.source, (origin.column,), (Origin(KEYS, column),)))
            cut.add(origin.source)
    known = {index for index, state in enumerate(term.states) if state == Mode.DELTA} | cut
    while True:
        steps = list(_next(select, known))
        step = next((each for each in steps if each.source in large), steps[0] if steps else None)
        if step is None:
            return found
        found.append(step)
        known.add(step.source)


def _next(select: Select, known: AbstractSet[int]) -> Iterator[Cut]:
    """The cuts that can come next, each by all columns that tie it to the same source."""
    ties: dict[tuple[int, int], list[tuple[Origin, Origin]]] = {}
    for tie in select.ties:
        for own, other in ((tie.left, tie.right), (tie.right, tie.left)):
            if (
                own.source in known
                and other.source not in known
                and leads(tie, select.sources, own.source, other.source)
            ):
                ties.setdefault((own.source, other.source), []).append((own, other))
    for (_, source), pairs in ties.items():
        yield Cut(source, tuple(other.column for _, other in pairs), tuple(own for own, _ in pairs))


def changed_terms(rows: Rows, changed: AbstractSet[int]) -> Iterator[tuple[Select, Term]]:
    """Every term of the change of some rows, those of the rows inside them included."""
    match rows:
        case UnionAll(branches):
            for branch in branches:
                yield from changed_terms(branch, changed)
        case Select():
            for term in terms_of(rows, changed):
                yield rows, term
                for source, state in zip(rows.sources, term.states, strict=True):
                    if state == Mode.DELTA and not isinstance(source.input, int):
                        yield from changed_terms(source.input, changed)

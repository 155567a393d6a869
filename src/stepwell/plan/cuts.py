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


def cuts_of(select: Select, term: Term, large: Collection[int], keys: Mapping[str, Origin] | None = None) -> list[Cut]:
    """The cuts of the `large` sources for one term, each after those it goes by; `keys` are touched keys by column."""
    sources = select.sources
    if any(source.join in (Join.RIGHT, Join.FULL) for source in sources):
        return []
    found: list[Cut] = []
    cut: set[int] = set()
    if term.touched_by is not None:  # the rows on the left that meet the change of a partner
        for tie in select.ties:
            for own, other in ((tie.left, tie.right), (tie.right, tie.left)):
                if tie.within == term.touched_by == other.source and own.source in large and own.source not in cut:
                    found.append(Cut(own.source, (own.column,), (other,)))
                    cut.add(own.source)
    for column, origin in (keys or {}).items():
        if origin.source in large and origin.source not in cut:
            found.append(Cut(origin.source, (origin.column,), (Origin(KEYS, column),)))
            cut.add(origin.source)
    known = {index for index, state in enumerate(term.states) if state == Mode.DELTA} | cut
    while True:
        step = next(_next(select, known, large), None)
        if step is None:
            return found
        found.append(step)
        known.add(step.source)


def _next(select: Select, known: AbstractSet[int], large: Collection[int]) -> Iterator[Cut]:
    """The cuts that can come next, each by all columns that tie it to the same source."""
    ties: dict[tuple[int, int], list[tuple[Origin, Origin]]] = {}
    for tie in select.ties:
        for own, other in ((tie.left, tie.right), (tie.right, tie.left)):
            if (
                own.source in known
                and other.source not in known
                and other.source in large
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

"""Cutting: the sources of a change, read only where it can meet them.

A cut is a job that reads one relation as it is, and keeps the rows with the keys that are asked for, within the bounds
of these keys. They are few, so they come to the driver and go back as a table whose size Spark knows: what follows is
joins of small things. A relation is read once, whatever wants a part of it; as it was before the epoch, it is that less
what came and with what went.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from stepwell.engine.failures import is_too_large
from stepwell.engine.maintain.keys import Keys, Ranges, ranges_of, united
from stepwell.engine.maintain.workspace import Workspace
from stepwell.engine.session import Pace
from stepwell.model.files import DIFF, ROW_ID
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import RelationId
from stepwell.plan.blocks import Origin, Rows, Select
from stepwell.plan.cuts import (
    KEYS,
    Cut,
    Reach,
    Sizes,
    changed_terms,
    cuts_of,
    filter_of,
    large_sources,
    reached,
    worthwhile,
)
from stepwell.plan.render import Cuts, Mode, Term, view_name
from stepwell.storage import column_range

LARGE = 6 * 2**20
"""A source of fewer bytes than this is read as a whole: Spark sends it around anyway."""


def sizes_of(workspace: Workspace, view: Relation) -> Sizes:
    """How much there is of what a view reads."""
    inputs = {RelationId(each.relation) for each in view.view.inputs}
    there: dict[int, int] = {id_: workspace.after(id_).bytes for id_ in inputs}
    return Sizes(there, {id_: workspace.change(id_) for id_ in inputs if workspace.delta(id_)}, LARGE)


@dataclass(frozen=True, slots=True)
class Known:
    """Rows that are at hand as a view, and where the values of a column lie if that is known."""

    view: str
    ranges_of: Callable[[str], Ranges | None]
    names: Mapping[str, str] = field(default_factory=dict)
    """Columns that the view has under other names."""

    def named(self, column: str) -> str:
        return self.names.get(column, column)


@dataclass(frozen=True, slots=True)
class Wish:
    """A cut that a term asks for: of the source of a SELECT, by rows that may have to be cut first."""

    select: Select
    term: Term
    cut: Cut
    reach: Reach

    @property
    def relation(self) -> int:
        return self.reach.relation


Spot = tuple[Select, Term, int]
"""A source of a SELECT, in one of the terms of its change."""


class Cutter:
    """The cuts of one refresh of one view."""

    def __init__(self, workspace: Workspace, view: Relation, changed: frozenset[RelationId]) -> None:
        self._workspace = workspace
        self._view = view
        self._changed = changed
        self._sizes = sizes_of(workspace, view)
        self._number = 0
        self.cuts: Cuts = {}

    def cut_change(self, rows: Rows) -> None:
        """What the change of some rows has to read."""
        wishes: list[Wish] = []
        for select, term in changed_terms(rows, self._changed):
            wishes += _wishes(select, term, worthwhile(select, term, self._sizes))
        self._fulfil(wishes, {})

    def cut_rows(
        self, rows: Rows, modes: Sequence[Mode], keys: str, batch: pa.Table, columns: Mapping[str, Origin]
    ) -> None:
        """What the rows with touched keys have to read; `keys` is the view of the `batch` that has the keys."""
        if not isinstance(rows, Select) or not columns:
            return
        terms = [Term((mode,) * len(rows.sources)) for mode in modes]
        wishes = [
            wish
            for term in terms
            for wish in _wishes(rows, term, cuts_of(rows, term, large_sources(rows, term, self._sizes), columns))
        ]
        self._fulfil(wishes, {(rows, term, KEYS): Known(keys, partial(ranges_of, batch)) for term in terms})

    def _fulfil(self, wishes: list[Wish], known: dict[Spot, Known]) -> None:
        """Cut relation after relation; one that others wait for goes first, and one that still waits goes late."""
        while wishes:
            ready: dict[tuple[int, tuple[str, ...]], list[tuple[Wish, Known]]] = {}
            waiting = set()
            for wish in wishes:
                if (by := self._by(wish, known)) is not None:
                    ready.setdefault((wish.relation, wish.reach.columns), []).append((wish, by))
                else:
                    waiting.add(wish.relation)
            if not ready:
                return
            chosen = next((pairs for (relation, _), pairs in ready.items() if relation not in waiting), None)
            pairs = chosen or next(iter(ready.values()))
            done = [wish for wish, _ in pairs]
            wishes = [wish for wish in wishes if wish not in done]
            if (made := self._run(pairs)) is not None:
                self._use(done, made, known)

    def _use(self, wishes: Sequence[Wish], made: Known, known: dict[Spot, Known]) -> None:
        """Let the terms read what was cut for them, and others be cut by it."""
        for wish in wishes:
            spot = (wish.select, wish.term, wish.cut.source)
            before = wish.term.states[wish.cut.source] == Mode.BEFORE and wish.relation in self._changed
            there = self._before(wish, made) if before else made
            known[spot] = dataclasses.replace(there, names=_shown(wish))
            self.cuts[spot] = there.view

    def _by(self, wish: Wish, known: Mapping[Spot, Known]) -> Known | None:
        """The rows whose keys a cut goes by, if they are at hand."""
        by, term = wish.cut.by[0].source, wish.term
        if (found := known.get((wish.select, term, by))) is not None:
            return found
        if by == KEYS or not (term.states[by] == Mode.DELTA or by == term.touched_by):
            return None
        columns = tuple(each.column for each in wish.cut.by)
        reach = reached(wish.select, by, columns)
        if reach is None:
            return None
        names = dict(zip(columns, reach.columns, strict=True))
        view, condition = view_name(reach.relation, Mode.DELTA), filter_of(wish.select, by)
        view = f"(SELECT * FROM {view} WHERE {condition})" if condition else view
        return Known(view, self._ranges_of_change(RelationId(reach.relation)), names)

    def _ranges_of_change(self, relation: RelationId) -> Callable[[str], Ranges | None]:
        """Where the values of the columns of a change lie."""
        small = self._workspace.small_delta(relation)
        if small is not None:
            return partial(ranges_of, small)
        warehouse, files = self._workspace.runtime.warehouse, self._workspace.delta(relation)
        return lambda column: (found,) if (found := column_range(warehouse, files, column)) else None

    def _run(self, pairs: Sequence[tuple[Wish, Known]]) -> Known | None:
        """The rows of a relation with the wanted keys, as it is after the epoch; None if they are many."""
        wishes = [wish for wish, _ in pairs]
        relation, columns = wishes[0].relation, wishes[0].reach.columns
        inputs = next(each.columns for each in self._view.view.inputs if each.relation == relation)
        used = [name for name in inputs if any(_names(wish.reach.within, name) for wish in wishes)]
        keys = tuple(f"_sw_key{index}" for index in range(len(columns)))
        texts, ranges = [], []
        for wish, by in pairs:
            names = [by.named(each.column) for each in wish.cut.by]
            items = [f"{quote(name)} AS {key}" for name, key in zip(names, keys, strict=True)]
            texts.append(f"SELECT {', '.join(items)} FROM {by.view}")
            ranges.append(by.ranges_of(names[0]))
        wanted = Keys(
            self._workspace.run(" UNION ALL ".join(dict.fromkeys(texts)), self._view, pace=Pace.SOME),
            keys,
            columns,
            united(ranges),
            nulls=any(wish.cut.by[0].source == KEYS for wish in wishes),
            condition=_any([filter_of(wish.select, wish.cut.source) for wish in wishes]),
        )
        try:
            batch = self._workspace.part(RelationId(relation), used, wanted).toArrow()
        except (PySparkException, Py4JJavaError) as error:
            if not is_too_large(error):
                raise
            return None
        self._number += 1
        name = f"_sw_cut{self._number}"
        self._workspace.offer(name, batch)
        return Known(name, partial(ranges_of, batch))

    def _before(self, wish: Wish, made: Known) -> Known:
        """The same rows as they were: a row has one version at a time, so those in the change were as it says."""
        relation = wish.relation
        delta, ranges = view_name(relation, Mode.DELTA), self._ranges_of_change(RelationId(relation))
        inputs = next(each.columns for each in self._view.view.inputs if each.relation == relation)
        names = ", ".join(quote(name) for name in [*(n for n in inputs if _names(wish.reach.within, n)), ROW_ID])
        text = (
            f"SELECT {names} FROM {made.view} AS a LEFT ANTI JOIN {delta} AS d ON a.{ROW_ID} = d.{ROW_ID}"
            f" UNION ALL SELECT {names} FROM {delta} WHERE {DIFF} < 0"
        )
        view = f"{made.view}_b{self._number}"
        self._number += 1
        F.broadcast(self._workspace.run(text, self._view, pace=Pace.SOME)).createOrReplaceTempView(view)
        return Known(view, lambda name: united([made.ranges_of(name), ranges(name)]))


def _wishes(select: Select, term: Term, cuts: Sequence[Cut]) -> list[Wish]:
    found = []
    for cut in cuts:
        reach = reached(select, cut.source, cut.columns)
        if reach is not None:
            found.append(Wish(select, term, cut, reach))
    return found


def _any(conditions: Sequence[str | None]) -> str | None:
    """That one of these holds, if each is one."""
    found = dict.fromkeys(each for each in conditions if each)
    return " OR ".join(f"({each})" for each in found) if all(conditions) else None


def _shown(wish: Wish) -> dict[str, str]:
    """The columns of a source that the relation behind it has under other names."""
    within = wish.reach.within
    if within is wish.select:
        return {}
    pairs = zip(within.names, within.origins, strict=True)
    return {name: origin.column for name, origin in pairs if origin is not None}


def _names(select: Select, column: str) -> bool:
    """Whether a SELECT names a column anywhere, as far as words tell."""
    texts = (*select.items, select.where or "", select.laterals, *(source.condition for source in select.sources))
    return not column.isidentifier() or any(re.search(rf"\b{column}\b", text, re.IGNORECASE) for text in texts)

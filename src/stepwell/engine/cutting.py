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

from stepwell.engine.failures import is_too_large
from stepwell.engine.keys import Keys, Value, range_of, united
from stepwell.engine.session import Pace
from stepwell.engine.workspace import Workspace
from stepwell.files import DIFF, ROW_ID
from stepwell.plan.blocks import Origin, Rows, Select
from stepwell.plan.cuts import KEYS, Cut, Reach, changed_terms, cuts_of, reached, relation_of
from stepwell.plan.render import Cuts, Mode, Term, view_name
from stepwell.relations import Relation
from stepwell.storage import column_range
from stepwell.types import quote
from stepwell.views import RelationId

LARGE = 6 * 2**20
"""A source of fewer bytes than this is read as a whole: Spark sends it around anyway."""

FEW = 0.2
"""A change of more than this share of a source is not known by a few keys."""


@dataclass(frozen=True, slots=True)
class Known:
    """Rows that are at hand as a view, and the least and greatest value of a column where that is known."""

    view: str
    range_of: Callable[[str], tuple[Value, Value] | None]
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


class Cutter:
    """The cuts of one refresh of one view."""

    def __init__(self, workspace: Workspace, view: Relation, changed: frozenset[RelationId]) -> None:
        self._workspace = workspace
        self._view = view
        self._changed = changed
        self._number = 0
        self.cuts: Cuts = {}

    def cut_change(self, rows: Rows) -> None:
        """What the change of some rows has to read."""
        wishes: list[Wish] = []
        for select, term in changed_terms(rows, self._changed):
            large = self._large(select, term)
            if large and self._is_small(select, term):
                wishes += _wishes(select, term, cuts_of(select, term, large))
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
            for wish in _wishes(rows, term, cuts_of(rows, term, self._large(rows, term), columns))
        ]
        self._fulfil(wishes, {(rows, term, KEYS): Known(keys, partial(range_of, batch)) for term in terms})

    def _fulfil(self, wishes: list[Wish], known: dict[tuple[Select, Term, int], Known]) -> None:
        """Cut relation after relation; one that others wait for goes first, and one that still waits goes late."""
        while wishes:
            ready = [wish for wish in wishes if self._by(wish, known) is not None]
            waiting = {wish.relation for wish in wishes if wish not in ready}
            chosen = next((wish for wish in ready if wish.relation not in waiting), ready[0] if ready else None)
            if chosen is None:
                return
            where = (chosen.relation, chosen.reach.columns)
            same = [wish for wish in ready if (wish.relation, wish.reach.columns) == where]
            made = self._run(same, [by for wish in same if (by := self._by(wish, known)) is not None])
            wishes = [wish for wish in wishes if wish not in same]
            if made is None:
                continue
            for wish in same:
                spot = (wish.select, wish.term, wish.cut.source)
                before = wish.term.states[wish.cut.source] == Mode.BEFORE
                known[spot] = dataclasses.replace(made, names=_shown(wish))
                self.cuts[spot] = self._before(wish, made) if before else made.view

    def _by(self, wish: Wish, known: Mapping[tuple[Select, Term, int], Known]) -> Known | None:
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
        files = self._workspace.delta(RelationId(reach.relation))
        names = dict(zip(columns, reach.columns, strict=True))
        range_of = partial(column_range, self._workspace.runtime.warehouse, files)
        return Known(view_name(reach.relation, Mode.DELTA), range_of, names)

    def _run(self, wishes: Sequence[Wish], by: Sequence[Known]) -> Known | None:
        """The rows of a relation with the wanted keys, as it is after the epoch; None if they are many."""
        first = wishes[0]
        relation = first.relation
        inputs = next(each.columns for each in self._view.view.inputs if each.relation == relation)
        used = [name for name in inputs if any(_names(wish.reach.within, name) for wish in wishes)]
        named = [
            tuple(known.named(each.column) for each in wish.cut.by) for wish, known in zip(wishes, by, strict=True)
        ]
        keys = tuple(f"_sw_key{index}" for index in range(len(first.reach.columns)))
        texts = [
            f"SELECT {', '.join(f'{quote(name)} AS {key}' for name, key in zip(names, keys, strict=True))}"
            f" FROM {known.view}"
            for known, names in zip(by, named, strict=True)
        ]
        wanted = Keys(
            self._workspace.run(" UNION ALL ".join(dict.fromkeys(texts)), self._view, pace=Pace.SOME),
            keys,
            first.reach.columns,
            united([known.range_of(names[0]) for known, names in zip(by, named, strict=True)]),
            nulls=any(wish.cut.by[0].source == KEYS for wish in wishes),
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
        return Known(name, partial(range_of, batch))

    def _before(self, wish: Wish, made: Known) -> str:
        """The same rows as they were: a row has one version at a time, so those in the change were as it says."""
        relation = wish.relation
        if relation not in self._changed:
            return made.view
        delta = view_name(relation, Mode.DELTA)
        inputs = next(each.columns for each in self._view.view.inputs if each.relation == relation)
        names = ", ".join(quote(name) for name in [*(n for n in inputs if _names(wish.reach.within, n)), ROW_ID])
        return (
            f"(SELECT {names} FROM {made.view} AS a LEFT ANTI JOIN {delta} AS d ON a.{ROW_ID} = d.{ROW_ID}"
            f" UNION ALL SELECT {names} FROM {delta} WHERE {DIFF} < 0)"
        )

    def _large(self, select: Select, term: Term) -> list[int]:
        """The sources that a term reads and that hold much."""
        return [
            index
            for index, state in enumerate(term.states)
            if state != Mode.DELTA
            and (relation := relation_of(select, index)) is not None
            and self._workspace.before(RelationId(relation)).bytes > LARGE
        ]

    def _is_small(self, select: Select, term: Term) -> bool:
        """Whether the change that a term begins with is a small part of anything."""
        start = term.touched_by if term.touched_by is not None else term.states.index(Mode.DELTA)
        relation = relation_of(select, start)
        if relation is None:
            return False
        change = self._workspace.change(RelationId(relation))
        return change.rows <= max(1000, FEW * change.total)


def _wishes(select: Select, term: Term, cuts: Sequence[Cut]) -> list[Wish]:
    found = []
    for cut in cuts:
        reach = reached(select, cut.source, cut.columns)
        if reach is not None:
            found.append(Wish(select, term, cut, reach))
    return found


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

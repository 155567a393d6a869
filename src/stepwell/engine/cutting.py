"""Cutting: the sources of a change, read only where it can meet them.

Each cut is a job that reads one source and keeps the rows with the keys that are asked for. They are few, so they come
to the driver and go back as a table whose size Spark knows: what follows is joins of small things.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from stepwell.engine.failures import is_too_large
from stepwell.engine.workspace import Workspace
from stepwell.files import ROW_ID
from stepwell.plan.blocks import Origin, Rows, Select
from stepwell.plan.cuts import KEYS, Cut, changed_terms, cuts_of
from stepwell.plan.render import Cuts, Mode, Term, view_name
from stepwell.relations import Relation
from stepwell.types import quote
from stepwell.views import RelationId

LARGE = 24 * 2**20
"""A source of fewer bytes than this is read as a whole: Spark sends it around anyway."""

FEW = 0.2
"""A change of more than this share of a source is not known by a few keys."""


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
        for select, term in changed_terms(rows, self._changed):
            self._cut(select, term, {}, None)

    def cut_rows(self, rows: Rows, mode: Mode, keys: str, columns: Mapping[str, Origin]) -> None:
        """What the rows with touched keys have to read; `keys` is the view that has the keys."""
        if isinstance(rows, Select) and columns:
            self._cut(rows, Term((mode,) * len(rows.sources)), columns, keys)

    def _cut(self, select: Select, term: Term, columns: Mapping[str, Origin], keys: str | None) -> None:
        large = [index for index in range(len(select.sources)) if self._is_large(select, term, index)]
        if not large or (keys is None and not self._is_small(select, term)):
            return
        names: dict[int, str] = {
            index: view_name(source.input, Mode.DELTA)
            for index, source in enumerate(select.sources)
            if isinstance(source.input, int) and (term.states[index] == Mode.DELTA or index == term.touched_by)
        }
        if keys is not None:
            names[KEYS] = keys
        for cut in cuts_of(select, term, large, columns):
            if cut.by.source not in names:
                continue
            name = self._run(select, term.states[cut.source], cut, names[cut.by.source])
            if name is not None:
                names[cut.source] = name
                self.cuts[(select, term, cut.source)] = name

    def _run(self, select: Select, state: Mode, cut: Cut, by: str) -> str | None:
        """The rows of a source with the wanted keys, as a view of their own; None if they are many."""
        relation = select.sources[cut.source].input
        assert isinstance(relation, int)
        names = next(each.columns for each in self._view.view.inputs if each.relation == relation)
        kept = ", ".join(f"r.{quote(name)}" for name in [*_used(select, names), ROW_ID])
        text = (
            f"SELECT /*+ BROADCAST(k) */ {kept} FROM {view_name(relation, state)} AS r LEFT SEMI JOIN"
            f" (SELECT {quote(cut.by.column)} AS _sw_k FROM {by}) AS k ON r.{quote(cut.column)} <=> k._sw_k"
        )
        try:
            batch = self._workspace.run(text, self._view).toArrow()
        except (PySparkException, Py4JJavaError) as error:
            if not is_too_large(error):
                raise
            return None
        self._number += 1
        name = f"_sw_cut{self._number}"
        self._workspace.session.createDataFrame(batch).createOrReplaceTempView(name)
        return name

    def _is_large(self, select: Select, term: Term, index: int) -> bool:
        relation = select.sources[index].input
        if not isinstance(relation, int) or term.states[index] == Mode.DELTA:
            return False
        return self._workspace.before(RelationId(relation)).bytes > LARGE

    def _is_small(self, select: Select, term: Term) -> bool:
        """Whether the change that a term begins with is a small part of anything."""
        start = term.touched_by if term.touched_by is not None else term.states.index(Mode.DELTA)
        relation = select.sources[start].input
        if not isinstance(relation, int):
            return False
        change = self._workspace.change(RelationId(relation))
        return change.rows <= max(1000, FEW * change.total)


def _used(select: Select, names: tuple[str, ...]) -> list[str]:
    """The columns that a SELECT names anywhere, at least."""
    texts = [*select.items, select.where or "", select.laterals, *(source.condition for source in select.sources)]
    words = {word.lower() for text in texts for word in re.findall(r"\w+", text)}
    return [name for name in names if name.lower() in words or not name.isidentifier()]

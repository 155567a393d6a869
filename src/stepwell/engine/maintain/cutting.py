"""Cutting: the relations of a change, read only where it can meet them.

A look is a job that reads one relation and keeps the rows with the keys that are asked for, within the bounds of these
keys. They are few, so they come to the driver and go back as a table whose size Spark knows: what follows is joins of
small things. A relation is read as it is after the epoch; as it was before, it is that less what came and with what
went.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from stepwell.algebra.expressions import Attribute
from stepwell.algebra.nodes import Moment
from stepwell.algebra.printing import name_of, print_tree, scan_name
from stepwell.engine.failures import is_too_large
from stepwell.engine.maintain.keys import Keys, Ranges, ranges_of, united
from stepwell.engine.maintain.workspace import Reads, Workspace
from stepwell.engine.session import Pace
from stepwell.model.files import DIFF, ROW_ID
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import RelationId
from stepwell.plan.cuts import Change, Look, Sizes, origin_of
from stepwell.storage import column_range


def sizes_of(workspace: Workspace, view: Relation) -> Sizes:
    """How much there is of what a view reads."""
    inputs = {RelationId(each.relation) for each in view.view.inputs}
    there: dict[int, int] = {id_: workspace.after(id_).bytes for id_ in inputs}
    changes: dict[int, Change] = {id_: workspace.change(id_) for id_ in inputs if workspace.delta(id_)}
    return Sizes(there, changes, workspace.runtime.limits)


class Cutter:
    """The looks of one refresh of one view."""

    def __init__(self, workspace: Workspace, view: Relation, changed: frozenset[RelationId]) -> None:
        self._workspace = workspace
        self._view = view
        self._changed = changed
        self._limits = workspace.runtime.limits
        self.sizes = sizes_of(workspace, view)
        self.taken = 0
        self._batches: dict[str, pa.Table] = {}

    def remember(self, name: str, batch: pa.Table) -> None:
        """Know a small table that later looks go by."""
        self._batches[name] = batch

    def look(self, look: Look) -> None:
        """Read what a look asks for, so that it is there under its name."""
        self.taken += 1
        names = tuple(name_of(each) for each in look.keys.output)
        text = f"SELECT DISTINCT {', '.join(names)} FROM ({print_tree(look.keys)})"
        ranges = self._ranges(look, look.keys.output[0])
        frame = self._workspace.run(text, self._view, Reads.of(look.keys), pace=Pace.SOME)
        wanted = Keys(frame, names, look.columns, ranges, look.nulls)
        relation, used = RelationId(look.relation), list(look.used)
        rows = self._workspace.part(relation, used, wanted)
        changed = look.moment == Moment.BEFORE and relation in self._changed
        name = f"{look.name}_now" if changed else look.name
        try:
            batch = rows.toArrow()
            self._workspace.offer(name, batch)
            self._batches[name] = batch
        except (PySparkException, Py4JJavaError) as error:
            if not is_too_large(error):
                raise
            rows.createOrReplaceTempView(name)  # many after all: read where they are needed
        if changed:
            self._before(look, name)

    def _before(self, look: Look, now: str) -> None:
        """The same rows as they were: a row has one version at a time, so those in the change were as it says."""
        delta = scan_name(look.relation, Moment.DELTA)
        names = ", ".join([*(quote(name) for name in look.used), ROW_ID])
        text = (
            f"SELECT {names} FROM {now} AS a LEFT ANTI JOIN {delta} AS d ON a.{ROW_ID} = d.{ROW_ID}"
            f" UNION ALL SELECT {names} FROM {delta} WHERE {DIFF} < 0"
        )
        reads = Reads(frozenset({(RelationId(look.relation), Moment.DELTA)}), frozenset({now}))
        frame = self._workspace.run(text, self._view, reads, pace=Pace.SOME)
        F.broadcast(frame).createOrReplaceTempView(look.name)

    def _ranges(self, look: Look, key: Attribute) -> Ranges | None:
        """Where the values of a key lie, if that is known without a job."""
        origin = origin_of(look.keys, key.id)
        if origin is None:
            return None
        scan, column = origin
        if scan.cut is not None:
            found = [self._batches[each] for each in (scan.cut, f"{scan.cut}_now") if each in self._batches]
            before = self._of_change(RelationId(scan.relation))(column) if scan.moment == Moment.BEFORE else ()
            known = [ranges_of(batch, column, self._limits.key_ranges) for batch in found]
            return united([*known, *([before] if scan.moment == Moment.BEFORE else [])]) if known else None
        return self._of_change(RelationId(scan.relation))(column) if scan.moment == Moment.DELTA else None

    def _of_change(self, relation: RelationId) -> Callable[[str], Ranges | None]:
        """Where the values of the columns of a change lie."""
        if not self._workspace.delta(relation):
            return lambda _: None
        small = self._workspace.small_delta(relation)
        if small is not None:
            return partial(ranges_of, small, most=self._limits.key_ranges)
        warehouse, files = self._workspace.runtime.warehouse, self._workspace.delta(relation)
        return lambda column: (found,) if (found := column_range(warehouse, files, column)) else None

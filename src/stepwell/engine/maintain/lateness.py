"""Lateness in an epoch: the rows of a change that come too late for a view are found, and kept out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from stepwell.algebra.nodes import Moment
from stepwell.engine.maintain.event_time import is_before
from stepwell.engine.maintain.workspace import Workspace
from stepwell.model.relations import Relation
from stepwell.model.views import Judge, RelationId
from stepwell.model.watermarks import NEVER
from stepwell.plan.blocks import Block, rows_of
from stepwell.plan.lateness import entries, less, with_sources
from stepwell.plan.render import rows_sql
from stepwell.storage import small_frame, time_reach

LEDGER, LATE = "_sw_ledger", "_sw_late"
"""What came late before this epoch, and in it."""


@dataclass
class Lateness:
    """What judges the rows of one view in one epoch; `incoming` is the watermark that it began with."""

    workspace: Workspace
    view: Relation
    judge: Judge
    ledger: Relation
    block: Block
    changed: frozenset[RelationId]
    incoming: int
    inputs: Mapping[RelationId, Relation]
    has_new: bool = False

    @property
    def is_possible(self) -> bool:
        """Whether a row of the change can be late at all, as far as the reach of its files tells."""
        if self._bound == NEVER:
            return False
        for id_ in self.changed:
            relation = self.inputs[id_]
            if relation.time_column is None:
                return True
            time = relation.column(relation.time_column).name
            reach = time_reach(self.workspace.runtime.warehouse, relation, self.workspace.delta(id_), time)
            if reach.low is not None and reach.low < self.incoming - self.judge.tolerance:
                return True
        return False

    def entries(self, epoch: int) -> str:
        """What the ledger has to take up."""
        columns = {
            int(each.relation): {name: str(self.inputs[each.relation].column(name).type) for name in each.columns}
            for each in self.view.view.inputs
        }
        rows = with_sources(rows_of(self.block), self.judge.column, columns, window=self.judge.transfer.is_window)
        delta = rows_sql(rows, Moment.DELTA, self.changed)
        return entries(self.ledger.columns, rows_of(self.block), delta, self._late, epoch)

    def kept(self, delta: str) -> str:
        """The rows of a change that count."""
        return f"SELECT * FROM ({delta}) WHERE NOT coalesce({self._late}, false)" if self.has_new else delta

    def counted(self, rows: str, moment: Moment) -> str:
        """Of all rows, before the epoch or after it, those that count."""
        ledgers = [LEDGER] if self.workspace.before(self.ledger.id).files else []
        if self.has_new and moment == Moment.AFTER:
            ledgers.append(LATE)
        return less(rows, rows_of(self.block).names, self.judge.column, ledgers)

    def remember(self, new: DataFrame | pa.Table) -> None:
        """Let texts of this epoch read what came late in it."""
        frame = small_frame(self.workspace.session, new) if isinstance(new, pa.Table) else new
        frame.createOrReplaceTempView(LATE)
        self.has_new = True

    @property
    def _bound(self) -> int:
        return self.judge.final(self.incoming)

    @property
    def _late(self) -> str:
        type_ = self.ledger.column(self.judge.column).type
        return is_before(self.judge.column, type_, self._bound)

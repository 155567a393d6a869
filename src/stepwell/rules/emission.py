"""Emission: which part of what is known of a view it shows.

`live` is all that is known, kept by the view's own rules.

    AFTER WATERMARK     Δ = σ(t < old) Δlive + σ(old ≤ t < new) live.after
    PERIODICALLY        when its time has come, all that has changed since it last did: live ⋉ moved − own ⋉ moved;
                        in between, the windows that close: σ(closing) live − σ(closing) own
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.algebra.expressions import Attribute, Expression, and_all, negated, number
from stepwell.algebra.nodes import (
    Distinct,
    Filter,
    Item,
    Moment,
    Node,
    Project,
    Scan,
    Union,
    passed,
)
from stepwell.rules.identity import Identified
from stepwell.rules.lateness import is_before
from stepwell.rules.programs import Occasion, Program, StoredRows, own_rows
from stepwell.rules.versions import among, consolidated, difference, signed, versioned

Range = tuple[int, int]
"""From and until two watermarks."""


class Showing:
    """What a view shows of `live`; `time` is the number of its time column, if it has one."""

    def __init__(self, occasion: Occasion, live: int, time: int | None) -> None:
        self._columns, self._fresh = occasion.columns, occasion.fresh
        self._live, self._time = live, time

    def shown(self, before: int | None = None) -> StoredRows:
        """All that is known, or what lies before a watermark."""
        rows, columns = self._scan(Moment.AFTER)
        if before is not None:
            rows = Identified(Filter(self._before(columns, before), rows.tree), rows.id)
        return versioned(self._columns, columns, rows, self._fresh)

    def anew(self, before: int | None = None) -> Program:
        """All that is shown, less what is stored."""
        return self._program(difference(self.shown(before), own_rows(self._columns, self._fresh), self._fresh))

    def first(self, before: int | None = None) -> Program:
        """All that is shown, where nothing is stored."""
        made = signed(self.shown(before), 1, self._fresh)
        return Program(made.tree, (made.output([each.name for each in self._columns], fresh=True),))

    def closed(self, corrected: int | None, closing: Range | None) -> Program:
        """Changes of windows that are shown already, those before `corrected`, and windows that close."""
        branches: list[tuple[Node, tuple[Attribute, ...]]] = []
        if corrected is not None:
            rows, columns = self._scan(Moment.DELTA)
            branches.append((Filter(self._before(columns, corrected), rows.tree), (*columns, *rows.hidden)))
        if closing is not None:
            rows, columns = self._scan(Moment.AFTER)
            sign = self._fresh.column("BIGINT", nullable=False)
            tree = Filter(self._within(columns, closing), rows.tree)
            branches.append((Project((*passed(tree.output), Item(sign, number(1))), tree), (*columns, rows.id, sign)))
        all_ = tuple(self._fresh.like(each) for each in branches[0][1])
        united = Union(all_, tuple(Project(passed(columns), tree) for tree, columns in branches))
        *shown, id_, sign = all_
        made = versioned(self._columns, shown, Identified(united, id_, sign), self._fresh)
        return self._program(consolidated(made, self._fresh))

    def closing(self, closing: Range) -> Program:
        """What is known of the windows that close, less what is shown of them."""
        rows, columns = self._scan(Moment.AFTER)
        new = Identified(Filter(self._within(columns, closing), rows.tree), rows.id)
        own = own_rows(self._columns, self._fresh)
        old = StoredRows(Filter(self._within(own.columns, closing), own.tree), own.columns, own.id, own.version)
        return self._program(difference(versioned(self._columns, columns, new, self._fresh), old, self._fresh))

    def due(self) -> Program:
        """What is known of all that has changed, less what is shown of it."""
        new = among(self.shown(), *self._moved())
        old = among(own_rows(self._columns, self._fresh), *self._moved())
        return self._program(difference(new, old, self._fresh))

    def _moved(self) -> tuple[Node, Attribute]:
        rows, _ = self._scan(Moment.DELTA)
        id_ = self._fresh.like(rows.id)
        return Distinct(Project((Item(id_, rows.id),), rows.tree)), id_

    def _scan(self, moment: Moment) -> tuple[Identified, tuple[Attribute, ...]]:
        columns = tuple(self._fresh.column(str(each.type)) for each in self._columns)
        id_ = self._fresh.column("BIGINT", nullable=False)
        sign = self._fresh.column("BIGINT", nullable=False) if moment == Moment.DELTA else None
        names = tuple(each.name for each in self._columns)
        return Identified(Scan(self._live, columns, names, moment, id_, sign), id_, sign), columns

    def _before(self, columns: Sequence[Attribute], mark: int) -> Expression:
        assert self._time is not None
        return is_before(columns[self._time], mark)

    def _within(self, columns: Sequence[Attribute], range_: Range) -> Expression:
        return and_all([self._before(columns, range_[1]), negated(self._before(columns, range_[0]))])

    def _program(self, made: StoredRows) -> Program:
        return Program(made.tree, (made.output([each.name for each in self._columns]),))

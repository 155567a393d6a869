"""Window functions: a SELECT with OVER, as rows and what is computed over each partition of them.

A row's windows reach no further than its partition; what all windows of a SELECT have in common in PARTITION BY is what
a change can touch. Where an order leaves ties, and the function or the frame would tell them apart, the row's identity
comes last in the order, so that the answer is one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from stepwell.model.files import ROW_ID
from stepwell.plan.grouping import Unsuited, sql_of

_BY_PEERS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)


class Windows:
    """Takes the columns out of the expressions of a SELECT with OVER, and leaves `_sw_x0`… in their places."""

    def __init__(self, items: Sequence[exp.Expr], qualify: exp.Expr | None) -> None:
        found = [window for node in (*items, qualify) if node is not None for window in node.find_all(exp.Window)]
        self.keys = _common([window.args.get("partition_by") or [] for window in found])
        self.arguments: list[str] = []
        self.columns: list[exp.Expr] = []
        """The columns that the arguments are, in the same order."""
        self.made_total = False
        self.items = tuple(sql_of(self._replaced(item)) for item in items)
        self.qualify = sql_of(self._replaced(qualify)) if qualify is not None else None

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        """An expression over `_sw_x0`…, with every order total that has to be."""
        node = node.copy()
        for window in list(node.find_all(exp.Window)):
            self._make_total(window)

        def look(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Column) and each.name != ROW_ID:
                text = sql_of(each)
                if text not in self.arguments:
                    self.arguments.append(text)
                    self.columns.append(each.copy())
                return exp.column(f"_sw_x{self.arguments.index(text)}")
            return each

        return node.transform(look)

    def _make_total(self, window: exp.Window) -> None:
        if window.args.get("alias"):
            raise Unsuited("a named WINDOW has no rule here: write it out")
        function = window.this
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            function = function.this
        frame = window.args.get("spec")
        by_rows = frame is not None and str(frame.args.get("kind") or "").upper() == "ROWS"
        ranked = isinstance(function, exp.RowNumber | exp.Lag | exp.Lead | exp.Ntile)
        picks = isinstance(function, exp.FirstValue | exp.LastValue | exp.NthValue | exp.First | exp.Last)
        if isinstance(function, _BY_PEERS) or not (by_rows or ranked or picks):
            return
        order = window.args.get("order")
        if order is None:
            raise Unsuited(f"{function.key.upper()} OVER without ORDER BY has no one answer")
        if order.expressions[-1].this.name != ROW_ID:
            order.append("expressions", exp.Ordered(this=exp.column(ROW_ID), nulls_first=True))
        self.made_total = True


def has_window(tree: exp.Select) -> bool:
    """Whether any window function stands in a SELECT itself."""
    parts = [*tree.expressions, tree.args.get("qualify")]
    return any(part is not None and part.find(exp.Window) is not None for part in parts)


def _common(partitions: Sequence[Sequence[exp.Expr]]) -> list[exp.Expr]:
    """What all windows are partitioned by."""
    return [key for key in partitions[0] if all(key in other for other in partitions[1:])] if partitions else []

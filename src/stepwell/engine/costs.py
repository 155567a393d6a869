"""Costs of views: read from the record of refreshes once, kept in memory, where every refresh is added."""

from __future__ import annotations

import threading

from stepwell.catalog import Catalog, views
from stepwell.model.views import Refresh, RelationId
from stepwell.plan.costs import Cost, Costs
from stepwell.plan.steps import ANEW, Rule


class ViewCosts:
    """What the refreshes of each view have cost."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[RelationId, Costs] | None = None
        self._lock = threading.Lock()

    def all(self) -> dict[RelationId, Costs]:
        """What is known of all views now."""
        with self._lock:
            return dict(self._all())

    def add(self, view: RelationId, refresh: Refresh) -> None:
        with self._lock:
            known = self._all()
            known[view] = _with_cost(known.get(view, Costs()), refresh)

    def _all(self) -> dict[RelationId, Costs]:
        if self._known is None:
            with self._catalog.read() as tx:
                last = views.last_by_rule(tx, [rule.value for rule in Rule])
            self._known = {}
            for id_, by_rule in last.items():
                for refresh in sorted(by_rule.values(), key=lambda each: each.epoch):
                    self._known[id_] = _with_cost(self._known.get(id_, Costs()), refresh)
        return self._known


def _with_cost(costs: Costs, refresh: Refresh) -> Costs:
    if refresh.rule in [rule.value for rule in ANEW]:
        return costs.recomputed(Cost(refresh.rows_there, refresh.microseconds))
    return costs.updated(Cost(refresh.rows_in, refresh.microseconds))

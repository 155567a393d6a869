"""Back-off: a view whose fold has failed recomputes its touched groups for a while before folding is tried again."""

from __future__ import annotations

import threading

from stepwell.model.views import RelationId


class RefoldBackOff:
    """For each view the refreshes left in which touched groups are recomputed although they might be folded."""

    def __init__(self) -> None:
        self._left: dict[RelationId, int] = {}
        self._lock = threading.Lock()

    @property
    def waiting(self) -> frozenset[RelationId]:
        """The views whose next refresh does not try to fold rows that were taken back."""
        with self._lock:
            return frozenset(view for view, left in self._left.items() if left > 0)

    def refreshed(self, view: RelationId) -> None:
        """Count a refresh of a view."""
        with self._lock:
            self._left[view] = max(0, self._left.get(view, 0) - 1)

    def failed(self, view: RelationId, refreshes: int) -> None:
        """Say that such a fold has failed: the next `refreshes` do not try it."""
        with self._lock:
            self._left[view] = refreshes

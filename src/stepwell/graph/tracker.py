"""The watermarks of a graph: each view's is the least of its parents', through what the view does to time.

Plain numbers in topological order. What hangs on a relation is written down once, as a list that a change runs down:
every view once, however many ways lead to it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from stepwell.model.watermarks import FOREVER, NEVER, HeldTransfer, Transfer

_Node = TypeVar("_Node", bound=Hashable)

Line = tuple[int, int, Sequence[int], int, int, int, Transfer | HeldTransfer | None]
"""A view's number, its first parent, the others, how it floors their least, and what else it makes of it."""


class WatermarkTracker(Generic[_Node]):
    """Watermarks that only ever rise. A view that has not heard of one of its parents stays at NEVER."""

    def __init__(
        self,
        order: Sequence[_Node],
        parents: Mapping[_Node, Iterable[_Node]],
        through: Mapping[_Node, Transfer | HeldTransfer] | None = None,
        marks: Mapping[_Node, int] | None = None,
    ) -> None:
        """`order` has parents before children. `parents` are those that have a say; without any, a node is a source."""
        self._at = {node: index for index, node in enumerate(order)}
        self._nodes = list(order)
        self._parents = [[self._at[parent] for parent in parents.get(node, ())] for node in order]
        self._through = [(through or {}).get(node) for node in order]
        self._marks = [(marks or {}).get(node, NEVER) for node in order]
        self._children: list[list[int]] = [[] for _ in order]
        for index, known in enumerate(self._parents):
            for parent in known:
                self._children[parent].append(index)
        self._programs: dict[int, list[Line]] = {}
        self._settle(range(len(order)))

    def __getitem__(self, node: _Node) -> int:
        return self._marks[self._at[node]]

    def __contains__(self, node: _Node) -> bool:
        return node in self._at

    def get(self, node: _Node, default: int) -> int:
        index = self._at.get(node)
        return default if index is None else self._marks[index]

    def incoming(self, node: _Node) -> int:
        """The least watermark of what a view reads; of a source, its own."""
        index = self._at[node]
        return min((self._marks[parent] for parent in self._parents[index]), default=self._marks[index])

    def update(self, node: _Node, mark: int) -> dict[_Node, int]:
        """Let a relation stand at `mark`; what has moved and where to, parents before children."""
        start = self._at[node]
        marks = self._marks
        if mark <= marks[start]:
            return {}
        marks[start] = mark
        moved = {node: mark}
        nodes = self._nodes
        for index, parent, others, every, before, behind, through in self._programs.get(start) or self._program(start):
            least = marks[parent]
            for other in others:
                if marks[other] < least:
                    least = marks[other]
            if every:  # `through` written out: a call would cost more than all the rest
                if NEVER < least < FOREVER:
                    least = (least - before) // every * every + behind
            elif through is not None:
                least = through(least)
            if least > marks[index]:
                marks[index] = least
                moved[nodes[index]] = least
        return moved

    def _program(self, start: int) -> list[Line]:
        """What hangs on a node, parents before children."""
        reached, queue = {start}, [start]
        while queue:
            for child in self._children[queue.pop()]:
                if child not in reached:
                    reached.add(child)
                    queue.append(child)
        found = [self._line(index) for index in sorted(reached) if index != start]
        self._programs[start] = found
        return found

    def _line(self, index: int) -> Line:
        first, *others = self._parents[index]
        through = self._through[index]
        if not isinstance(through, Transfer) or not through.every or through.zone:
            return index, first, others, 0, 0, 0, through
        start = through.origin + through.every + through.shift
        return index, first, others, through.every, through.size + through.origin, start, through

    def _settle(self, indexes: Iterable[int]) -> None:
        for index in indexes:
            if self._parents[index]:
                least = min(self._marks[parent] for parent in self._parents[index])
                through = self._through[index]
                self._marks[index] = max(self._marks[index], through(least) if through else least)

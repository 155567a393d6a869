"""The registry: relations as nodes, "reads" as edges, and an order in which parents come before children.

The order is kept while the graph changes. A new node is put behind everything there is; an edge that runs against the
order moves only the nodes that lie between its two ends and are reached from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stepwell.model.views import RelationId


class Registry:
    """A graph without cycles. Parents and children of a node are found at once, however large it is."""

    def __init__(self) -> None:
        self._parents: dict[RelationId, tuple[RelationId, ...]] = {}
        self._children: dict[RelationId, dict[RelationId, None]] = {}
        self._at: dict[RelationId, int] = {}
        self._next = 0
        self.moved = 0
        """How many nodes the last change put elsewhere in the order."""

    def __contains__(self, node: RelationId) -> bool:
        return node in self._parents

    def __len__(self) -> int:
        return len(self._parents)

    def add(self, node: RelationId, parents: Iterable[RelationId] = ()) -> None:
        """Put in a new node that reads `parents`, all of which must be there."""
        if node in self._parents:
            raise ValueError(f"node {node} is there already")
        known = tuple(dict.fromkeys(parents))
        for parent in known:
            if parent not in self._parents:
                raise ValueError(f"node {node} cannot read {parent}, which is not there")
        self._parents[node] = known
        self._children[node] = {}
        self._at[node] = self._next
        self._next += 1
        self.moved = 0
        for parent in known:
            self._children[parent][node] = None

    def remove(self, node: RelationId) -> None:
        """Take out a node that nobody reads."""
        if self._children[node]:
            raise ValueError(f"node {node} is read by {', '.join(map(str, self._children[node]))}")
        for parent in self._parents.pop(node):
            del self._children[parent][node]
        del self._children[node], self._at[node]

    def rewire(self, node: RelationId, parents: Iterable[RelationId]) -> None:
        """Let a node read other parents; a cycle must have been ruled out with `cycle`."""
        known = tuple(dict.fromkeys(parents))
        for parent in self._parents[node]:
            del self._children[parent][node]
        self._parents[node] = known
        self.moved = 0
        for parent in known:
            self._children[parent][node] = None
            self._reorder(parent, node)

    def follow(self, wanted: Mapping[RelationId, tuple[RelationId, ...]]) -> Registry:
        """A registry of these nodes with these parents; what is the same in both keeps its place in the order."""
        new = Registry()
        new._parents = dict(self._parents)
        new._children = {node: dict(children) for node, children in self._children.items()}
        new._at, new._next = dict(self._at), self._next
        changed = [node for node, parents in wanted.items() if node in self and self._parents[node] != parents]
        for node in changed:
            new.rewire(node, ())  # all of them first, so that no cycle is there even for a moment
        for node in _parents_first(wanted, [each for each in wanted if each not in self]):
            new.add(node, wanted[node])
        for node in changed:
            new.rewire(node, wanted[node])
        for node in reversed(new.in_order(each for each in self._parents if each not in wanted)):
            new.remove(node)
        return new

    def cycle(self, node: RelationId, parents: Iterable[RelationId]) -> list[RelationId] | None:
        """The path from `node` back to itself that reading `parents` would close, or None."""
        for parent in parents:
            if parent == node:
                return [node, node]
            path = self._path(node, parent)
            if path is not None:
                return [node, *reversed(path)]
        return None

    def parents(self, node: RelationId) -> tuple[RelationId, ...]:
        return self._parents[node]

    def children(self, node: RelationId) -> tuple[RelationId, ...]:
        return tuple(self._children[node])

    def order(self) -> list[RelationId]:
        """Every node, parents before children."""
        return sorted(self._at, key=self._at.__getitem__)

    def in_order(self, nodes: Iterable[RelationId]) -> list[RelationId]:
        """These nodes, parents before children."""
        return sorted(nodes, key=self._at.__getitem__)

    def downstream(self, nodes: Iterable[RelationId]) -> list[RelationId]:
        """All that reads from `nodes`, however indirectly, without themselves; parents before children."""
        return self.in_order(self._reach(nodes, self._children))

    def upstream(self, nodes: Iterable[RelationId]) -> list[RelationId]:
        """All that `nodes` read from, however indirectly, without themselves; parents before children."""
        return self.in_order(self._reach(nodes, self._parents))

    def paths(self, node: RelationId) -> Iterator[list[RelationId]]:
        """Every way from `node` up to something that reads nothing."""
        if not self._parents[node]:
            yield [node]
        for parent in self._parents[node]:
            for rest in self.paths(parent):
                yield [node, *rest]

    def _path(self, start: RelationId, goal: RelationId) -> list[RelationId] | None:
        """A way from `start` down to `goal`, both of them in it."""
        came: dict[RelationId, RelationId | None] = {start: None}
        queue = [start]
        while queue:
            node = queue.pop()
            if node == goal:
                path = [node]
                while (before := came[path[-1]]) is not None:
                    path.append(before)
                return path[::-1]
            for child in self._children.get(node, ()):
                if child not in came:
                    came[child] = node
                    queue.append(child)
        return None

    @staticmethod
    def _reach(
        nodes: Iterable[RelationId],
        edges: dict[RelationId, dict[RelationId, None]] | dict[RelationId, tuple[RelationId, ...]],
    ) -> set[RelationId]:
        start = list(nodes)
        found: set[RelationId] = set()
        queue = list(start)
        while queue:
            for other in edges[queue.pop()]:
                if other not in found:
                    found.add(other)
                    queue.append(other)
        return found

    def _reorder(self, parent: RelationId, child: RelationId) -> None:
        """Make `parent` come before `child`, moving only what lies between them and hangs on one of them."""
        low, high = self._at[child], self._at[parent]
        if high < low:
            return
        after = {node for node in self._reach([child], self._children) | {child} if self._at[node] <= high}
        before = {node for node in self._reach([parent], self._parents) | {parent} if self._at[node] >= low}
        moving = self.in_order(before) + self.in_order(after)
        places = sorted(self._at[node] for node in moving)
        for node, place in zip(moving, places, strict=True):
            self._at[node] = place
        self.moved += len(moving)


def _parents_first(
    parents: Mapping[RelationId, tuple[RelationId, ...]], nodes: list[RelationId]
) -> Iterator[RelationId]:
    """These nodes in an order in which each comes behind those of them that it reads."""
    waiting = dict.fromkeys(nodes)
    for start in nodes:
        stack = [start] if start in waiting else []
        while stack:
            missing = next((parent for parent in parents[stack[-1]] if parent in waiting), None)
            if missing is not None:
                stack.append(missing)
                continue
            node = stack.pop()
            if node in waiting:
                del waiting[node]
                yield node

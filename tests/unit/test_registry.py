"""The registry against brute force: order, reach, cycles and paths of random graphs."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stepwell.graph import DrawnRelation, Registry, draw_svg, draw_text
from stepwell.model.views import RelationId

edges = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=25)


def build(pairs: list[tuple[int, int]]) -> tuple[Registry, dict[int, set[int]]]:
    """A registry of twelve nodes, wired edge by edge, where an edge that closes a cycle is refused; and the edges."""
    registry = Registry()
    parents: dict[int, set[int]] = {node: set() for node in range(12)}
    for node in range(12):
        registry.add(RelationId(node))
    for child, parent in pairs:
        wanted = [RelationId(each) for each in sorted(parents[child] | {parent})]
        cycle = registry.cycle(RelationId(child), wanted)
        assert (cycle is not None) == (parent == child or parent in reach(parents, child, down=True))
        if cycle is None:
            parents[child].add(parent)
            registry.rewire(RelationId(child), wanted)
        else:
            assert cycle[0] == cycle[-1] == child
            steps = list(pairwise(cycle[1:]))
            assert all(before in parents[after] for after, before in steps), (cycle, parents)
    return registry, parents


def reach(parents: dict[int, set[int]], start: int, *, down: bool) -> set[int]:
    found: set[int] = set()
    queue = [start]
    while queue:
        node = queue.pop()
        near = {child for child in parents if node in parents[child]} if down else parents[node]
        queue.extend(near - found)
        found |= near
    return found


@given(edges)
def test_parents_come_before_children_whatever_was_rewired(pairs: list[tuple[int, int]]) -> None:
    registry, parents = build(pairs)
    order = registry.order()
    assert sorted(order) == list(range(12))
    assert all(order.index(RelationId(p)) < order.index(RelationId(c)) for c in parents for p in parents[c])


@given(edges)
def test_upstream_and_downstream_are_what_can_be_reached(pairs: list[tuple[int, int]]) -> None:
    registry, parents = build(pairs)
    for node in range(12):
        assert set(registry.downstream([RelationId(node)])) == reach(parents, node, down=True)
        assert set(registry.upstream([RelationId(node)])) == reach(parents, node, down=False)
        assert set(registry.children(RelationId(node))) == {c for c in parents if node in parents[c]}


@given(st.lists(edges, min_size=1, max_size=4))
def test_a_registry_follows_any_change_of_the_graph(changes: list[list[tuple[int, int]]]) -> None:
    registry = Registry()
    for pairs in changes:
        kept = {node for pair in pairs for node in pair}
        ranks = {node: index for index, node in enumerate(sorted(kept, key=lambda node: (node * 7 + len(pairs)) % 12))}
        wanted: dict[RelationId, tuple[RelationId, ...]] = {RelationId(node): () for node in kept}
        for child, parent in pairs:  # an order of this graph's own, so that edges turn round from one to the next
            if ranks[parent] < ranks[child]:
                wanted[RelationId(child)] = tuple(dict.fromkeys((*wanted[RelationId(child)], RelationId(parent))))
        registry = registry.follow(wanted)
        order = registry.order()
        assert set(order) == kept
        assert all(registry.parents(node) == parents for node, parents in wanted.items())
        assert all(order.index(parent) < order.index(node) for node, parents in wanted.items() for parent in parents)


def test_a_new_view_moves_nothing_and_a_replaced_one_little() -> None:
    registry = Registry()
    for node in range(1000):
        registry.add(RelationId(node), [RelationId(node - 1)] if node else [])
    registry.add(RelationId(1000), [RelationId(999)])
    assert registry.moved == 0
    registry.add(RelationId(1001))
    registry.rewire(RelationId(999), [RelationId(998), RelationId(1001)])
    assert registry.moved <= 3


def test_every_path_is_told() -> None:
    registry = Registry()
    registry.add(RelationId(1))
    registry.add(RelationId(2), [RelationId(1)])
    registry.add(RelationId(3), [RelationId(1)])
    registry.add(RelationId(4), [RelationId(2), RelationId(3)])
    assert list(registry.paths(RelationId(4))) == [[4, 2, 1], [4, 3, 1]]


def test_a_diamond_is_drawn_once() -> None:
    nodes = [
        DrawnRelation("t", "table"),
        DrawnRelation("a", "view", ("t",)),
        DrawnRelation("b", "view", ("t",)),
        DrawnRelation("c<", "view", ("a", "b")),
    ]
    assert draw_text(nodes) == ["t  table", "├─ a  view", "│  └─ c<  view", "└─ b  view", "   └─ c< (above)"]
    assert "c&lt;" in draw_svg(nodes)

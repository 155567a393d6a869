"""Pruning: a tree without the columns that nobody above it reads."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from stepwell.algebra.expressions import AggregateCall, Expression, columns_in, walk
from stepwell.algebra.nodes import (
    Aggregate,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    Union,
    Unnest,
    Window,
)


def pruned(node: Node, wanted: AbstractSet[int], times: AbstractSet[int] = frozenset()) -> Node:
    """The tree with at least the columns that are wanted, and few others; it has the same rows, each as often.

    `times` are columns that are event time: the first and the last of some rows go by them without naming them.
    """
    return _Pruning(times).of(node, wanted)


@dataclass(frozen=True, slots=True)
class _Pruning:
    times: AbstractSet[int]

    def of(self, node: Node, wanted: AbstractSet[int]) -> Node:
        match node:
            case Scan():
                kept = [(each, name) for each, name in zip(node.columns, node.names, strict=True) if each.id in wanted]
                return replace(node, columns=tuple(each for each, _ in kept), names=tuple(name for _, name in kept))
            case Project(items, child):
                shown = _kept(items, wanted)
                return Project(shown, self.of(child, _read(item.expression for item in shown)))
            case Filter(condition, child):
                return Filter(condition, self.of(child, wanted | columns_in(condition)))
            case Window(items, child):
                shown = _kept(items, wanted)
                below = self.of(child, wanted | _read(item.expression for item in shown))
                return Window(shown, below) if shown else below
            case Unnest(array, _, _, _, child):
                return replace(node, child=self.of(child, wanted | columns_in(array)))
            case Join(kind, left, right, condition):
                own = columns_in(condition) if condition is not None else frozenset()
                if kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK):
                    return replace(node, left=self.of(left, wanted | own), right=_narrow(self.of(right, own), own))
                return replace(node, left=self.of(left, wanted | own), right=self.of(right, wanted | own))
            case Union(columns, children):
                places = [index for index, column in enumerate(columns) if column.id in wanted] or [0][: len(columns)]
                branches = []
                for child in children:
                    out = tuple(child.output[index] for index in places)
                    items = tuple(Item(each, each) for each in out)
                    branches.append(Project(items, self.of(child, {each.id for each in out})))
                return Union(tuple(columns[index] for index in places), tuple(branches))
            case Aggregate(keys, items, child):
                shown = _kept(items, wanted)
                read = _read((*keys, *(item.expression for item in shown)))
                if any(_goes_by_time(item.expression) for item in shown):
                    read |= self.times & {each.id for each in child.output}
                return Aggregate(keys, shown, self.of(child, read))
            case _:
                return node


def _goes_by_time(expression: Expression) -> bool:
    return any(isinstance(each, AggregateCall) and each.function in ("First", "Last") for each in walk(expression))


def _kept(items: tuple[Item, ...], wanted: AbstractSet[int]) -> tuple[Item, ...]:
    return tuple(item for item in items if item.column.id in wanted)


def _read(expressions: Iterable[Expression]) -> frozenset[int]:
    found: set[int] = set()
    for each in expressions:
        found |= columns_in(each)
    return frozenset(found)


def _narrow(node: Node, wanted: AbstractSet[int]) -> Node:
    """Only the columns that are wanted, and no projection where that says nothing."""
    if {each.id for each in node.output} <= wanted:
        return node
    return Project(tuple(Item(each, each) for each in node.output if each.id in wanted), node)

"""Cuts: how much of each relation a change can meet.

A change of a few rows meets a few rows of what it is joined with: those with the same keys. So a large relation in the
tree of a change is replaced by a smaller one, to be read first: a *look*. Once it is known by its few rows, relations
that are joined to it can be cut by the keys of these in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stepwell.algebra.expressions import Attribute, Call, Expression, conjuncts, equal
from stepwell.algebra.nodes import (
    Filter,
    Fresh,
    Item,
    Join,
    JoinKind,
    Moment,
    Node,
    Project,
    Scan,
    Union,
    Unnest,
    renamed,
    scans_of,
)
from stepwell.model.limits import Limits
from stepwell.rules.identity import Identified
from stepwell.rules.programs import ComputedStep


@dataclass(frozen=True, slots=True)
class Change:
    """How much of an input an epoch changes: rows of the change, retractions among them, rows the input has."""

    rows: int
    retracted: int
    total: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many bytes there are of each relation, what has changed of those that have, and what is much."""

    bytes: Mapping[int, int]
    changes: Mapping[int, Change]
    limits: Limits

    def is_few(self, relation: int) -> bool:
        """Whether the change of a relation is known by a few keys."""
        change = self.changes[relation]
        return change.rows <= max(
            self.limits.few_keys_least, min(self.limits.few_keys_most, self.limits.few_keys_share * change.total)
        )


@dataclass(frozen=True, slots=True)
class Look:
    """Rows of a relation to be read before the tree of a change: those whose `columns` are among the rows of `keys`."""

    name: str
    relation: int
    moment: Moment
    columns: tuple[str, ...]
    used: tuple[str, ...]
    keys: Node
    nulls: bool = False
    """Whether NULL is a key like any other."""

    def asks(self, scan: Scan, columns: tuple[str, ...], by: Node, keys: tuple[Attribute, ...]) -> bool:
        """Whether it is what this scan needs: the same columns among the same values."""
        assert isinstance(self.keys, Project)
        own = (self.relation, self.moment, self.columns, self.used, self.keys.child)
        if own != (scan.relation, scan.moment, columns, scan.names, by):
            return False
        return tuple(item.expression for item in self.keys.items) == keys


class Cuts:
    """The looks of one change of one tree, in the order in which they are to be taken."""

    def __init__(self, sizes: Sizes, fresh: Fresh, start: int = 0) -> None:
        self._sizes = sizes
        self._fresh = fresh
        self._number = start
        self.steps: list[Look | ComputedStep] = []

    def partner(self, join: Join, side: Node, by: Identified, tree: Identified) -> Identified:
        """`tree`, rows of one side of a join, less those that cannot meet `by`, rows of the other side."""
        if not self._is_small(by.tree):
            return tree
        pairs = ties_of(join.condition, side.output, by.tree.output)
        return replace(tree, tree=self.restricted(tree.tree, pairs, by.tree)) if pairs else tree

    def meeting(self, tree: Node, pairs: Sequence[tuple[Attribute, Attribute]], by: Scan) -> Node:
        """A tree less rows that cannot have their columns among those of a step, NULLs being keys like any other."""
        return self.restricted(tree, [(own.id, key, True) for own, key in pairs], by)

    def compute(self, step: ComputedStep) -> None:
        self.steps.append(step)

    def restricted(self, node: Node, pairs: Sequence[tuple[int, Attribute, bool]], by: Node) -> Node:
        """A tree less rows whose columns, by number, are not among the columns of `by`; a pair says if NULLs meet."""
        if not pairs:
            return node
        match node:
            case Scan():
                return self._look(node, pairs, by)
            case Project(items, child):
                origins = {item.column.id: item.expression for item in items}
                below = [
                    (inner.id, column, nulls)
                    for number, column, nulls in pairs
                    if isinstance(inner := origins.get(number), Attribute)
                ]
                return replace(node, child=self.restricted(child, below, by))
            case Filter(_, child):
                return replace(node, child=self.restricted(child, pairs, by))
            case Unnest(_, _, _, _, child):
                known = {each.id for each in child.output}
                return replace(node, child=self.restricted(child, [each for each in pairs if each[0] in known], by))
            case Union(columns, children):
                places = {column.id: index for index, column in enumerate(columns)}
                branches = [
                    self.restricted(child, [(child.output[places[n]].id, c, nulls) for n, c, nulls in pairs], by)
                    for child in children
                ]
                return replace(node, children=tuple(branches))
            case Join():
                return self._join(node, pairs, by)
            case _:
                return node

    def _join(self, join: Join, pairs: Sequence[tuple[int, Attribute, bool]], by: Node) -> Node:
        """Both sides of a join: one by the keys, the other by the rows that are then left of the first."""
        left, right = ({each.id for each in side.output} for side in (join.left, join.right))
        on_left = [pair for pair in pairs if pair[0] in left]
        on_right = [pair for pair in pairs if pair[0] in right]
        if on_left and join.kind != JoinKind.FULL:
            first = self.restricted(join.left, on_left, by)
            ties = ties_of(join.condition, join.right.output, first.output)
            return replace(join, left=first, right=self.restricted(join.right, ties, self._known(first, on_left, by)))
        if on_right and join.kind in (JoinKind.INNER, JoinKind.CROSS):
            first = self.restricted(join.right, on_right, by)
            ties = ties_of(join.condition, join.left.output, first.output)
            return replace(join, right=first, left=self.restricted(join.left, ties, self._known(first, on_right, by)))
        return join

    def _known(self, node: Node, pairs: Sequence[tuple[int, Attribute, bool]], by: Node) -> Node:
        """The rows that the keys leave of a tree: as it is if it was cut, else those that meet the keys."""
        if any(scan.cut is not None for scan in scans_of(node)):
            return node
        keys, names = renamed(by, self._fresh)
        columns = {each.id: each for each in node.output}
        same: list[Expression] = [equal(columns[number], names[column.id]) for number, column, _ in pairs]
        condition = same[0]
        for each in same[1:]:
            condition = Call("And", (condition, each), "BOOLEAN")
        return Join(JoinKind.SEMI, node, keys, condition)

    def _look(self, scan: Scan, pairs: Sequence[tuple[int, Attribute, bool]], by: Node) -> Node:
        if (
            scan.moment == Moment.DELTA
            or scan.cut is not None
            or self._sizes.bytes.get(scan.relation, 0) <= self._sizes.limits.whole_relation_bytes
        ):
            return scan
        names = {column.id: name for column, name in zip(scan.columns, scan.names, strict=True)}
        known = [(names[number], column, nulls) for number, column, nulls in pairs if number in names]
        if not known:
            return scan
        columns = tuple(name for name, _, _ in known)
        keys = Project(tuple(Item(self._fresh.like(column), column) for _, column, _ in known), by)
        for look in self.steps:  # the same rows may be asked for by several terms
            if isinstance(look, Look) and look.asks(scan, columns, by, tuple(column for _, column, _ in known)):
                return replace(scan, cut=look.name)
        self._number += 1
        name = f"_sw_cut{self._number}"
        nulls = any(nulls for _, _, nulls in known)
        self.steps.append(Look(name, scan.relation, scan.moment, columns, scan.names, keys, nulls))
        return replace(scan, cut=name)

    def _is_small(self, node: Node) -> bool:
        """Whether a tree begins with few rows: a small change, or rows that were looked up."""
        starts = [scan for scan in scans_of(node) if scan.moment == Moment.DELTA]
        return bool(starts) and all(self._sizes.is_few(scan.relation) for scan in starts)


def ties_of(
    condition: Expression | None, side: Sequence[Attribute], by: Sequence[Attribute]
) -> list[tuple[int, Attribute, bool]]:
    """The columns of one side that a condition says are equal to columns of the other; FLOAT and DOUBLE never cut."""
    own, others = {each.id for each in side}, {each.id: each for each in by}
    found = []
    for each in conjuncts(condition):
        match each:
            case Call(function="EqualTo" | "EqualNullSafe", arguments=(Attribute() as one, Attribute() as two)):
                for mine, theirs in ((one, two), (two, one)):
                    is_pair = mine.id in own and theirs.id in others and mine.type == theirs.type
                    if is_pair and mine.type not in ("FLOAT", "DOUBLE"):
                        found.append((mine.id, others[theirs.id], each.function == "EqualNullSafe"))
    return found


def origin_of(node: Node, column: int) -> tuple[Scan, str] | None:
    """The column of a relation that a column of a tree is, if it is one as it stands."""
    match node:
        case Scan():
            names = {each.id: name for each, name in zip(node.columns, node.names, strict=True)}
            return (node, names[column]) if column in names else None
        case Project(items, child):
            inner = next((item.expression for item in items if item.column.id == column), None)
            return origin_of(child, inner.id) if isinstance(inner, Attribute) else None
        case Filter(_, child) | Unnest(_, _, _, _, child):
            return origin_of(child, column)
        case Join(kind, left, right):
            if column in {each.id for each in left.output} and kind != JoinKind.FULL:
                return origin_of(left, column)
            return origin_of(right, column) if kind in (JoinKind.INNER, JoinKind.CROSS) else None
        case _:
            return None

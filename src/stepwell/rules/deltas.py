"""Delta: what a change of relations makes of the rows of a tree.

    Δ(σ R)          σ ΔR; so for projections and unnesting
    Δ(R ∪ S)        ΔR ∪ ΔS
    Δ(L ⋈ R)        ΔL ⋈ R.after + L.before ⋈ ΔR
    Δ(L ⟕ R)        ΔL ⟕ R.after + T ⟕ R.after − T ⟕ R.before, where T = L.before ⋉ ΔR;
                    so for semi, anti and mark joins, all of which are linear in L
    Δ(L ⟗ R)        Δ(L ⟕ R) + Δ(∅ × (R ▷ L))

A term may hold a row with + and again with −; the change is what is left when they are added up.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from stepwell.algebra.expressions import TRUE, Attribute, identity, null, number
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
    children_of,
    passed,
    relations_of,
)
from stepwell.rules.identity import Identified, above, at, joined, united
from stepwell.rules.programs import Cutting, NoCutting


@dataclass(frozen=True)
class Deltas:
    """The change of trees when the relations `changed` have changed."""

    changed: AbstractSet[int]
    fresh: Fresh
    cutting: Cutting = field(default_factory=NoCutting)

    def moves(self, node: Node) -> bool:
        """Whether a tree reads anything that has changed."""
        return not self.changed.isdisjoint(relations_of(node))

    def of(self, node: Node) -> Identified | None:
        """Δ of a tree, signed, or None if nothing that it reads has changed."""
        if not self.moves(node):
            return None
        match node:
            case Scan():
                id_, sign = (self.fresh.column("BIGINT", nullable=False) for _ in range(2))
                return Identified(replace(node, moment=Moment.DELTA, identity=id_, sign=sign), id_, sign)
            case Project() | Filter() | Unnest():
                below = self.of(node.child)
                assert below is not None
                return above(node, below, self.fresh)
            case Union():
                branches = [(index, found) for index, child in enumerate(node.children) if (found := self.of(child))]
                return united(node, branches, self.fresh)
            case Join(kind=JoinKind.INNER | JoinKind.CROSS):
                return self._sum(node, self._inner(node))
            case Join(kind=JoinKind.FULL):
                left = replace(node, kind=JoinKind.LEFT)
                return self._sum(node, [*self._outer(left), *self._missing(node)])
            case Join():
                return self._sum(node, self._outer(node))
            case _:
                raise AssertionError(f"{type(node).__name__} is no node of rows")

    def _inner(self, join: Join) -> list[Identified]:
        """ΔL ⋈ R.after + L.before ⋈ ΔR."""
        terms = []
        if (left := self.of(join.left)) is not None:
            right = self.cutting.partner(join, join.right, left, self._at(join.right, Moment.AFTER))
            terms.append(joined(join, left, right, self.fresh))
        if (right_delta := self.of(join.right)) is not None:
            before = self.cutting.partner(join, join.left, right_delta, self._at(join.left, Moment.BEFORE))
            terms.append(joined(join, before, right_delta, self.fresh))
        return terms

    def _outer(self, join: Join) -> list[Identified]:
        """ΔL ⟕ R.after + T ⟕ R.after − T ⟕ R.before, where T = L.before ⋉ ΔR."""
        terms = []
        if (left := self.of(join.left)) is not None:
            right = self.cutting.partner(join, join.right, left, self._at(join.right, Moment.AFTER))
            terms.append(joined(join, left, right, self.fresh))
        if (delta := self.of(join.right)) is not None:
            before = self.cutting.partner(join, join.left, delta, self._at(join.left, Moment.BEFORE))
            touched = replace(before, tree=Join(JoinKind.SEMI, before.tree, delta.tree, join.condition or TRUE))
            for moment, sign in ((Moment.AFTER, 1), (Moment.BEFORE, -1)):
                there = self.cutting.partner(join, join.right, touched, self._at(join.right, moment))
                terms.append(self._signed(joined(join, touched, there, self.fresh), sign))
        return terms

    def _missing(self, join: Join) -> list[Identified]:
        """Δ of the rows on the right of a full join that have no partner, with NULLs for the left side."""
        alone = Join(JoinKind.ANTI, join.right, join.left, join.condition)
        delta = self.of(alone)
        if delta is None or delta.sign is None:
            return []
        items = [Item(each, null(each.type)) for each in join.left.output] + list(passed(join.right.output))
        id_ = self.fresh.column("BIGINT", nullable=False)
        missing = Item(id_, identity(null("BIGINT"), delta.id))
        tree = Project((*items, missing, *passed((delta.sign,))), delta.tree)
        return [Identified(tree, id_, delta.sign)]

    def _at(self, node: Node, moment: Moment) -> Identified:
        return at(node, moment if self.moves(node) else Moment.AFTER, self.fresh)

    def _signed(self, term: Identified, sign: int) -> Identified:
        column = self.fresh.column("BIGINT", nullable=False)
        tree = Project((*passed(term.tree.output), Item(column, number(sign))), term.tree)
        return replace(term, tree=tree, sign=column)

    def _sum(self, node: Node, terms: list[Identified]) -> Identified:
        """The terms of a change behind one another."""
        id_, sign = (self.fresh.column("BIGINT", nullable=False) for _ in range(2))
        children = []
        for term in terms:
            assert term.sign is not None
            columns: tuple[Attribute, ...] = (*node.output, term.id, term.sign)
            children.append(Project(tuple(Item(self.fresh.like(each), each) for each in columns), term.tree))
        return Identified(Union((*node.output, id_, sign), tuple(children)), id_, sign)


def only_adds(node: Node, changed: AbstractSet[int]) -> bool:
    """Whether new rows in `changed` can only make new rows, and never take one away."""
    if isinstance(node, Join) and node.kind not in (JoinKind.INNER, JoinKind.CROSS):
        sides = [node.right] if node.kind != JoinKind.FULL else [node.left, node.right]
        if any(not changed.isdisjoint(relations_of(side)) for side in sides):
            return False
    return all(only_adds(child, changed) for child in children_of(node))


def is_netted(node: Node, changed: AbstractSet[int]) -> bool:
    """Whether a change that only brings rows has each of them once as it stands: no two terms can hold one row.

    One that also takes rows away never does: where a column that nobody reads has changed, a row goes and comes back.
    """
    if isinstance(node, Join):
        moving = [side for side in (node.left, node.right) if not changed.isdisjoint(relations_of(side))]
        if len(moving) > 1 or (moving and node.kind not in (JoinKind.INNER, JoinKind.CROSS) and moving != [node.left]):
            return False
    return all(is_netted(child, changed) for child in children_of(node))


def joins(node: Node) -> bool:
    """Whether several sources meet anywhere in a tree."""
    return isinstance(node, Join) or any(joins(child) for child in children_of(node))

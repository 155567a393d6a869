"""Pushing: conditions where they hold first, so that a join knows the columns that tie its sides.

σ(L ⋈ R)        a condition on both sides belongs to the join, one on one side alone to that side
σ(L ⟕ R)        one on the left alone belongs to the left; so for semi, anti and mark joins
σ(π R)          π(σ R), where the condition is on columns that are handed on as they are
σ(R ∪ S)        σR ∪ σS
"""

from __future__ import annotations

from dataclasses import replace

from stepwell.algebra.expressions import ROW, Attribute, Expression, and_all, columns_in, conjuncts, substitute, walk
from stepwell.algebra.nodes import Filter, Join, JoinKind, Node, Project, Union, children_of, with_children


def pushed(node: Node) -> Node:
    """The tree with every condition as far down as it can go; it has the same rows."""
    if isinstance(node, Filter):
        return _below(conjuncts(node.condition), node.child)
    return with_children(node, tuple(pushed(child) for child in children_of(node)))


def _below(conditions: list[Expression], node: Node) -> Node:
    """A tree whose rows fulfil these conditions."""
    match node:
        case Filter(condition, child):
            return _below([*conjuncts(condition), *conditions], child)
        case Project(items, child):
            origins = {item.column.id: item.expression for item in items}
            values: dict[int, Expression] = {
                number: each for number, each in origins.items() if isinstance(each, Attribute)
            }
            through = [each for each in conditions if columns_in(each) <= values.keys() and not _goes_by_row(each)]
            stay = [each for each in conditions if each not in through]
            return _filtered(stay, Project(items, _below([substitute(each, values) for each in through], child)))
        case Union(columns, children):
            if any(_goes_by_row(each) for each in conditions):
                return _filtered(conditions, replace(node, children=tuple(pushed(child) for child in children)))
            branches = []
            for child in children:
                own: dict[int, Expression] = {
                    column.id: each for column, each in zip(columns, child.output, strict=True)
                }
                branches.append(_below([substitute(each, own) for each in conditions], child))
            return replace(node, children=tuple(branches))
        case Join():
            return _join(conditions, node)
        case _:
            return _filtered(conditions, pushed(node))


def _join(conditions: list[Expression], join: Join) -> Node:
    left, right = ({each.id for each in side.output} for side in (join.left, join.right))
    is_inner = join.kind in (JoinKind.INNER, JoinKind.CROSS)
    to_left, to_right, both, stay = [], [], [], []
    own = conjuncts(join.condition) if is_inner else []
    for each in [*own, *conditions]:
        read = columns_in(each)
        if _goes_by_row(each) or join.kind == JoinKind.FULL:
            stay.append(each)
        elif read <= left:
            to_left.append(each)
        elif is_inner and read <= right:
            to_right.append(each)
        elif is_inner:
            both.append(each)
        else:
            stay.append(each)
    below = _below(to_left, join.left), _below(to_right, join.right)
    if is_inner:
        kind = JoinKind.INNER if both else JoinKind.CROSS
        return _filtered(stay, replace(join, kind=kind, left=below[0], right=below[1], condition=_all(both)))
    return _filtered(stay, replace(join, left=below[0], right=below[1]))


def _all(conditions: list[Expression]) -> Expression | None:
    return and_all(conditions) if conditions else None


def _filtered(conditions: list[Expression], node: Node) -> Node:
    return Filter(and_all(conditions), node) if conditions else node


def _goes_by_row(expression: Expression) -> bool:
    return any(each == ROW for each in walk(expression))

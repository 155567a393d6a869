"""Identity: the rows of a tree at a moment, each with a number that tells it from all others.

id(scan)        the row's own
id(σ), id(π)    id of the row below
id(L ⋈ R)       both ids together; a side that is missing counts as one
id(L ⋉ R)       id of the row on the left; so for ▷, and for marks, which are L ⋉ R with true and L ▷ R with false
id(unnest)      id of the row below and the place of the element
id(∪)           id of the row and the number of its branch
id(values)      the number of the row
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stepwell.algebra.expressions import FALSE, ROW, TRUE, Attribute, Expression, identity, number, transform
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
    Values,
    Window,
    passed,
)


@dataclass(frozen=True, slots=True)
class Identified:
    """A tree whose output is that of the tree it stands for, and the columns that identify and sign its rows."""

    tree: Node
    id: Attribute
    sign: Attribute | None = None

    @property
    def hidden(self) -> tuple[Attribute, ...]:
        return (self.id,) if self.sign is None else (self.id, self.sign)


def at(node: Node, moment: Moment, fresh: Fresh) -> Identified:
    """The rows of a tree before or after an epoch, or now, with their identities."""
    match node:
        case Scan():
            id_ = fresh.column("BIGINT", nullable=False)
            return Identified(replace(node, moment=moment, identity=id_), id_)
        case Values():
            id_ = fresh.column("BIGINT", nullable=False)
            rows = tuple((*row, number(index)) for index, row in enumerate(node.rows))
            return Identified(Values((*node.columns, id_), rows), id_)
        case Project() | Filter() | Unnest() | Window():
            return above(node, at(node.child, moment, fresh), fresh)
        case Union():
            branches = [(index, at(child, moment, fresh)) for index, child in enumerate(node.children)]
            return united(node, branches, fresh)
        case Join():
            return joined(node, at(node.left, moment, fresh), at(node.right, moment, fresh), fresh)
        case _:
            raise AssertionError(f"{type(node).__name__} is no node of rows")


def above(node: Project | Filter | Unnest | Window, below: Identified, fresh: Fresh) -> Identified:
    """A node of one child over other rows of that child; what hides behind these is handed on."""
    match node:
        case Project():
            items = tuple(replace(item, expression=_with_row(item.expression, below.id)) for item in node.items)
            return replace(below, tree=Project((*items, *passed(below.hidden)), below.tree))
        case Filter():
            return replace(below, tree=Filter(_with_row(node.condition, below.id), below.tree))
        case Window():
            assert below.sign is None, "a window sees rows, not changes"
            items = tuple(replace(item, expression=_with_row(item.expression, below.id)) for item in node.items)
            return replace(below, tree=Window(items, below.tree))
        case Unnest():
            id_ = fresh.column("BIGINT", nullable=False)
            made = replace(node, child=below.tree)
            signs = passed(below.hidden[1:])
            item = Item(id_, identity(below.id, node.place))
            return Identified(Project((*passed(node.output), item, *signs), made), id_, below.sign)


def joined(node: Join, left: Identified, right: Identified, fresh: Fresh) -> Identified:
    """A join of other rows of its two sides; at most one of them is signed."""
    made = replace(node, left=left.tree, right=right.tree)
    sign = left.sign or right.sign
    signs = passed((sign,) if sign is not None else ())
    if node.kind == JoinKind.MARK:
        return Identified(_marked(node, left, right, fresh), left.id, sign)
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return Identified(Project((*passed(node.output), *passed((left.id,)), *signs), made), left.id, sign)
    id_ = fresh.column("BIGINT", nullable=False)
    item = Item(id_, identity(left.id, right.id))
    return Identified(Project((*passed(node.output), item, *signs), made), id_, sign)


def _marked(node: Join, left: Identified, right: Identified, fresh: Fresh) -> Union:
    """The rows on the left that have a partner, marked so, and those that have none.

    Spark could mark them at once, by EXISTS in a projection. But it falls over one that is above or below a union ("key
    not found"), and the change of a tree is made of unions.
    """
    assert node.mark is not None
    own = (*node.left.output, *left.hidden)
    branches = []
    for kind, mark in ((JoinKind.SEMI, TRUE), (JoinKind.ANTI, FALSE)):
        items = [*(Item(fresh.like(each), each) for each in own), Item(fresh.like(node.mark), mark)]
        branches.append(Project(tuple(items), Join(kind, left.tree, right.tree, node.condition)))
    return Union((*own, node.mark), tuple(branches))


def united(node: Union, branches: list[tuple[int, Identified]], fresh: Fresh) -> Identified:
    """Some of the branches of a union, each by its number."""
    id_ = fresh.column("BIGINT", nullable=False)
    sign = fresh.column("BIGINT", nullable=False) if branches[0][1].sign is not None else None
    children = []
    for index, branch in branches:
        own = node.children[index].output
        hidden = [Item(fresh.like(id_), identity(branch.id, number(index)))]
        if branch.sign is not None:
            hidden.append(Item(fresh.like(branch.sign), branch.sign))
        shown = tuple(Item(fresh.like(each), each) for each in own)
        children.append(Project((*shown, *hidden), branch.tree))
    signs = (sign,) if sign is not None else ()
    return Identified(Union((*node.columns, id_, *signs), tuple(children)), id_, sign)


def _with_row(expression: Expression, id_: Attribute) -> Expression:
    return transform(expression, lambda each: id_ if each == ROW else None)

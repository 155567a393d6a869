"""Nodes: a query as a tree of relational operators, as Spark has analyzed it.

Every node has an `output`, the columns that it hands on. A `Scan` reads a relation: as it is now, or, in the program of
a change, before the epoch, after it, or what the epoch did to it; then also the identity of each row, and its sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from stepwell.algebra.expressions import Attribute, Call, Expression, Literal, Order, Subquery, WindowCall, walk


class Moment(StrEnum):
    """A relation at the epoch that is read, before an epoch, after it, or the change between the two."""

    NOW = ""
    BEFORE = "b"
    AFTER = "a"
    DELTA = "d"


class JoinKind(StrEnum):
    """How two inputs meet. A mark join adds a column that says whether a row has a partner."""

    INNER = "inner"
    CROSS = "cross"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Item:
    """A column, and what it is made of."""

    column: Attribute
    expression: Expression


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a relation. A negative number is a part of the same view that has no number yet.

    `cut`, where there is one, names a smaller relation that holds every row which can matter here.
    """

    relation: int
    columns: tuple[Attribute, ...]
    names: tuple[str, ...]
    moment: Moment = Moment.NOW
    identity: Attribute | None = None
    sign: Attribute | None = None
    cut: str | None = None

    @property
    def output(self) -> tuple[Attribute, ...]:
        hidden = [each for each in (self.identity, self.sign) if each is not None]
        return (*self.columns, *hidden)


@dataclass(frozen=True, slots=True)
class Values:
    """Rows that are written out."""

    columns: tuple[Attribute, ...]
    rows: tuple[tuple[Literal, ...], ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Project:
    """Each row as other columns."""

    items: tuple[Item, ...]
    child: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return tuple(item.column for item in self.items)


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which a condition is true."""

    condition: Expression
    child: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output


@dataclass(frozen=True, slots=True)
class Join:
    """Two inputs; without a condition every row meets every row."""

    kind: JoinKind
    left: Node
    right: Node
    condition: Expression | None = None
    mark: Attribute | None = None

    @property
    def output(self) -> tuple[Attribute, ...]:
        match self.kind:
            case JoinKind.SEMI | JoinKind.ANTI:
                return self.left.output
            case JoinKind.MARK:
                assert self.mark is not None
                return (*self.left.output, self.mark)
            case _:
                left = _padded(self.left.output, self.kind in (JoinKind.RIGHT, JoinKind.FULL))
                return (*left, *_padded(self.right.output, self.kind in (JoinKind.LEFT, JoinKind.FULL)))


def _padded(columns: tuple[Attribute, ...], may_miss: bool) -> tuple[Attribute, ...]:
    return tuple(replace(each, nullable=True) for each in columns) if may_miss else columns


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Rows by groups; `items` are made of keys and aggregates. Without keys there is one group, also of no rows."""

    keys: tuple[Expression, ...]
    items: tuple[Item, ...]
    child: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return tuple(item.column for item in self.items)


@dataclass(frozen=True, slots=True)
class Generate:
    """Each row with those that a generator makes of it; `outer` keeps a row of which it makes none."""

    generator: Call
    outer: bool
    columns: tuple[Attribute, ...]
    child: Node
    qualifier: str | None = None

    @property
    def output(self) -> tuple[Attribute, ...]:
        return (*self.child.output, *self.columns)


@dataclass(frozen=True, slots=True)
class Unnest:
    """Each row with the elements of an array: `place` counts them from 0. `outer` keeps a row without any."""

    array: Expression
    element: Attribute
    place: Attribute
    outer: bool
    child: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return (*self.child.output, self.place, self.element)


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of every child, column by column in their order."""

    columns: tuple[Attribute, ...]
    children: tuple[Node, ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class SetOperation:
    """INTERSECT or EXCEPT, of sets or, with `keep_all`, of bags."""

    kind: str
    keep_all: bool
    columns: tuple[Attribute, ...]
    left: Node
    right: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row once."""

    child: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output


@dataclass(frozen=True, slots=True)
class Sort:
    """Rows in an order, which matters only to a limit above."""

    order: tuple[Order, ...]
    child: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` rows behind the first `offset`; None is all of them."""

    count: int | None
    offset: int
    child: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output


@dataclass(frozen=True, slots=True)
class Window:
    """Each row with what functions say of it among the rows of its partition."""

    items: tuple[Item, ...]
    child: Node

    @property
    def output(self) -> tuple[Attribute, ...]:
        return (*self.child.output, *(item.column for item in self.items))


Node = (
    Scan | Values | Project | Filter | Join | Aggregate | Generate | Unnest | Union | SetOperation | Distinct | Sort
    | Limit | Window
)  # fmt: skip


def children_of(node: Node) -> tuple[Node, ...]:
    """What a node reads, from left to right."""
    match node:
        case Scan() | Values():
            return ()
        case Join() | SetOperation():
            return (node.left, node.right)
        case Union():
            return node.children
        case _:
            return (node.child,)


def with_children(node: Node, children: tuple[Node, ...]) -> Node:
    """The same node over other children."""
    match node:
        case Scan() | Values():
            return node
        case Join() | SetOperation():
            return replace(node, left=children[0], right=children[1])
        case Union():
            return replace(node, children=children)
        case _:
            return replace(node, child=children[0])


def expressions_of(node: Node) -> tuple[Expression, ...]:
    """The expressions of a node itself."""
    match node:
        case Project() | Window():
            return tuple(item.expression for item in node.items)
        case Filter():
            return (node.condition,)
        case Join():
            return (node.condition,) if node.condition is not None else ()
        case Aggregate():
            return (*node.keys, *(item.expression for item in node.items))
        case Generate():
            return (node.generator,)
        case Unnest():
            return (node.array,)
        case Sort():
            return tuple(each.expression for each in node.order)
        case _:
            return ()


def nodes_of(node: Node) -> Iterator[Node]:
    """A node and all below it, subqueries in expressions included."""
    yield node
    for expression in expressions_of(node):
        for each in walk(expression):
            if isinstance(each, Subquery):
                yield from nodes_of(each.plan)
    for child in children_of(node):
        yield from nodes_of(child)


def scans_of(node: Node) -> Iterator[Scan]:
    """The relations that a tree reads, as often as it does."""
    return (each for each in nodes_of(node) if isinstance(each, Scan))


def relations_of(node: Node) -> dict[int, None]:
    """The numbers of the relations that a tree reads, each once, in the order in which they appear."""
    return dict.fromkeys(each.relation for each in scans_of(node))


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with every node changed, children first."""
    return change(with_children(node, tuple(rebuilt(child, change) for child in children_of(node))))


def highest_id(node: Node) -> int:
    """The highest number of a column in a tree."""
    highest = 0
    for each in nodes_of(node):
        numbers = [column.id for column in each.output]
        for expression in expressions_of(each):
            numbers.extend(part.id for part in walk(expression) if isinstance(part, Attribute))
        highest = max([highest, *numbers])
    return highest


class Fresh:
    """Numbers for new columns, none of which a tree has."""

    def __init__(self, *trees: Node) -> None:
        self._last = max([0, *(highest_id(tree) for tree in trees)])

    def column(self, type_: str, *, nullable: bool = True) -> Attribute:
        self._last += 1
        return Attribute(self._last, type_, nullable)

    def like(self, column: Attribute) -> Attribute:
        return self.column(column.type, nullable=column.nullable)


def passed(columns: tuple[Attribute, ...]) -> tuple[Item, ...]:
    """Columns handed on as they are."""
    return tuple(Item(each, each) for each in columns)


def renamed(node: Node, fresh: Fresh) -> tuple[Project, dict[int, Expression]]:
    """The same rows under new numbers, so that they can be joined with the old ones; and which became which."""
    items = tuple(Item(fresh.like(each), each) for each in dict.fromkeys(node.output))
    renaming: dict[int, Expression] = {}
    for item in items:
        assert isinstance(item.expression, Attribute)
        renaming[item.expression.id] = item.column
    return Project(items, node), renaming


def has_windows(expression: Expression) -> bool:
    return any(isinstance(each, WindowCall) for each in walk(expression))

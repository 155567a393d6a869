"""Trees: random and well-typed, over random tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from oracle.histories import TYPES
from stepwell.algebra.expressions import TRUE, Attribute, Call, Expression, Literal, null
from stepwell.algebra.nodes import (
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    Union,
    Unnest,
    Values,
    passed,
)

Columns = tuple[Attribute, ...]

OF_ROWS = (
    JoinKind.INNER, JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT, JoinKind.FULL, JoinKind.SEMI, JoinKind.ANTI,
    JoinKind.MARK,
)  # fmt: skip
"""The joins that rules know; the others are lowered to these."""

LITERALS = {
    "INT": ["0", "1", "2"],
    "STRING": ["''", "'x'", "'y'"],
    "DOUBLE": ["0.0D", "0.5D", "CAST('NaN' AS DOUBLE)"],
    "BOOLEAN": ["true", "false"],
}


class Trees:
    """Random trees over tables, every column under a number of its own."""

    def __init__(self, random: Random, schemas: Mapping[int, Sequence[str]], joins: Sequence[JoinKind] = OF_ROWS):
        self.random = random
        self.schemas = schemas
        self._joins = joins
        self._last = 0

    def column(self, type_: str, *, nullable: bool = True) -> Attribute:
        self._last += 1
        return Attribute(self._last, type_, nullable)

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    # -- rows ---------------------------------------------------------------------------------------------------------

    def rows(self, sources: int) -> Node:
        """A tree of rows that reads so many sources."""
        if sources == 1:
            node: Node = self.leaf()
        elif self.chance(0.2):
            node = self.union(sources)
        else:
            left = self.random.randint(1, sources - 1)
            node = self.join(self.rows(left), self.rows(sources - left))
        while self.chance(0.35):
            node = self.random.choice([self.filter, self.filter, self.project, self.unnest])(node)
        return node

    def leaf(self) -> Node:
        return self.values() if self.chance(0.07) else self.scan()

    def scan(self) -> Scan:
        relation = self.random.choice(sorted(self.schemas))
        names = tuple(self.schemas[relation])
        return Scan(relation, tuple(self.column(TYPES[name]) for name in names), names)

    def values(self) -> Values:
        columns = tuple(self.column(type_) for type_ in self.random.sample(sorted(LITERALS), 2))
        rows = [tuple(self.literal(each.type) for each in columns) for _ in range(self.random.randint(0, 3))]
        return Values(columns, tuple(rows))

    def filter(self, node: Node) -> Node:
        return Filter(self.condition(node.output), node)

    def project(self, node: Node) -> Node:
        """Some of the columns, and some that are made of them."""
        kept = [each for each in node.output if self.chance(0.7)]
        made = [self.random.choice(["INT", "STRING", "BOOLEAN", "DOUBLE", "ARRAY<INT>"])] * self.random.randint(0, 2)
        items = [
            *passed(tuple(kept)),
            *(Item(self.column(type_), self.expression(type_, node.output)) for type_ in made),
        ]
        self.random.shuffle(items)
        return Project(tuple(items) or (Item(self.column("INT"), Literal("1", "INT")),), node)

    def unnest(self, node: Node) -> Node:
        outer = self.chance(0.5)
        array = self.expression("ARRAY<INT>", node.output)
        return Unnest(array, self.column("INT"), self.column("INT", nullable=outer), outer, node)

    def join(self, left: Node, right: Node) -> Join:
        kind = self.random.choice(self._joins)
        mark = self.column("BOOLEAN", nullable=False) if kind == JoinKind.MARK else None
        if kind == JoinKind.CROSS or (kind != JoinKind.INNER and self.chance(0.1)):
            return Join(kind, left, right, None, mark)
        return Join(kind, left, right, self.meeting(left.output, right.output), mark)

    def union(self, sources: int) -> Union:
        """Branches that have the same types, in their order."""
        sizes = [1] * sources
        while len(sizes) > 2 and self.chance(0.4):
            sizes[0] += sizes.pop()
        types = self.random.choices(["INT", "STRING", "DOUBLE", "BOOLEAN", "ARRAY<INT>"], k=self.random.randint(1, 3))
        children = tuple(self.of_types(self.rows(size), types) for size in sizes)
        return Union(tuple(self.column(type_) for type_ in types), children)

    def of_types(self, node: Node, types: Sequence[str]) -> Project:
        return Project(tuple(Item(self.column(type_), self.expression(type_, node.output)) for type_ in types), node)

    # -- expressions --------------------------------------------------------------------------------------------------

    def literal(self, type_: str) -> Literal:
        if self.chance(0.15) or type_ not in LITERALS:
            return null(type_)
        return Literal(self.random.choice(LITERALS[type_]), type_)

    def meeting(self, left: Columns, right: Columns) -> Expression:
        """A condition of a join: mostly that keys are the same."""
        pairs = [(one, other) for one in left for other in right if one.type == other.type and one.type in LITERALS]
        if not pairs or self.chance(0.1):
            return self.random.choice([TRUE, self.condition((*left, *right))])
        one, other = self.random.choice(pairs)
        operator = self.random.choice(["EqualTo"] * 4 + ["EqualNullSafe"] * 2 + ["LessThan", "GreaterThanOrEqual"])
        first = Call(operator, self.random.choice([(one, other), (other, one)]), "BOOLEAN")
        if self.chance(0.3):
            both = self.random.choice(["And", "And", "Or"])
            return Call(both, (first, self.condition((*left, *right), 1)), "BOOLEAN")
        return first

    def condition(self, scope: Columns, depth: int = 2) -> Expression:
        return self.expression("BOOLEAN", scope, depth)

    def expression(self, type_: str, scope: Columns, depth: int = 2) -> Expression:
        """An expression of a type over the columns of a scope."""
        columns = [each for each in scope if each.type == type_]
        if depth == 0 or self.chance(0.25):
            if columns and self.chance(0.85):
                return self.random.choice(columns)
            if type_ == "ARRAY<INT>" and not self.chance(0.2):
                return Call("CreateArray", (self.literal("INT"), self.literal("INT")), type_, False)
            return self.literal(type_)

        def inner(of: str = type_) -> Expression:
            return self.expression(of, scope, depth - 1)

        general: list[Callable[[], Expression]] = [
            lambda: Call("Coalesce", (inner(), inner()), type_, True, (("name", "coalesce"),)),
            lambda: Call("If", (inner("BOOLEAN"), inner(), inner()), type_),
            lambda: Call("CaseWhen", (inner("BOOLEAN"), inner(), inner("BOOLEAN"), inner()), type_),
        ]
        return self.random.choice([*general, *self._of_type(type_, inner) * 3])()

    def _of_type(self, type_: str, inner: Callable[[str], Expression]) -> list[Callable[[], Expression]]:
        match type_:
            case "INT":
                return [lambda: Call(self.random.choice(["Add", "Subtract"]), (inner("INT"), inner("INT")), "INT")]
            case "BOOLEAN":
                of = self.random.choice([*LITERALS, "INT", "INT"])
                compare = self.random.choice(
                    ["EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"]
                )
                return [
                    lambda: Call(compare, (inner(of), inner(of)), "BOOLEAN"),
                    lambda: Call(compare, (inner(of), inner(of)), "BOOLEAN"),
                    lambda: Call(self.random.choice(["And", "Or"]), (inner("BOOLEAN"), inner("BOOLEAN")), "BOOLEAN"),
                    lambda: Call("Not", (inner("BOOLEAN"),), "BOOLEAN"),
                    lambda: Call(self.random.choice(["IsNull", "IsNotNull"]), (inner(of),), "BOOLEAN", False),
                    lambda: Call("In", (inner(of), self.literal(of), self.literal(of)), "BOOLEAN"),
                ]
            case "ARRAY<INT>":
                return [lambda: Call("CreateArray", (inner("INT"), inner("INT")), "ARRAY<INT>", False)]
            case _:
                return []

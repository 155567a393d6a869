"""Queries: random trees with every kind of node that Spark's analyzer leaves, to be lowered or printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from oracle.trees import LITERALS, OF_ROWS, Columns, Trees
from stepwell.algebra.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Frame,
    Literal,
    Order,
    Subquery,
    WindowCall,
    null,
)
from stepwell.algebra.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Item,
    JoinKind,
    Limit,
    Node,
    Project,
    SetOperation,
    Sort,
    Window,
    nodes_of,
    passed,
)

SORTED = (*LITERALS,)
IN_PEERS = ("Rank", "DenseRank")
ORDERED = ("First", "Last", "AnyValue", "CollectList", "MinBy", "MaxBy")
UNORDERED = ("Count", "Sum", "Average", "Min", "Max", "CollectSet")


class Queries(Trees):
    """Random queries. Without `ties` none of them depends on the order of rows that are equal in it."""

    def __init__(self, random: Random, schemas: Mapping[int, Sequence[str]], *, ties: bool) -> None:
        super().__init__(random, schemas, (*OF_ROWS, JoinKind.RIGHT, JoinKind.RIGHT))
        self._ties = ties

    def query(self, sources: int) -> Node:
        """A tree of rows, and something above it."""
        node = self.rows(sources)
        for _ in range(self.random.choice([1, 1, 2])):
            node = self.random.choice(self._above(node))(node)
            while self.chance(0.25):
                node = self.random.choice([self.filter, self.project])(node)
        return node

    def _above(self, node: Node) -> list[Callable[[Node], Node]]:
        found: list[Callable[[Node], Node]] = [self.generate, self.distinct, self.set_operation, self.aggregate]
        found += [self.window] * 3
        found += [self.limit] * 2 if self._sees_order(node) else [self.total_limit]
        return found

    def _sees_order(self, node: Node) -> bool:
        """Whether ties may count here: they go by the identity of rows, which a sort below does not change."""
        return self._ties and not any(isinstance(each, Sort) for each in nodes_of(node))

    # -- subqueries ---------------------------------------------------------------------------------------------------

    def meeting(self, left: Columns, right: Columns) -> Expression:
        found = super().meeting(left, right)
        if not self._ties or not self.chance(0.05):  # Spark does not wait for one that it makes a key of a join
            return found
        return self._with_subquery(found, (*left, *right))

    def filter(self, node: Node) -> Node:
        found = super().filter(node)
        if not isinstance(found, Filter) or not self.chance(0.2):
            return found
        return Filter(self._with_subquery(found.condition, node.output), node)

    def project(self, node: Node) -> Node:
        found = super().project(node)
        if not isinstance(found, Project) or not self.chance(0.1):
            return found
        subquery = self.subquery()
        return Project((*found.items, Item(self.column(subquery.type), subquery)), node)

    def _with_subquery(self, condition: Expression, scope: Columns) -> Expression:
        """A condition with a query in it, of which there may be two, or one twice."""
        subquery = self.subquery()
        compare = self.random.choice(["EqualTo", "LessThan", "GreaterThanOrEqual", "EqualNullSafe"])
        asked: Expression = subquery
        if subquery.kind == "scalar":
            asked = Call(compare, (self.expression("INT", scope, 1), subquery), "BOOLEAN")
        both = self.random.choice(["And", "Or"])
        return Call(both, self.random.choice([(asked, condition), (condition, asked)]), "BOOLEAN")

    def subquery(self) -> Subquery:
        """A query as a value: of one row, of one at most, or whether there is any."""
        rows = Trees.filter(self, self.scan()) if self.chance(0.5) else self.scan()
        if self.chance(0.4):
            return Subquery("exists", rows, "BOOLEAN", nullable=False)
        call = AggregateCall(self.random.choice(["Min", "Max"]), (self.expression("INT", rows.output, 1),), "INT")
        groups: Node = Aggregate((), (Item(self.column("INT"), call),), rows)
        if self.chance(0.3):
            groups = Filter(Call("GreaterThan", (groups.output[0], Literal("1", "INT")), "BOOLEAN"), groups)
        return Subquery("scalar", Project(passed(groups.output), groups), "INT", most=1)

    # -- nodes --------------------------------------------------------------------------------------------------------

    def distinct(self, node: Node) -> Node:
        return Distinct(node)

    def set_operation(self, node: Node) -> Node:
        types = self.random.choices(["INT", "STRING", "DOUBLE", "BOOLEAN"], k=self.random.randint(1, 2))
        sides = self.of_types(node, types), self.of_types(self.rows(self.random.randint(1, 2)), types)
        left, right = self.random.sample(sides, 2)
        kind = self.random.choice(["INTERSECT", "EXCEPT"])
        return SetOperation(kind, self.chance(0.5), tuple(map(self.column, types)), left, right)

    def generate(self, node: Node) -> Node:
        function = self.random.choice(["Explode", "PosExplode", "Inline"])
        outer = self.chance(0.5)
        array = self.expression("ARRAY<INT>", node.output)
        if function == "Inline":
            structs = [self._struct(node.output) for _ in range(self.random.randint(1, 2))]
            array = Call("CreateArray", tuple(structs), f"ARRAY<{structs[0].type}>", False)
        types = {"Explode": ["INT"], "PosExplode": ["INT", "INT"], "Inline": ["INT", "STRING"]}[function]
        generator = Call(function, (array,), "ARRAY<INT>", False, (("name", function.lower()),))
        return Generate(generator, outer, tuple(map(self.column, types)), node)

    def _struct(self, scope: tuple[Attribute, ...]) -> Call:
        parts = (Literal("'one'", "STRING"), self.expression("INT", scope, 1))
        others = (Literal("'two'", "STRING"), self.expression("STRING", scope, 1))
        return Call("CreateNamedStruct", (*parts, *others), "STRUCT<one: INT, two: STRING>", False)

    def limit(self, node: Node) -> Node:
        count = self.random.choice([0, 1, 2, 3, 5, None])
        offset = self.random.choice([0, 0, 1, 2]) if count is not None else self.random.choice([1, 3])
        if self.chance(0.2):
            return Limit(count, offset, node)
        ordered: Node = Sort(self.order(node.output), node)
        if self.chance(0.4):  # some of the columns that sort are not shown
            ordered = self.project(ordered)
        return Limit(count, offset, ordered)

    def total_limit(self, node: Node) -> Node:
        """A limit of rows that have no ties but those that look the same."""
        columns = tuple(each for each in node.output if each.type in ("INT", "STRING", "BOOLEAN"))
        if not columns:
            return node
        order = tuple(Order(each, self.chance(0.5), self.chance(0.5)) for each in columns)
        return Limit(
            self.random.randint(1, 4), self.random.choice([0, 0, 1]), Sort(order, Project(passed(columns), node))
        )

    def order(self, scope: tuple[Attribute, ...], most: int = 2) -> tuple[Order, ...]:
        return tuple(
            Order(self.expression(self.random.choice(SORTED), scope, 1), self.chance(0.5), self.chance(0.5))
            for _ in range(self.random.randint(1, most))
        )

    # -- groups -------------------------------------------------------------------------------------------------------

    def aggregate(self, node: Node) -> Node:
        keys = self.keys(node.output)
        items = [Item(self.column(each.type), each) for each in keys if self.chance(0.8)]
        for _ in range(self.random.randint(1, 3)):
            call = self.aggregate_call(node.output, ordered=self._sees_order(node))
            items.append(Item(self.column(call.type), call))
        if self.chance(0.15):  # beside an aggregate and a key, or alone
            beside = self.subquery()
            parts = [each for each in (*keys, *(item.expression for item in items)) if each.type == beside.type]
            both = Call("EqualNullSafe", (self.random.choice(parts), beside), "BOOLEAN") if parts else beside
            items.append(Item(self.column(both.type), both))
        found: Node = Aggregate(keys, tuple(items), node)
        return Filter(self.condition(found.output), found) if self.chance(0.3) else found

    def keys(self, scope: tuple[Attribute, ...]) -> tuple[Expression, ...]:
        types = self.random.choices(sorted(LITERALS), k=self.random.choice([0, 1, 1, 2]))
        found = [self.expression(type_, scope, self.random.choice([0, 1])) for type_ in types]
        return tuple(dict.fromkeys(each for each in found if not isinstance(each, Literal)))

    def aggregate_call(self, scope: tuple[Attribute, ...], *, ordered: bool) -> AggregateCall:
        """An aggregate, some with FILTER and DISTINCT."""
        function = self.random.choice((*UNORDERED, *UNORDERED, *ORDERED) if ordered else UNORDERED)
        condition = self.condition(scope, 1) if self.chance(0.3) else None
        distinct = function in ("Count", "Sum", "Average") and self.chance(0.3)
        if function == "Count" and self.chance(0.4):
            return AggregateCall("Count", (Literal("1", "INT"),), "BIGINT", False, False, condition)
        type_ = self.random.choice(["INT", "STRING", "BOOLEAN"])
        if function in ("Sum", "Average"):
            type_ = "INT"
        argument = self.expression(type_, scope, 1)
        result = {"Count": "BIGINT", "Sum": "BIGINT", "Average": "DOUBLE"}.get(function, type_)
        detail = (("ignoreNulls", True),) if function in ("First", "Last", "AnyValue") and self.chance(0.5) else ()
        if function in ("CollectList", "CollectSet"):
            result = f"ARRAY<{type_}>"
        arguments = (argument, self.expression("INT", scope, 1)) if function in ("MinBy", "MaxBy") else (argument,)
        return AggregateCall(function, arguments, result, function != "Count", distinct, condition, detail)

    # -- windows ------------------------------------------------------------------------------------------------------

    def window(self, node: Node) -> Node:
        """One or two windows, by the same columns or by fewer."""
        partition = self.keys(node.output)
        calls = [self.window_call(node.output, partition, ties=self._sees_order(node))]
        if self.chance(0.3):
            calls.append(self.window_call(node.output, partition[1:], ties=self._sees_order(node)))
            self.random.shuffle(calls)
        return Window(tuple(Item(self.column(call.type), call) for call in calls), node)

    def window_call(self, scope: tuple[Attribute, ...], partition: tuple[Expression, ...], *, ties: bool) -> WindowCall:
        order = self.order(scope)
        of_rows = ("RowNumber", "Lag", "Lead") if ties else ()
        name = self.random.choice([*IN_PEERS, *of_rows, "aggregate", "aggregate"])
        match name:
            case "RowNumber" | "Rank" | "DenseRank":
                return WindowCall(Call(name, (), "INT", False), partition, order, None, "INT")
            case "Lag" | "Lead":
                offset = Literal(self.random.choice(["1", "2"]), "INT")
                call = Call(name, (self.expression("INT", scope, 1), offset, null("INT")), "INT")
                return WindowCall(call, partition, order, None, "INT")
            case _:
                return self.windowed_aggregate(scope, partition, order, ties=ties)

    def windowed_aggregate(
        self, scope: tuple[Attribute, ...], partition: tuple[Expression, ...], order: tuple[Order, ...], *, ties: bool
    ) -> WindowCall:
        function = self.random.choice(
            ["Sum", "Count", "Min", "Max", *(("First", "First", "Last", "CollectList") if ties else ())]
        )
        result = {"Sum": "BIGINT", "Count": "BIGINT", "CollectList": "ARRAY<INT>"}.get(function, "INT")
        detail = (("ignoreNulls", True),) if function in ("First", "Last") and self.chance(0.5) else ()
        call = AggregateCall(function, (self.expression("INT", scope, 1),), result, detail=detail)
        if self.chance(0.2):
            return WindowCall(call, partition, self.random.choice([(), order]), None, result)
        if ties and self.chance(0.5):
            return WindowCall(call, partition, order, self.frame("ROWS"), result)
        if self.chance(0.4):
            one = (Order(self.expression("INT", scope, 1), self.chance(0.5), self.chance(0.5)),)
            return WindowCall(call, partition, one, self.frame("RANGE"), result)
        upper = self.random.choice(["CURRENT ROW", "UNBOUNDED FOLLOWING"])
        return WindowCall(call, partition, order, Frame("RANGE", "UNBOUNDED PRECEDING", upper), result)

    def frame(self, kind: str) -> Frame:
        """A frame whose ends are in order."""
        lowest, highest = sorted(self.random.choices([-2, -1, 0, 1, 2], k=2))
        lower = "UNBOUNDED PRECEDING" if self.chance(0.3) else _end(lowest)
        upper = "UNBOUNDED FOLLOWING" if self.chance(0.3) else _end(highest)
        return Frame(kind, lower, upper)


def _end(distance: int) -> str | Literal:
    return Literal(str(distance), "INT") if distance else "CURRENT ROW"


def shown(node: Node) -> Project:
    """A tree whose output has every column once, under its number."""
    return Project(passed(tuple(dict.fromkeys(node.output))), node)

"""Decomposition: the tree of a query, cut into blocks.

Filters, projections, unnesting, joins and unions stay together as rows. Where rows are grouped or seen through a window
a block ends, with the projections and filters above it; if more stands above, it is kept as a hidden view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stepwell.algebra.aggregates import ORDERED_BY_TIME, WITH_STATES, GroupResult, takes_condition
from stepwell.algebra.expressions import (
    ROW,
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Literal,
    Named,
    Order,
    WindowCall,
    and_all,
    columns_in,
    conjuncts,
    null,
    size_of,
    substitute,
    transform,
    walk,
)
from stepwell.algebra.nodes import (
    Aggregate,
    Filter,
    Fresh,
    Item,
    Join,
    Moment,
    Node,
    Project,
    Scan,
    Union,
    Unnest,
    Values,
    Window,
    expressions_of,
    with_children,
)
from stepwell.algebra.printing import print_expression
from stepwell.algebra.reading import QueryTree, UnknownPartError
from stepwell.model.limits import Limits
from stepwell.plan.times import Times, interval_of, time_column_of, transfers_of
from stepwell.rules.blocks import (
    LEAF,
    Block,
    GroupBlock,
    RowBlock,
    ViewPlan,
    WindowBlock,
    with_small_numbers,
)


def decomposed(query: QueryTree, names: tuple[str, ...], times: Times, limits: Limits) -> ViewPlan:
    """The blocks of a lowered query whose outputs have these names."""
    cutter = _Decomposition(query.tree, times, limits)
    root = cutter.block(query.tree, query.outputs, names)
    return ViewPlan(with_small_numbers(root), tuple(cutter.hidden))


class _Decomposition:
    def __init__(self, tree: Node, times: Times, limits: Limits) -> None:
        self._most = limits.block_expressions
        self._fresh = Fresh(tree)
        self._times = dict(times)
        self.hidden: list[Block] = []

    # -- blocks -------------------------------------------------------------------------------------------------------

    def block(self, node: Node, outputs: tuple[Attribute, ...], names: tuple[str, ...]) -> Block:
        windows, base = _chain(node)
        if windows:
            return self._window(node, outputs, names)
        if isinstance(base, Aggregate):
            found = self._group(node, base, outputs, names)
            if found is not None:
                return found
        return RowBlock(self._rows(node), outputs, names)

    def _rows(self, node: Node) -> Node:
        """A tree of rows: what is not becomes a hidden block, and the rows are those of it."""
        match node:
            case Scan() | Values():
                return node
            case Join() | Union():
                return with_children(node, tuple(self._rows(child) for child in _children(node)))
            case Unnest():
                return replace(node, child=self._rows(node.child))
            case Project() | Filter():
                windows, base = _chain(node)
                if windows or (isinstance(base, Aggregate) and self._is_short(node, base)):
                    return self._kept(node)
                return replace(node, child=self._rows(node.child))
            case Aggregate() | Window():
                return self._kept(node)
            case _:
                raise UnknownPartError(type(node).__name__)

    def _kept(self, node: Node) -> Scan:
        """The rows of a hidden block; one that is there twice is kept once."""
        outputs = tuple(dict.fromkeys(node.output))
        names = tuple(f"_sw_h{index}" for index in range(len(outputs)))
        block = with_small_numbers(self.block(node, outputs, names))
        if block not in self.hidden:
            self.hidden.append(block)
            transfers = transfers_of(block, self._times)
            timed = next((name for name, transfer in zip(names, transfers, strict=True) if transfer is not None), None)
            if timed is not None:
                self._times[-len(self.hidden)] = timed
        return Scan(-1 - self.hidden.index(block), outputs, names)

    # -- groups -------------------------------------------------------------------------------------------------------

    def _is_short(self, node: Node, base: Aggregate) -> bool:
        """Whether what stands above the groups can be computed with them."""
        return _above(node, base, {item.column.id: item.expression for item in base.items}, self._most) is not None

    def _group(
        self, node: Node, base: Aggregate, outputs: tuple[Attribute, ...], names: tuple[str, ...]
    ) -> GroupBlock | None:
        keys = tuple(dict.fromkeys(base.keys))
        rows = self._rows(base.child)
        key_columns = [self._fresh.column(key.type, nullable=key.nullable) for key in keys]
        results = _Results(self._fresh, rows, self._times)
        named: dict[Expression, Expression] = {key: Named(f"_sw_g{index}", key.type) for index, key in enumerate(keys)}

        def change(each: Expression) -> Expression | None:
            if each in named:
                return named[each]
            return results.name(each) if isinstance(each, AggregateCall) else None

        values = {item.column.id: transform(item.expression, change) for item in base.items}
        above = _above(node, base, values, self._most)
        if above is None:
            return None
        shown, conditions = above
        items = tuple(shown[each.id] for each in outputs)
        is_distinct = not results.found and items == tuple(named.values())
        project = Project((*(Item(c, k) for c, k in zip(key_columns, keys, strict=True)), *results.items), rows)
        columns = (*key_columns, *(item.column for item in results.items))
        row_names = (
            *(f"_sw_g{index}" for index in range(len(keys))),
            *(f"_sw_x{index}" for index in range(len(results.items))),
        )
        block = RowBlock(project, columns, row_names)
        transfers = transfers_of(block, self._times)[: len(keys)]
        time_key = next((index for index, transfer in enumerate(transfers) if transfer is not None), None)
        return GroupBlock(
            block,
            len(keys),
            tuple(key.type for key in keys),
            tuple(results.found),
            items,
            names,
            and_all(conditions) if conditions else None,
            is_distinct,
            time_key,
        )

    # -- windows ------------------------------------------------------------------------------------------------------

    def _window(self, node: Node, outputs: tuple[Attribute, ...], names: tuple[str, ...]) -> WindowBlock:
        lowest = node
        current: Node | None = node
        while isinstance(current, Project | Filter | Window):
            if isinstance(current, Window):
                lowest = current
            current = current.child
        assert isinstance(lowest, Window)
        rows = self._rows(lowest.child)
        base = tuple(dict.fromkeys(lowest.child.output))
        used = _columns_used(node, lowest, outputs)
        base = tuple(each for each in base if each.id in used) or base[:1]
        keys = _shared_partition(node, lowest)
        key_columns = [self._fresh.column(key.type, nullable=key.nullable) for key in keys]
        copies = [self._fresh.like(each) for each in base]  # a key may be one of them
        shown = tuple(Item(copy, own) for copy, own in zip(copies, base, strict=True))
        project = Project((*(Item(c, k) for c, k in zip(key_columns, keys, strict=True)), *shown), rows)
        row_names = (
            *(f"_sw_g{index}" for index in range(len(keys))),
            *(f"_sw_x{index}" for index in range(len(base))),
        )
        leaf = Scan(LEAF, base, tuple(f"_sw_x{index}" for index in range(len(base))), Moment.AFTER)
        top = _with_leaf(node, lowest, leaf)
        parts = [part for level in _levels(node, lowest) for each in expressions_of(level) for part in walk(each)]
        block = RowBlock(project, (*key_columns, *copies), row_names)
        return WindowBlock(block, len(keys), top, outputs, names, ROW in parts)


class _Results:
    """The aggregates of a group, each once, and the columns of the rows that they read."""

    def __init__(self, fresh: Fresh, rows: Node, times: Mapping[int, str]) -> None:
        self._fresh = fresh
        self._names: dict[AggregateCall, Named] = {}
        self._arguments: dict[Expression, Named] = {}
        self._time = time_column_of(rows, times)
        self.items: list[Item] = []
        self.found: list[GroupResult] = []

    def name(self, call: AggregateCall) -> Named:
        if call not in self._names:
            self._names[call] = Named(f"_sw_r{len(self.found)}", call.type)
            self.found.append(self._result(call))
        return self._names[call]

    def _argument(self, expression: Expression, function: str) -> Named:
        if function in WITH_STATES:
            return self._column(expression)
        if not columns_in(expression) and not any(each == ROW for each in walk(expression)):
            return Named(print_expression(expression), expression.type)  # a constant stays one: some have to be
        return self._column(expression)

    def _column(self, expression: Expression) -> Named:
        """A column of the rows for an expression, the same for the same one."""
        if expression not in self._arguments:
            self._arguments[expression] = Named(f"_sw_x{len(self.items)}", expression.type)
            column = self._fresh.column(expression.type, nullable=expression.nullable)
            self.items.append(Item(column, expression))
        return self._arguments[expression]

    def _result(self, call: AggregateCall) -> GroupResult:
        condition, arguments = call.filter, call.arguments
        said = call.get("session")
        gap = interval_of(Literal(said, "INTERVAL")) if said is not None else None
        if call.function == "Count" and _is_constant(arguments) and not call.distinct:
            arguments = ()
            if condition is not None:
                arguments, condition = (Call("If", (condition, Literal("1", "INT"), null("INT")), "INT"),), None
        if call.function in ("First", "Last") and call.get("ignoreNulls") is True:
            there = Call("IsNotNull", (arguments[0],), "BOOLEAN", nullable=False)
            condition = there if condition is None else and_all([*conjuncts(condition), there])
        if condition is not None and not takes_condition(call.function):
            kept = arguments if call.function not in ("MinBy", "MaxBy") else arguments[1:]
            masked = tuple(Call("If", (condition, each, null(each.type)), each.type) for each in kept)
            if _skips_nulls(call):
                arguments = masked if len(kept) == len(arguments) else (arguments[0], *masked)
                condition = None
        if call.function in ORDERED_BY_TIME and self._time is not None and len(arguments) == 1:
            arguments = (arguments[0], self._time)
        named = tuple(self._argument(each, call.function) for each in arguments)
        held = self._column(condition) if condition is not None else None
        pairs = zip(arguments, named, strict=True)
        shown: tuple[Expression, ...] = tuple(name if columns_in(each) else each for each, name in pairs)
        shown = shown[: len(call.arguments)] if call.function in ORDERED_BY_TIME else shown
        shown = shown or tuple(each for each in call.arguments if isinstance(each, Literal))
        order = tuple(replace(each, expression=self._column(each.expression)) for each in call.order)
        if call.function == "ListAgg" and not call.distinct:  # rows that are equal in the order go by their identity
            order = (*order, Order(Named("_sw_id", "BIGINT")))
        direct = replace(call, arguments=shown, filter=held, order=order)
        plain = not (call.distinct and call.function not in ("Min", "Max")) and call.get("evalMode") is None
        if held is not None and not takes_condition(call.function):
            plain = False
        return GroupResult(
            call.function,
            direct,
            tuple(each.name for each in named),
            tuple(each.type for each in named),
            call.type,
            plain,
            held.name if held is not None and takes_condition(call.function) else None,
            gap,
        )


def _is_constant(arguments: tuple[Expression, ...]) -> bool:
    return all(isinstance(each, Literal) and not each.nullable for each in arguments)


_SKIP_NULLS = frozenset(
    {
        "Count", "Sum", "Average", "Min", "Max", "CollectList", "CollectSet", "MinBy", "MaxBy", "count_if", "bool_and",
        "CountIf", "BoolAnd", "BoolOr",
        "bool_or", "every", "some", "any", "StddevSamp", "StddevPop", "VarianceSamp", "VariancePop", "Skewness",
        "Kurtosis", "HyperLogLogPlusPlus", "Percentile", "ApproximatePercentile", "BitAndAgg", "BitOrAgg", "BitXorAgg",
    }
)  # fmt: skip
"""Aggregates for which a row whose argument is NULL is not there."""


def _skips_nulls(call: AggregateCall) -> bool:
    if call.function == "CollectList" and call.get("ignoreNulls") is False:
        return False
    return call.function in _SKIP_NULLS and len(call.arguments) <= 2 and not (call.distinct and len(call.arguments) > 1)


# -- chains -----------------------------------------------------------------------------------------------------------


def _children(node: Join | Union) -> tuple[Node, ...]:
    return node.children if isinstance(node, Union) else (node.left, node.right)


def _chain(node: Node) -> tuple[bool, Node]:
    """Whether windows stand among the projections and filters at the top of a tree, and what stands below these."""
    windows = False
    while isinstance(node, Project | Filter | Window):
        windows = windows or isinstance(node, Window)
        node = node.child
    return windows, node


def _above(
    node: Node, base: Aggregate, values: dict[int, Expression], most: int
) -> tuple[dict[int, Expression], list[Expression]] | None:
    """What the projections and filters above some groups make of them; None if that is more than so many parts."""
    levels: list[Project | Filter] = []
    current = node
    while current is not base:
        assert isinstance(current, Project | Filter)
        levels.append(current)
        current = current.child
    conditions: list[Expression] = []
    for level in reversed(levels):
        if isinstance(level, Filter):
            conditions.append(substitute(level.condition, values))
        else:
            values = {item.column.id: substitute(item.expression, values) for item in level.items}
        if any(each == ROW for value in (*values.values(), *conditions) for each in walk(value)):
            return None
        if sum(map(size_of, (*values.values(), *conditions))) > most:
            return None
    return values, conditions


def _levels(node: Node, lowest: Node) -> list[Node]:
    found = [node]
    while node is not lowest:
        assert isinstance(node, Project | Filter | Window)
        node = node.child
        found.append(node)
    return found


def _with_leaf(node: Node, lowest: Window, leaf: Scan) -> Node:
    if node is lowest:
        return replace(lowest, child=leaf)
    assert isinstance(node, Project | Filter | Window)
    return replace(node, child=_with_leaf(node.child, lowest, leaf))


def _columns_used(node: Node, lowest: Window, outputs: tuple[Attribute, ...]) -> frozenset[int]:
    """The columns that a chain of projections, filters and windows reads of what stands below it."""
    wanted = {each.id for each in outputs}
    for level in _levels(node, lowest):
        if isinstance(level, Project):
            wanted = {
                number for item in level.items if item.column.id in wanted for number in columns_in(item.expression)
            }
        else:
            wanted |= {number for each in expressions_of(level) for number in columns_in(each)}
    return frozenset(wanted)


def _shared_partition(node: Node, lowest: Window) -> tuple[Expression, ...]:
    """What all windows of a chain are partitioned by, in the columns below the lowest."""
    values: dict[int, Expression] = {each.id: each for each in lowest.child.output}
    shared: list[Expression] | None = None
    for level in reversed(_levels(node, lowest)):
        if isinstance(level, Project):
            values = {
                item.column.id: substitute(item.expression, values)
                for item in level.items
                if columns_in(item.expression) <= values.keys()
            }
        if isinstance(level, Window):
            for item in level.items:
                for each in walk(item.expression):
                    if isinstance(each, WindowCall):
                        own = [substitute(key, values) for key in each.partition if columns_in(key) <= values.keys()]
                        shared = own if shared is None else [key for key in shared if key in own]
    return tuple(dict.fromkeys(shared or ()))

"""States: what is kept of the rows of a group for an aggregate, as values of the algebra, and as columns.

A rule speaks of a state as one value: made of signed rows, merged with another, finished to the aggregate's result.
What it consists of (the limbs of an exact sum, a row with its order) is the affair of `aggregates`; `StateParts`
puts these parts in the place of each state, once, before a tree is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stepwell.algebra.aggregates import GroupResult, Kind, Part, State, state_of
from stepwell.algebra.expressions import (
    FALSE,
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Literal,
    null,
    template,
    transform,
)
from stepwell.algebra.nodes import (
    Aggregate,
    Filter,
    Fresh,
    Item,
    Join,
    Node,
    Project,
    Scan,
    Union,
    children_of,
    with_children,
)

ALL, CAME, WENT = "all", "came", "went"
"""The rows that a state is made of: all of a change with their signs, or one side of it."""


def type_of(index: int) -> str:
    """The type of a state of the aggregate with this number."""
    return f"STATE {index}"


def is_state(expression: Expression) -> bool:
    return expression.type.startswith("STATE ")


def partial_state(
    index: int,
    result: GroupResult,
    arguments: Sequence[Expression],
    sign: Expression,
    id_: Expression,
    condition: Expression | None,
    *,
    exact: bool = False,
    rows: str = ALL,
) -> AggregateCall:
    """The state of signed rows. One that is `exact` takes any value, and is made of all rows of a group only."""
    held = (*arguments, sign, id_, *((condition,) if condition is not None else ()))
    detail = (("of", result), ("exact", exact), ("rows", rows))
    return AggregateCall("PartialState", held, type_of(index), detail=detail)


def merged(old: Expression, new: Expression) -> Call:
    """Two states as one."""
    return Call("MergedState", (old, new), old.type)


def combined(state: Expression) -> AggregateCall:
    """The states of several groups as one: what merging them one by one comes to."""
    return AggregateCall("CombinedState", (state,), state.type)


def finished(state: Expression, result: GroupResult) -> Call:
    """The result of an aggregate, from its state."""
    return Call("FinishedState", (state,), result.result_type)


def is_odd(state: Expression) -> Call:
    """Whether a state holds values that adding up signed rows cannot follow."""
    return Call("IsOddState", (state,), "BOOLEAN")


def matters(old: Expression, went: Expression) -> Call:
    """Whether the best of the rows that went may have been what is kept."""
    return Call("LostBest", (old, went), "BOOLEAN", nullable=False)


def replaces(came: Expression, went: Expression) -> Call:
    """Whether a row that came is as good as the best of those that went."""
    return Call("ReplacedBest", (came, went), "BOOLEAN", nullable=False)


def part_names(index: int, state: State) -> tuple[str, ...]:
    """The columns in which a state is stored."""
    return tuple(f"_sw_p{index}_{number}" for number in range(len(state.parts)))


class StateParts:
    """Puts the parts of the states of some aggregates in the place of these states, in one tree and what reads it."""

    def __init__(self, results: Sequence[GroupResult], tree: Node) -> None:
        self._states = [state_of(each) for each in results]
        self._fresh = Fresh(tree)
        self._columns: dict[int, tuple[Attribute, ...]] = {}

    def _state(self, expression: Expression) -> State:
        return self._states[int(expression.type.removeprefix("STATE "))]

    # -- nodes --------------------------------------------------------------------------------------------------------

    def node(self, node: Node) -> Node:
        match node:
            case Scan():
                return self._scan(node)
            case Project(items, child):
                below = self.node(child)
                return Project(self._items(items), below)
            case Aggregate(keys, items, child):
                below = self.node(child)
                return Aggregate(keys, self._items(items), below)
            case Filter(condition, child):
                return Filter(self.expression(condition), self.node(child))
            case Join():
                return replace(node, left=self.node(node.left), right=self.node(node.right))
            case Union(columns, children):
                return Union(self._split(columns), tuple(self.node(child) for child in children))
            case _:
                return with_children(node, tuple(self.node(child) for child in children_of(node)))

    def outputs(self, outputs: Sequence[tuple[Expression, str]]) -> tuple[tuple[Expression, str], ...]:
        """Named columns, with those of its parts for each state."""
        found: list[tuple[Expression, str]] = []
        for each, name in outputs:
            if is_state(each):
                found += [(part, f"{name}_{number}") for number, part in enumerate(self.parts(each))]
            else:
                found.append((self.expression(each), name))
        return tuple(found)

    def _scan(self, scan: Scan) -> Scan:
        columns: list[Attribute] = []
        names: list[str] = []
        for column, name in zip(scan.columns, scan.names, strict=True):
            parts = self._split((column,))
            columns += parts
            names += [f"{name}_{number}" for number in range(len(parts))] if is_state(column) else [name]
        return replace(scan, columns=tuple(columns), names=tuple(names))

    def _split(self, columns: Sequence[Attribute]) -> tuple[Attribute, ...]:
        found: list[Attribute] = []
        for each in columns:
            if is_state(each):
                if each.id not in self._columns:
                    parts = self._state(each).parts
                    self._columns[each.id] = tuple(self._fresh.column(part.type) for part in parts)
                found += self._columns[each.id]
            else:
                found.append(each)
        return tuple(found)

    def _items(self, items: Sequence[Item]) -> tuple[Item, ...]:
        found: list[Item] = []
        for item in items:
            if is_state(item.column):
                pairs = zip(self._split((item.column,)), self.parts(item.expression), strict=True)
                found += [Item(column, part) for column, part in pairs]
            else:
                found.append(Item(item.column, self.expression(item.expression)))
        return tuple(found)

    # -- expressions --------------------------------------------------------------------------------------------------

    def parts(self, expression: Expression) -> tuple[Expression, ...]:
        """The parts of a state, one by one."""
        state = self._state(expression)
        match expression:
            case Attribute():
                return self._split((expression,))
            case Literal():
                return tuple(null(part.type) for part in state.parts)
            case AggregateCall(function="PartialState"):
                return self._partial(expression, state)
            case AggregateCall(function="CombinedState", arguments=(each,)):
                held = zip(state.parts, self.parts(each), strict=True)
                return tuple(template(_combining(part), {"s": one}, part.type) for part, one in held)
            case Call(function="MergedState", arguments=(old, new)):
                pairs = zip(state.parts, self.parts(old), self.parts(new), strict=True)
                return tuple(
                    template(f"CAST({part.merge} AS {part.type})", {"o": one, "p": other}, part.type)
                    for part, one, other in pairs
                )
            case Call(function="If", arguments=(condition, then, otherwise)):
                chosen = self.expression(condition)
                pairs_ = zip(state.parts, self.parts(then), self.parts(otherwise), strict=True)
                return tuple(Call("If", (chosen, one, other), part.type) for part, one, other in pairs_)
            case _:
                raise AssertionError(f"{expression} is no state")

    def _partial(self, call: AggregateCall, state: State) -> tuple[Expression, ...]:
        result: GroupResult = call.get("of")
        count = len(result.argument_types)
        names = [*(f"x{index}" for index in range(count)), "sign", "id", "if"]
        values: Mapping[str, Expression] = dict(zip(names, map(self.expression, call.arguments), strict=False))
        if call.get("rows") == ALL:
            texts = [part.sql(careful=call.get("exact")) for part in state.parts]
        else:
            test = "{sign} > 0" if call.get("rows") == CAME else "{sign} < 0"
            texts = [f"CAST({part.partial} FILTER (WHERE {test}) AS {part.type})" for part in state.parts]
        return tuple(template(text, values, part.type) for text, part in zip(texts, state.parts, strict=True))

    def expression(self, expression: Expression) -> Expression:
        """An expression that is no state, but may speak of some."""
        return transform(expression, self._spoken)

    def _spoken(self, each: Expression) -> Expression | None:
        match each:
            case Call(function="FinishedState", arguments=(state,)):
                parts = {str(index): part for index, part in enumerate(self.parts(state))}
                return template(self._state(state).finish, parts, each.type)
            case Call(function="IsOddState", arguments=(state,)):
                check = self._state(state).check
                parts = {str(index): part for index, part in enumerate(self.parts(state))}
                return FALSE if check is None else template(f"coalesce({check}, false)", parts, "BOOLEAN")
            case Call(function="LostBest", arguments=(old, went)):
                part, values = self._best(old), {"b": self.parts(old)[0], "a": self.parts(went)[0]}
                return template(f"({{a}} IS NOT NULL AND NOT coalesce({part.worse}, false))", values, "BOOLEAN")
            case Call(function="ReplacedBest", arguments=(came, went)):
                part, values = self._best(came), {"a": self.parts(came)[0], "b": self.parts(went)[0]}
                odd = part.odd.replace("{a}", "{b}")
                text = f"coalesce({{a}} IS NOT NULL AND NOT ({part.worse}) AND NOT ({odd}), false)"
                return template(text, values, "BOOLEAN")
            case Call() if any(is_state(argument) for argument in each.arguments):
                arguments = [
                    part
                    for argument in each.arguments
                    for part in (self.parts(argument) if is_state(argument) else (self.expression(argument),))
                ]
                return replace(each, arguments=tuple(arguments))
            case _:
                return None

    def _best(self, state: Expression) -> Part:
        (part,) = self._state(state).parts
        assert part.worse is not None
        return part


def _combining(part: Part) -> str:
    """Many of a part as one, by the merge of two; a state has few parts, and these come from few groups."""
    merge = part.merge.replace("{o}", "_sw_o").replace("{p}", "_sw_p")
    return f"aggregate(collect_list({{s}}), CAST(NULL AS {part.type}), (_sw_o, _sw_p) -> CAST({merge} AS {part.type}))"


def can_lose(states: Sequence[State]) -> bool:
    """Whether it can be seen in states that a row which was taken back did not matter."""
    return all(
        state.kind == Kind.INVERTIBLE or (len(state.parts) == 1 and state.parts[0].worse is not None)
        for state in states
    )

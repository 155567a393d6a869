"""Reading: Spark's analyzed plan, as the reader in the JVM has written it down, to nodes of the algebra.

Nothing is guessed: a node or an expression that is not known here raises `UnknownPartError` with its name, and the
query is computed as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepwell.algebra.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Frame,
    Literal,
    Order,
    Subquery,
    Variable,
    WindowCall,
    columns_in,
)
from stepwell.algebra.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Fresh,
    Generate,
    Item,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    Sort,
    Union,
    Values,
    Window,
)

Json = dict[str, Any]


class UnknownPartError(Exception):
    """A node or an expression that the algebra does not know, by the name that Spark has for it."""


@dataclass(frozen=True, slots=True)
class QueryTree:
    """A query as it was read: its tree, and which of its columns are the outputs, in order; one may be there twice."""

    tree: Node
    outputs: tuple[Attribute, ...]
    sessions: frozenset[int] = frozenset()
    """The columns that are sessions: grouping by one of them merges those that overlap."""
    windows: frozenset[int] = frozenset()
    """The columns that are windows of time, as a struct of start and end."""
    names: Mapping[int, str] | None = None


def read_query(plan: Json, relations: Mapping[str, int]) -> QueryTree:
    """The query of a plan. `relations` are the numbers of the placeholders in it."""
    reader = _Reader(relations)
    tree, outputs = reader.node(plan)
    return QueryTree(tree, outputs, frozenset(reader.sessions), frozenset(reader.windows), reader.names)


class _Reader:
    def __init__(self, relations: Mapping[str, int]) -> None:
        self._relations = relations
        self._last = 1 << 40
        self.sessions: set[int] = set()
        self.windows: set[int] = set()
        self.names: dict[int, str] = {}

    def _fresh(self, column: Attribute) -> Attribute:
        self._last += 1
        return Attribute(self._last, column.type, column.nullable)

    # -- nodes --------------------------------------------------------------------------------------------------------

    def node(self, json: Json) -> tuple[Node, tuple[Attribute, ...]]:
        """A node, and its output by position."""
        output = tuple(Attribute(number, type_, nullable) for number, _, type_, nullable in json["output"])
        self.names.update({number: name for number, name, _, _ in json["output"]})
        make = getattr(self, f"_{json['is'].lower()}", None)
        if make is None:
            raise UnknownPartError(json["is"])
        found: Node = make(json, output)
        return found, output

    def _child(self, json: Json, index: int = 0) -> Node:
        return self.node(json["children"][index])[0]

    def _positioned(self, json: Json, index: int) -> Node:
        """A child whose columns count by position, each under a number of its own."""
        child, outputs = self.node(json["children"][index])
        return Project(tuple(Item(self._fresh(each), each) for each in outputs), child)

    def _view(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        if json["name"] not in self._relations:
            raise UnknownPartError(f"view {json['name']}")
        names = tuple(name for _, name, _, _ in json["output"])
        return Scan(self._relations[json["name"]], output, names)

    def _localrelation(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        rows = []
        for row in json["rows"]:
            cells = [self.expression(cell) for cell in row]
            rows.append(tuple(cell for cell in cells if isinstance(cell, Literal)))
        return Values(output, tuple(rows))

    def _onerowrelation(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        return Values((), ((),))

    def _project(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        items = self._items(json["fields"]["projectList"], json)
        return Project(_each_once(items), self._child(json))

    def _filter(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        return Filter(self._field(json, "condition"), self._child(json))

    def _join(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        kind, mark = json["fields"]["joinType"], None
        if isinstance(kind, dict) and "mark" in kind:
            mark, kind = Attribute(kind["mark"], "BOOLEAN", False), "mark"
        known = {
            "Inner": JoinKind.INNER, "Cross": JoinKind.CROSS, "LeftOuter": JoinKind.LEFT,
            "RightOuter": JoinKind.RIGHT, "FullOuter": JoinKind.FULL, "LeftSemi": JoinKind.SEMI,
            "LeftAnti": JoinKind.ANTI, "mark": JoinKind.MARK,
        }  # fmt: skip
        if kind not in known:
            raise UnknownPartError(f"{kind} join")
        condition = self._field(json, "condition") if json["fields"]["condition"] is not None else None
        found = known[kind]
        if condition is None and found == JoinKind.INNER:
            found = JoinKind.CROSS
        if condition is not None and found == JoinKind.CROSS:
            found = JoinKind.INNER
        return Join(found, self._child(json, 0), self._child(json, 1), condition, mark)

    def _aggregate(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        keys = tuple(self._value(each, json) for each in json["fields"]["groupingExpressions"])
        items = self._items(json["fields"]["aggregateExpressions"], json)
        return Aggregate(keys, _each_once(items), self._child(json))

    def _generate(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        fields = json["fields"]
        generator = self._value(fields["generator"], json)
        if not isinstance(generator, Call):
            raise UnknownPartError("a generator")
        made = [self._value(each, json) for each in fields["generatorOutput"]]
        columns = tuple(each for each in made if isinstance(each, Attribute))
        return Generate(generator, bool(fields["outer"]), columns, self._child(json), fields.get("qualifier"))

    def _union(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        if json["fields"].get("byName"):
            raise UnknownPartError("UNION BY NAME")
        if len({each.id for each in output}) < len(output):
            raise UnknownPartError("UNION with a column twice")
        children = tuple(self._positioned(json, index) for index in range(len(json["children"])))
        return Union(output, children)

    def _set_operation(self, json: Json, output: tuple[Attribute, ...], kind: str) -> Node:
        if len({each.id for each in output}) < len(output):
            raise UnknownPartError(f"{kind} with a column twice")
        left, right = self._positioned(json, 0), self._positioned(json, 1)
        return SetOperation(kind, bool(json["fields"]["isAll"]), output, left, right)

    def _intersect(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        return self._set_operation(json, output, "INTERSECT")

    def _except(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        return self._set_operation(json, output, "EXCEPT")

    def _distinct(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        return Distinct(self._child(json))

    def _sort(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        return Sort(tuple(self._order(each, json) for each in json["fields"]["order"]), self._child(json))

    def _globallimit(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        inner = json["children"][0]
        if inner["is"] != "LocalLimit":
            raise UnknownPartError("GlobalLimit without LocalLimit")
        child = self._child(inner)
        count = self._whole_number(self._field(json, "limitExpr"))
        if isinstance(child, Limit) and child.count is None:
            return Limit(count, child.offset, child.child)
        return Limit(count, 0, child)

    def _offset(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        return Limit(None, self._whole_number(self._field(json, "offsetExpr")), self._child(json))

    def _window(self, json: Json, output: tuple[Attribute, ...]) -> Node:
        items = self._items(json["fields"]["windowExpressions"], json)
        return Window(items, self._child(json))

    def _whole_number(self, expression: Expression) -> int:
        text = expression.text.removesuffix("L") if isinstance(expression, Literal) else ""
        if not text.isdigit():
            raise UnknownPartError("a LIMIT that is no number")
        return int(text)

    # -- expressions --------------------------------------------------------------------------------------------------

    def _items(self, fields: list[Any], owner: Json) -> tuple[Item, ...]:
        return tuple(self._item(self._resolved(each, owner)) for each in fields)

    def _item(self, json: Json) -> Item:
        expression = self.expression(json)
        if json["is"] == "Alias":
            column = Attribute(json["id"], json["type"], bool(json["nullable"]))
            self._mark(json)
            return Item(column, expression)
        if not isinstance(expression, Attribute):
            raise UnknownPartError(json["is"])
        return Item(expression, expression)

    def _mark(self, json: Json) -> None:
        """Note what the metadata of a column say of it."""
        metadata = json.get("metadata", "")
        if '"spark.sessionWindow"' in metadata:
            self.sessions.add(json["id"])
        if '"spark.timeWindow"' in metadata:
            self.windows.add(json["id"])

    def _resolved(self, field: Any, owner: Json) -> Json:
        """A field of a node, which may be one of its children."""
        if isinstance(field, dict) and "child" in field:
            found: Json = owner["children"][field["child"]]
            return found
        if not isinstance(field, dict) or "is" not in field:
            raise UnknownPartError(f"a field of {owner['is']}")
        return field

    def _value(self, field: Any, owner: Json) -> Expression:
        return self.expression(self._resolved(field, owner))

    def _field(self, json: Json, name: str) -> Expression:
        return self._value(json["fields"][name], json)

    def _order(self, field: Any, owner: Json) -> Order:
        json = self._resolved(field, owner)
        if json["is"] != "SortOrder":
            raise UnknownPartError(json["is"])
        fields = json["fields"]
        return Order(
            self._field(json, "child"), fields["direction"] == "Ascending", fields["nullOrdering"] == "NullsFirst"
        )

    def expression(self, json: Json) -> Expression:
        kind = json["is"]
        make = getattr(self, f"_of_{kind.lower()}", None)
        if make is not None:
            found: Expression = make(json)
            return found
        if json.get("parameters") is not None:
            return self._replaceable(json)
        if json.get("type") is None:
            raise UnknownPartError(kind)
        arguments = tuple(self.expression(each) for each in json["children"])
        return Call(kind, arguments, json["type"], bool(json["nullable"]), self._detail(json))

    def _of_attributereference(self, json: Json) -> Expression:
        self._mark(json)
        return Attribute(json["id"], json["type"], bool(json["nullable"]))

    def _of_alias(self, json: Json) -> Expression:
        return self.expression(json["children"][0])

    def _of_literal(self, json: Json) -> Expression:
        return Literal(_literal(json), json["type"], bool(json["nullable"]))

    def _of_namedlambdavariable(self, json: Json) -> Expression:
        return Variable(json["id"], json["type"], bool(json["nullable"]))

    def _of_knownnullable(self, json: Json) -> Expression:
        return self.expression(json["children"][0])

    def _of_aggregateexpression(self, json: Json) -> Expression:
        fields = json["fields"]
        function = self._resolved(fields["aggregateFunction"], json)
        condition = self._value(fields["filter"], json) if fields["filter"] is not None else None
        type_, nullable = json["type"], bool(json["nullable"])
        distinct = bool(fields["isDistinct"])
        if function.get("parameters") is not None:
            called = self._replaceable(function)
            if isinstance(called, Call) and called.function == "Replaceable":
                return AggregateCall(
                    called.get("name"), called.arguments, type_, nullable, distinct, condition, called.detail
                )
            raise UnknownPartError(function["is"])
        arguments, orders = [], []
        for each in function["children"]:
            if each["is"] == "SortOrder":
                orders.append(self._order(each, function))
            else:
                arguments.append(self.expression(each))
        detail = self._detail(function)
        return AggregateCall(
            function["is"], tuple(arguments), type_, nullable, distinct, condition, detail, tuple(orders)
        )

    def _of_windowexpression(self, json: Json) -> Expression:
        function, spec = (self._resolved(json["fields"][name], json) for name in ("windowFunction", "windowSpec"))
        called = self.expression(function)
        if not isinstance(called, Call | AggregateCall):
            raise UnknownPartError(function["is"])
        fields = spec["fields"]
        partition = tuple(self._value(each, spec) for each in fields["partitionSpec"])
        order = tuple(self._order(each, spec) for each in fields["orderSpec"])
        frame = self._frame(self._resolved(fields["frameSpecification"], spec))
        return WindowCall(called, partition, order, frame, json["type"], bool(json["nullable"]))

    def _frame(self, json: Json) -> Frame | None:
        if json["is"] != "SpecifiedWindowFrame":
            return None
        fields = json["fields"]
        ends = []
        for name in ("lower", "upper"):
            end = self._resolved(fields[name], json)
            known = {
                "UnboundedPreceding": "UNBOUNDED PRECEDING",
                "UnboundedFollowing": "UNBOUNDED FOLLOWING",
                "CurrentRow": "CURRENT ROW",
            }
            ends.append(known[end["is"]] if end["is"] in known else self.expression(end))
        kind = fields["frameType"]
        return Frame("ROWS" if kind == "RowFrame" else "RANGE", ends[0], ends[1])

    def _of_scalarsubquery(self, json: Json) -> Expression:
        return self._subquery(json, "scalar")

    def _of_exists(self, json: Json) -> Expression:
        return self._subquery(json, "exists")

    def _subquery(self, json: Json, kind: str) -> Expression:
        if json["fields"].get("outerAttrs"):
            raise UnknownPartError(f"a correlated {json['is']}")
        plan, outputs = self.node(json["fields"]["plan"])
        if kind == "scalar":
            plan = Project((Item(outputs[0], outputs[0]),), plan)
        return Subquery(kind, plan, json["type"], bool(json["nullable"]), json.get("most"))

    def _replaceable(self, json: Json) -> Expression:
        """A function that Spark replaces by others: as it was written, unless analysis has left that behind."""
        inner = json["children"][0] if json["children"] else None
        try:
            arguments = tuple(self.expression(each) for each in json["parameters"])
        except UnknownPartError:
            if inner is None:
                raise
            return self.expression(inner)
        if inner is not None:
            known = _attributes(inner)
            if not all(columns_in(each) <= known for each in arguments):
                return self.expression(inner)
            if any(map(_aggregates, json["parameters"])) and not _aggregates(inner):
                return self.expression(inner)
        detail = (("name", json["pretty"]), *self._detail(json))
        return Call("Replaceable", arguments, json["type"], bool(json["nullable"]), detail)

    def _detail(self, json: Json) -> tuple[tuple[str, Any], ...]:
        """What a call holds beside its arguments."""
        found: dict[str, Any] = {"name": json["pretty"]}
        if "field" in json:
            found["fieldName"] = json["field"]
        for name, value in json["fields"].items():
            if name in _IGNORED or value is None or _has_child(value) or _has_tree(value):
                continue
            found[name] = value
        mode = json["fields"].get("evalMode") or json["fields"].get("evalContext")
        mode = mode.get("evalMode") if isinstance(mode, dict) else mode
        if isinstance(mode, str) and mode != "ANSI":
            found["evalMode"] = mode
        return tuple((name, _frozen(value)) for name, value in found.items())


_IGNORED = frozenset(
    {
        "timeZoneId", "evalMode", "evalContext", "mutableAggBufferOffset", "inputAggBufferOffset", "failOnError",
        "ansiEnabled", "nullOnOverflow", "replacement", "resultId", "nanoOfSecond", "exprId", "func", "dataType",
    }
)  # fmt: skip


def _each_once(items: tuple[Item, ...]) -> tuple[Item, ...]:
    return tuple({item.column.id: item for item in items}.values())


def _has_child(value: Any) -> bool:
    if isinstance(value, dict):
        return "child" in value or any(_has_child(each) for each in value.values())
    return isinstance(value, list) and any(_has_child(each) for each in value)


def _has_tree(value: Any) -> bool:
    if isinstance(value, dict):
        return "children" in value or any(_has_tree(each) for each in value.values())
    return isinstance(value, list) and any(_has_tree(each) for each in value)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, _frozen(each)) for name, each in value.items())
    if isinstance(value, list):
        return tuple(_frozen(each) for each in value)
    return value


def _aggregates(json: Json) -> bool:
    """Whether an expression has an aggregate in it."""
    return json["is"] == "AggregateExpression" or any(map(_aggregates, json.get("children", ())))


def _attributes(json: Json) -> frozenset[int]:
    found: set[int] = set()
    waiting = [json]
    while waiting:
        each = waiting.pop()
        if each["is"] == "AttributeReference":
            found.add(each["id"])
        waiting.extend(each.get("children", ()))
    return frozenset(found)


def _literal(json: Json) -> str:
    text: str = json["sql"]
    if json["type"].startswith("STRING COLLATE"):  # which it took on from what it is compared with
        return text[: text.lower().rindex(" collate ")] if " collate " in text.lower() else text
    if text == "NULL" and json["type"] != "VOID":  # of arrays, maps and structs Spark writes no type
        return f"CAST(NULL AS {json['type']})"
    if json["type"] == "FLOAT" and text.startswith("CAST('"):
        inner = text[len("CAST('") : text.index("'", len("CAST('"))]
        if inner.lower() not in ("nan", "infinity", "-infinity"):
            return f"{inner}F"
    return text


__all__ = ["Fresh", "QueryTree", "UnknownPartError", "read_query"]

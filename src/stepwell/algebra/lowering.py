"""Lowering: a tree as Spark analyzed it, to one of fewer kinds of nodes that means the same.

A subquery in an expression      a join
RIGHT JOIN                       LEFT JOIN of the other side
explode, inline, stack, …        Unnest, which counts the elements
DISTINCT                         groups of all columns
INTERSECT, EXCEPT                groups with a count for each side
ORDER BY … LIMIT n               the rows whose number is at most n
sessions                         the start of each row's session by windows, then groups
an order with ties               the same order, ended by the row's identity
GROUP BY window(…)               groups by the start of the window

What is left: Scan, Values, Project, Filter, Join, Aggregate, Unnest, Union and Window.
"""

from __future__ import annotations

from dataclasses import replace

from stepwell.algebra.expressions import (
    ROW,
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Frame,
    Literal,
    Order,
    Subquery,
    WindowCall,
    and_all,
    columns_in,
    null,
    number,
    substitute,
    transform,
    walk,
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
    SetOperation,
    Sort,
    Union,
    Unnest,
    Window,
    children_of,
    expressions_of,
    passed,
    with_children,
)
from stepwell.algebra.reading import QueryTree, UnknownPartError


def lowered(query: QueryTree) -> QueryTree:
    """The query in the few kinds of nodes that have rules."""
    lowering = _Lowering(query)
    return replace(query, tree=lowering.node(query.tree))


class _Lowering:
    def __init__(self, query: QueryTree) -> None:
        self._fresh = Fresh(query.tree)
        self._sessions = query.sessions
        self._windows = query.windows

    def node(self, node: Node) -> Node:
        node = self._joined(node)
        if isinstance(node, Limit):
            return self._limit(node)
        if isinstance(node, Sort):
            return self.node(node.child)
        node = with_children(node, tuple(self.node(child) for child in children_of(node)))
        match node:
            case Join(kind=JoinKind.RIGHT):
                swapped = Join(JoinKind.LEFT, node.right, node.left, node.condition)
                return Project(passed(node.output), swapped)
            case Generate():
                return self._generate(node)
            case Distinct(child):
                return Aggregate(child.output, passed(child.output), child)
            case SetOperation():
                return self._set_operation(node)
            case Aggregate():
                return self._aggregate(node)
            case Window():
                return self._window(node)
            case _:
                return node

    # -- subqueries ---------------------------------------------------------------------------------------------------

    def _joined(self, node: Node) -> Node:
        """Subqueries in the expressions of a node, as joins below it."""
        found = [each for expression in expressions_of(node) for each in walk(expression) if isinstance(each, Subquery)]
        if not found:
            return node
        below = children_of(node)
        if not below:
            raise UnknownPartError("a subquery in such a place")
        if isinstance(node, Aggregate) and not _only_in_keys_or_arguments(node):
            return self._joined(self._apart(node))
        child, values = below[0], {}
        for subquery in dict.fromkeys(found):
            child, value = self._with_subquery(child, subquery)
            values[subquery] = value
        kept = with_children(node, (child, *below[1:]))
        changed = _with_expressions(kept, lambda each: values.get(each) if isinstance(each, Subquery) else None)
        if isinstance(changed, Filter | Join | Limit | Sort | Distinct):
            return Project(passed(node.output), changed)
        return changed

    def _apart(self, node: Aggregate) -> Project:
        """A group whose items are made of more than its keys and aggregates: these first, and the items of them."""
        made: dict[Expression, Item] = {}

        def change(each: Expression) -> Expression | None:
            if each not in node.keys and not isinstance(each, AggregateCall):
                return None
            column = each if isinstance(each, Attribute) else self._fresh.column(each.type)
            return made.setdefault(each, Item(column, each)).column

        items = tuple(replace(item, expression=transform(item.expression, change)) for item in node.items)
        known = {item.column.id for item in made.values()}
        if any(columns_in(item.expression) - known for item in items):
            raise UnknownPartError("a subquery in such a place")
        return Project(items, Aggregate(node.keys, tuple(made.values()), node.child))

    def _with_subquery(self, child: Node, subquery: Subquery) -> tuple[Node, Expression]:
        if subquery.kind == "exists":
            mark = self._fresh.column("BOOLEAN", nullable=False)
            return Join(JoinKind.MARK, child, subquery.plan, None, mark), mark
        plan = subquery.plan
        assert isinstance(plan, Project)
        is_one = isinstance(plan.child, Aggregate) and not plan.child.keys
        if not is_one and (subquery.most is None or subquery.most > 1):
            raise UnknownPartError("a subquery that may have several rows")
        column = self._fresh.column(subquery.type)
        renamed = Project((Item(column, plan.items[0].expression),), plan.child)
        return Join(JoinKind.CROSS if is_one else JoinKind.LEFT, child, renamed), column

    # -- generators ---------------------------------------------------------------------------------------------------

    def _generate(self, node: Generate) -> Node:
        generator, columns = node.generator, node.columns
        place = self._fresh.column("INT", nullable=node.outer)
        array, shown = self._elements(generator, columns)
        element = self._fresh.column(_element_type(array.type))
        items = [Item(column, shown(column, index, element, place)) for index, column in enumerate(columns)]
        unnest = Unnest(array, element, place, node.outer, node.child)
        return Project((*passed(node.child.output), *items), unnest)

    def _elements(self, generator: Call, columns: tuple[Attribute, ...]):  # type: ignore[no-untyped-def]  # a closure
        """What a generator makes, as an array, and how a column follows from an element of it."""
        name, arguments = generator.function, generator.arguments
        if name in ("Explode", "PosExplode"):
            array = arguments[0]
            if array.type.startswith("MAP<"):
                array = Call(
                    "MapEntries", (array,), f"ARRAY<{_entry_type(array.type)}>", True, (("name", "map_entries"),)
                )
                fields = ["key", "value"]
            else:
                fields = []
            shift = 1 if name == "PosExplode" else 0

            def of_element(column: Attribute, index: int, element: Attribute, place: Attribute) -> Expression:
                if index < shift:
                    return place
                return _field(element, fields[index - shift], column) if fields else element

            return array, of_element
        if name == "Inline":
            names = _field_names(arguments[0].type)

            def of_struct(column: Attribute, index: int, element: Attribute, place: Attribute) -> Expression:
                return _field(element, names[index], column)

            return arguments[0], of_struct
        if name == "Stack":
            count = int(arguments[0].text) if isinstance(arguments[0], Literal) else 0
            if count < 1:
                raise UnknownPartError("stack of no number of rows")
            cells, structs = list(arguments[1:]), []
            for row in range(count):
                parts: list[Expression] = []
                for index, column in enumerate(columns):
                    at = row * len(columns) + index
                    value = cells[at] if at < len(cells) else null(column.type)
                    value = value if value.type == column.type else Call("Cast", (value,), column.type)
                    parts.extend((Literal(f"'e{index}'", "STRING"), value))
                structs.append(Call("CreateNamedStruct", tuple(parts), _struct_type(columns)))

            def of_cell(column: Attribute, index: int, element: Attribute, place: Attribute) -> Expression:
                return _field(element, f"e{index}", column)

            return Call("CreateArray", tuple(structs), f"ARRAY<{_struct_type(columns)}>"), of_cell
        raise UnknownPartError(name)

    # -- sets and limits ----------------------------------------------------------------------------------------------

    def _set_operation(self, node: SetOperation) -> Node:
        """Groups of equal rows with how many there are on each side."""
        sides = []
        columns = tuple(self._fresh.like(each) for each in node.columns)
        in_left, in_right = (self._fresh.column("BIGINT", nullable=False) for _ in range(2))
        for child, (left, right) in ((node.left, (1, 0)), (node.right, (0, 1))):
            items = [Item(self._fresh.like(each), each) for each in child.output]
            items += [Item(self._fresh.column("BIGINT"), number(each)) for each in (left, right)]
            sides.append(Project(tuple(items), child))
        both = Union((*columns, in_left, in_right), tuple(sides))
        counts = [self._fresh.column("BIGINT") for _ in range(2)]
        totals = [
            Item(count, AggregateCall("Sum", (each,), "BIGINT", detail=(("name", "sum"),)))
            for count, each in zip(counts, (in_left, in_right), strict=True)
        ]
        keys = [Item(column, own) for column, own in zip(node.columns, columns, strict=True)]
        groups = Aggregate(columns, (*keys, *totals), both)
        ours, theirs = counts
        if not node.keep_all:
            rule = Call("GreaterThan", (theirs, number(0)), "BOOLEAN")
            if node.kind == "EXCEPT":
                rule = Call("EqualTo", (theirs, number(0)), "BOOLEAN")
            there = Call("GreaterThan", (ours, number(0)), "BOOLEAN")
            return Project(passed(node.columns), Filter(and_all([there, rule]), groups))
        times = Call("Subtract", (ours, theirs), "BIGINT")
        if node.kind == "INTERSECT":
            times = Call("Least", (ours, theirs), "BIGINT", True, (("name", "least"),))
        enough = Filter(Call("GreaterThan", (times, number(0)), "BOOLEAN"), groups)
        array = Call("Sequence", (number(1), times), "ARRAY<BIGINT>", True, (("name", "sequence"),))
        place, element = self._fresh.column("INT"), self._fresh.column("BIGINT")
        return Project(passed(node.columns), Unnest(array, element, place, False, enough))

    def _limit(self, node: Limit) -> Node:
        """The rows whose number in the order is in the range; rows that are equal in it go by their identity."""
        child = node.child
        order: tuple[Order, ...] = ()
        hidden = node.output
        while isinstance(child, Project) and isinstance(child.child, Sort) and not order:
            # a sort column that is not shown: the order is below what is shown
            inner = child.child
            missing = tuple(each for each in inner.child.output if each not in child.output)
            sort = Sort(inner.order, Project((*child.items, *passed(missing)), inner.child))
            sort = Sort(tuple(replace(o, expression=_above(o.expression, child)) for o in inner.order), sort.child)
            child = sort
        if isinstance(child, Sort):
            order, child = child.order, child.child
        below = self.node(child)
        row = self._fresh.column("INT", nullable=False)
        function = Call("RowNumber", (), "INT", False, (("name", "row_number"),))
        call = WindowCall(function, (), (*order, Order(ROW)), None, "INT", nullable=False)
        conditions: list[Expression] = []
        if node.offset:
            conditions.append(Call("GreaterThan", (row, number(node.offset)), "BOOLEAN"))
        if node.count is not None:
            conditions.append(Call("LessThanOrEqual", (row, number(node.count + node.offset)), "BOOLEAN"))
        numbered = Window((Item(row, call),), below)
        return Project(passed(hidden), Filter(and_all(conditions), numbered))

    # -- groups -------------------------------------------------------------------------------------------------------

    def _aggregate(self, node: Aggregate) -> Node:
        for key in node.keys:
            if isinstance(key, Attribute) and key.id in self._sessions:
                return self._aggregate(self._session(node, key))
        for key in node.keys:
            window = _window_of(key, node.child) if isinstance(key, Attribute) else None
            if window is not None:
                node = self._by_start(node, key, window)  # type: ignore[arg-type]  # a window is of a column
        return node

    def _by_start(self, node: Aggregate, key: Attribute, window: Call) -> Aggregate:
        """Groups by a struct of the start and the end of a window, as groups by the start alone."""
        start, end = window.arguments[1], window.arguments[3]
        first = self._fresh.column(start.type, nullable=start.nullable)
        child = Project((*passed(node.child.output), Item(first, _field(key, "start", first))), node.child)
        last = substitute_expression(end, start, first)
        if last is None:
            return node
        rebuilt = replace(window, arguments=(window.arguments[0], first, window.arguments[2], last))
        items = tuple(Item(item.column, _grouped(item.expression, key, rebuilt, first)) for item in node.items)
        keys = tuple(first if each == key else each for each in node.keys)
        return Aggregate(tuple(dict.fromkeys(keys)), items, child)

    def _session(self, node: Aggregate, key: Attribute) -> Aggregate:
        """Sessions: a row opens one if none before it reaches to it; it starts with the last one that has."""
        keys = tuple(each for each in node.keys if each != key)
        if any(isinstance(each, Attribute) and each.id in self._sessions for each in keys):
            raise UnknownPartError("two sessions in one GROUP BY")
        time = "TIMESTAMP_NTZ" if "TIMESTAMP_NTZ" in key.type else "TIMESTAMP"
        start, end = (self._fresh.column(time, nullable=False) for _ in range(2))
        named = [self._fresh.column(each.type) for each in keys]
        items = [Item(start, _field(key, "start", start)), Item(end, _field(key, "end", end))]
        items += [Item(own, each) for own, each in zip(named, keys, strict=True)]
        rows = Project((*passed(node.child.output), *items), node.child)
        partition, order = tuple(named), (Order(start), Order(ROW))
        reach, opens, opened = self._fresh.column(time), self._fresh.column(time), self._fresh.column(time)
        before = Frame("ROWS", "UNBOUNDED PRECEDING", Literal("-1", "INT"))
        upto = Frame("ROWS", "UNBOUNDED PRECEDING", "CURRENT ROW")
        latest = WindowCall(AggregateCall("Max", (end,), time), partition, order, before, time)
        first = Window((Item(reach, latest),), rows)
        is_new = Call(
            "Or", (Call("IsNull", (reach,), "BOOLEAN"), Call("GreaterThan", (start, reach), "BOOLEAN")), "BOOLEAN"
        )
        begins = Call("If", (is_new, start, null(time)), time)
        second = Project((*passed(first.output), Item(opens, begins)), first)
        session = WindowCall(AggregateCall("Max", (opens,), time), partition, order, upto, time)
        third = Window((Item(opened, session),), second)
        last = AggregateCall("Max", (end,), time, detail=(("session", _gap(key, node.child)),))
        struct = Call(
            "CreateNamedStruct",
            (Literal("'start'", "STRING"), opened, Literal("'end'", "STRING"), last),
            key.type,
            nullable=False,
        )
        values: dict[Expression, Expression] = dict(zip(keys, named, strict=True))

        def change(each: Expression) -> Expression | None:
            if isinstance(each, Call) and each.function == "GetStructField" and each.arguments[0] == key:
                return opened if each.get("fieldName") == "start" else last
            if each == key:
                return struct
            return None if isinstance(each, AggregateCall) else values.get(each)

        items = [Item(item.column, _outside_aggregates(item.expression, change)) for item in node.items]
        return Aggregate((*named, opened), tuple(items), third)

    # -- windows ------------------------------------------------------------------------------------------------------

    def _window(self, node: Window) -> Node:
        """The same functions, those that see one row before another in an order that has no ties."""
        return replace(node, items=tuple(replace(item, expression=_total(item.expression)) for item in node.items))


_PEERS = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist"})
"""Functions that treat equal rows alike."""


def _total(expression: Expression) -> Expression:
    def change(each: Expression) -> Expression | None:
        if not isinstance(each, WindowCall) or each.function.function in _PEERS:
            return None
        if isinstance(each.function, AggregateCall) and each.frame is None:
            upper = "CURRENT ROW" if each.order else "UNBOUNDED FOLLOWING"
            each = replace(each, frame=Frame("RANGE", "UNBOUNDED PRECEDING", upper))
        is_range = each.frame is not None and each.frame.kind == "RANGE"
        if is_range and isinstance(each.function, AggregateCall) and each.function.function not in ORDERED:
            return None
        return _by_rows(each) if is_range else replace(each, order=(*each.order, Order(ROW)))

    return transform(expression, change)


def _by_rows(call: WindowCall) -> WindowCall:
    """An ordered aggregate over a range as one over rows, which are ordered as well, where it sees the same ones.

    Over all rows it does; and the first of all rows up to a row's peers is the first of all rows up to the row.
    """
    frame = call.frame
    assert frame is not None
    is_first = call.function.function in ("First", "AnyValue") and not call.function.get("ignoreNulls")
    uppers = ("UNBOUNDED FOLLOWING", "CURRENT ROW") if is_first else ("UNBOUNDED FOLLOWING",)
    if frame.lower != "UNBOUNDED PRECEDING" or frame.upper not in uppers:
        return call
    return replace(call, order=(*call.order, Order(ROW)), frame=replace(frame, kind="ROWS"))


ORDERED = frozenset(
    {"First", "Last", "AnyValue", "CollectList", "NthValue", "ListAgg", "Mode", "MinBy", "MaxBy", "CollectSet"}
)
"""Aggregates whose result depends on the order of the rows."""


def _only_in_keys_or_arguments(node: Aggregate) -> bool:
    """Whether no subquery of a group stands beside its aggregates, where it would have to be a key."""
    inside = [sub for item in node.items for each in walk(item.expression) if isinstance(each, AggregateCall)
              for sub in walk(each) if isinstance(sub, Subquery)]  # fmt: skip
    found = [each for item in node.items for each in walk(item.expression) if isinstance(each, Subquery)]
    return len(inside) == len(found)


def _with_expressions(node: Node, change) -> Node:  # type: ignore[no-untyped-def]  # the type of transform's argument
    match node:
        case Project() | Window():
            items = tuple(replace(item, expression=transform(item.expression, change)) for item in node.items)
            return replace(node, items=items)
        case Filter():
            return replace(node, condition=transform(node.condition, change))
        case Join():
            assert node.condition is not None
            return replace(node, condition=transform(node.condition, change))
        case Aggregate():
            items = tuple(replace(item, expression=transform(item.expression, change)) for item in node.items)
            return replace(node, items=items, keys=tuple(transform(each, change) for each in node.keys))
        case Sort():
            order = tuple(replace(each, expression=transform(each.expression, change)) for each in node.order)
            return replace(node, order=order)
        case _:
            raise UnknownPartError("a subquery in such a place")


def _above(expression: Expression, project: Project) -> Expression:
    """An expression below a projection, in the columns above it where these are the same."""
    values: dict[int, Expression] = {
        item.expression.id: item.column for item in project.items if isinstance(item.expression, Attribute)
    }
    return substitute(expression, values)


def _outside_aggregates(expression: Expression, change) -> Expression:  # type: ignore[no-untyped-def]  # as above
    def look(each: Expression) -> Expression | None:
        if isinstance(each, AggregateCall):
            return each
        found: Expression | None = change(each)
        return found

    return transform(expression, look)


def _grouped(expression: Expression, key: Attribute, window: Expression, first: Attribute) -> Expression:
    def change(each: Expression) -> Expression | None:
        if isinstance(each, Call) and each.function == "GetStructField" and each.arguments[0] == key:
            if each.get("fieldName") == "start":
                return first
            assert isinstance(window, Call)
            return window.arguments[3]
        return window if each == key else None

    return _outside_aggregates(expression, change)


def substitute_expression(expression: Expression, old: Expression, new: Expression) -> Expression | None:
    """The expression with a part of it replaced, an instant also where it stands as a number; None if it is nowhere."""
    seen = False

    def change(each: Expression) -> Expression | None:
        nonlocal seen
        if each == old:
            seen = True
            return new
        if isinstance(old, Call) and old.function == "MicrosToTimestamp" and each == old.arguments[0]:
            seen = True
            return Call("UnixMicros", (new,), "BIGINT", True, (("name", "unix_micros"),))
        return None

    found = transform(expression, change)
    return found if seen else None


def _gap(session: Attribute, child: Node) -> str | None:
    """The interval, in SQL, by which a session of one row ends later than it starts, if it is a constant."""
    struct = _window_of(session, child)
    for each in walk(struct.arguments[3]) if struct is not None else ():
        if isinstance(each, Call) and each.function in ("TimestampAddInterval", "TimeAdd"):
            return next((part.text for part in walk(each.arguments[1]) if isinstance(part, Literal)), None)
    return None


def _window_of(key: Attribute, child: Node) -> Call | None:
    """The struct of start and end that a key is, if it is one made below; of windows that overlap, the first."""
    while isinstance(child, Filter):
        child = child.child
    if not isinstance(child, Project):
        return None
    found = next((item.expression for item in child.items if item.column.id == key.id), None)
    if isinstance(found, Attribute):
        return _window_of(found, child.child) if isinstance(child.child, Project | Filter) else None
    if isinstance(found, Call) and found.function == "GetStructField" and isinstance(child.child, Unnest):
        array, name = child.child.array, found.get("fieldName")
        if found.arguments[0] == child.child.element and isinstance(array, Call) and array.function == "CreateArray":
            struct = array.arguments[0]
            assert isinstance(struct, Call)
            names = [each.text.strip("'") for each in struct.arguments[::2] if isinstance(each, Literal)]
            found = struct.arguments[2 * names.index(name) + 1] if name in names else None
    if isinstance(found, Call) and found.function == "CreateNamedStruct" and len(found.arguments) == 4:
        names = [each.text for each in found.arguments[::2] if isinstance(each, Literal)]
        if names == ["start", "end"] or names == ["'start'", "'end'"]:
            return found
    return None


def _field(struct: Expression, name: str, column: Attribute) -> Call:
    return Call("GetStructField", (struct,), column.type, column.nullable, (("fieldName", name),))


def _struct_type(columns: tuple[Attribute, ...]) -> str:
    return f"STRUCT<{', '.join(f'e{index}: {column.type}' for index, column in enumerate(columns))}>"


def _element_type(array: str) -> str:
    return array[len("ARRAY<") : -1]


def _entry_type(map_: str) -> str:
    key, value = _split(map_[len("MAP<") : -1])
    return f"STRUCT<key: {key}, value: {value}>"


def _field_names(array: str) -> list[str]:
    inner = _element_type(array)[len("STRUCT<") : -1]
    return [each.split(":")[0].strip().strip("`").replace("``", "`") for each in _split(inner)]


def _split(text: str) -> list[str]:
    """The parts of a list of types, at its commas that are in no brackets and no quotes."""
    parts, depth, quoted, since = [], 0, False, 0
    for index, letter in enumerate(text):
        quoted ^= letter == "`"
        if quoted:
            continue
        depth += letter in "<("
        depth -= letter in ">)"
        if letter == "," and depth == 0:
            parts.append(text[since:index].strip())
            since = index + 1
    return [*parts, text[since:].strip()]

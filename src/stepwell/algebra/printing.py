"""Printing: a tree of the algebra as SQL for Spark.

One node is one SELECT, and every column has a name of its own, `c` and its number, so that nothing can be captured by
a name further out. What has no spelling in SQL raises `UnprintableError` with its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, assert_never

from stepwell.algebra.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Frame,
    Literal,
    Named,
    Order,
    Subquery,
    Variable,
    WindowCall,
)
from stepwell.algebra.fingerprints import fingerprint
from stepwell.algebra.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Item,
    Join,
    JoinKind,
    Limit,
    Moment,
    Node,
    Project,
    Scan,
    SetOperation,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)
from stepwell.model.types import parse_type, quote


class UnprintableError(Exception):
    """An expression that cannot be written as SQL, by the name that Spark has for it."""


def name_of(column: Attribute) -> str:
    return f"c{column.id}"


def scan_name(relation: int, moment: Moment) -> str:
    """The temporary view of a relation at a moment; a negative number is a part that is not made yet."""
    name = f"_sw_rel{relation}" if relation >= 0 else f"_sw_part{-relation}"
    return f"{name}_{moment.value}" if moment != Moment.NOW else name


# -- nodes ------------------------------------------------------------------------------------------------------------


def print_tree(node: Node) -> str:
    """The rows of a tree, a column for each of its output, in order."""
    match node:
        case Scan():
            return _scan(node)
        case Values():
            return _values(node)
        case Project(items, child):
            return f"SELECT {_items(items)}{_from(child)}"
        case Filter(condition, child):
            return f"SELECT {_names(node.output)}{_from(child)} WHERE {print_expression(condition)}"
        case Join():
            return _join(node)
        case Aggregate(keys, items, child):
            grouped = f" GROUP BY {', '.join(map(print_expression, keys))}" if keys else ""
            return f"SELECT {_items(items)}{_from(child)}{grouped}"
        case Generate(generator, outer, columns, child):
            names = ", ".join(map(name_of, columns))
            how = "LATERAL VIEW OUTER" if outer else "LATERAL VIEW"
            shown = _names(node.output)
            return f"SELECT {shown}{_from(child)} {how} {print_expression(generator)} g AS {names}"
        case Unnest(array, element, place, outer, child):
            how = "LATERAL VIEW OUTER" if outer else "LATERAL VIEW"
            names = f"{name_of(place)}, {name_of(element)}"
            return (
                f"SELECT {_names(node.output)}{_from(child)} {how} posexplode({print_expression(array)}) g AS {names}"
            )
        case Union(columns, children):
            return " UNION ALL ".join(_positioned(child, columns) for child in children)
        case SetOperation(kind, keep_all, columns, left, right):
            word = f"{kind} ALL" if keep_all else kind
            return f"{_positioned(left, columns)} {word} {_positioned(right, columns)}"
        case Distinct(child):
            return f"SELECT DISTINCT {_names(node.output)}{_from(child)}"
        case Sort(order, child):
            return f"SELECT {_names(node.output)}{_from(child)} ORDER BY {', '.join(map(_order, order))}"
        case Limit(count, offset, child):
            limit = f" LIMIT {count}" if count is not None else ""
            return f"SELECT {_names(node.output)}{_from(child)}{limit}{f' OFFSET {offset}' if offset else ''}"
        case Window(items, child):
            return f"SELECT {', '.join([*map(name_of, node.child.output), _items(items)])}{_from(child)}"
        case _:
            assert_never(node)


def print_outputs(node: Node, outputs: Sequence[tuple[Expression, str]]) -> str:
    """The rows of a tree with the columns that are asked for, under the names that are asked for."""
    items = ", ".join(f"{print_expression(each)} AS {quote(name)}" for each, name in outputs)
    return f"SELECT {items}{_from(node)}"


def _scan(scan: Scan) -> str:
    items = [f"{quote(name)} AS {name_of(each)}" for name, each in zip(scan.names, scan.columns, strict=True)]
    if scan.identity is not None:
        items.append(f"_sw_id AS {name_of(scan.identity)}")
    if scan.sign is not None:
        items.append(f"_diff AS {name_of(scan.sign)}")
    return f"SELECT {', '.join(items) or '1 AS c'} FROM {scan.cut or scan_name(scan.relation, scan.moment)}"


def _values(values: Values) -> str:
    if not values.columns:
        return " UNION ALL ".join("SELECT 1 AS c" for _ in values.rows) or "SELECT 1 AS c WHERE false"
    if not values.rows:
        nulls = ", ".join(f"CAST(NULL AS {each.type}) AS {name_of(each)}" for each in values.columns)
        return f"SELECT {nulls} WHERE false"
    rows = ", ".join(f"({', '.join(cell.text for cell in row)})" for row in values.rows)
    return f"SELECT * FROM VALUES {rows} AS v({', '.join(map(name_of, values.columns))})"


def _from(child: Node) -> str:
    if isinstance(child, Values) and child.rows == ((),):
        return ""
    return f" FROM ({print_tree(child)})"


def _positioned(child: Node, columns: tuple[Attribute, ...]) -> str:
    pairs = zip(child.output, columns, strict=True)
    return f"SELECT {', '.join(f'{name_of(own)} AS {name_of(ours)}' for own, ours in pairs)}{_from(child)}"


_JOINS = {
    JoinKind.INNER: "INNER JOIN", JoinKind.CROSS: "CROSS JOIN", JoinKind.LEFT: "LEFT JOIN",
    JoinKind.RIGHT: "RIGHT JOIN", JoinKind.FULL: "FULL JOIN", JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
}  # fmt: skip


def _join(join: Join) -> str:
    left, right = f"({print_tree(join.left)})", f"({print_tree(join.right)})"
    condition = print_expression(join.condition) if join.condition is not None else None
    if join.kind == JoinKind.MARK:
        assert join.mark is not None
        where = f" WHERE {condition}" if condition else ""
        names = ", ".join(map(name_of, join.left.output))
        return f"SELECT {names}, EXISTS (SELECT 1 FROM {right}{where}) AS {name_of(join.mark)} FROM {left}"
    on = f" ON {condition}" if condition else " ON true" if join.kind not in (JoinKind.CROSS,) else ""
    return f"SELECT {_names(join.output)} FROM {left} {_JOINS[join.kind]} {right}{on}"


def _items(items: Sequence[Item]) -> str:
    return ", ".join(f"{print_expression(item.expression)} AS {name_of(item.column)}" for item in items) or "1 AS c"


def _names(columns: Sequence[Attribute]) -> str:
    return ", ".join(map(name_of, columns)) or "1 AS c"


def _order(order: Order) -> str:
    way = "ASC" if order.ascending else "DESC"
    return f"{print_expression(order.expression)} {way} NULLS {'FIRST' if order.nulls_first else 'LAST'}"


# -- expressions ------------------------------------------------------------------------------------------------------


def print_expression(expression: Expression) -> str:
    """An expression as SQL; what it is made of stands in parentheses where that could matter."""
    match expression:
        case Attribute():
            return name_of(expression)
        case Literal():
            return expression.text
        case Named():
            return expression.name
        case Variable():
            return f"v{expression.id}"
        case Call():
            return _call(expression)
        case AggregateCall():
            return _aggregate(expression)
        case WindowCall():
            return _window(expression)
        case Subquery(kind, plan):
            return f"{'EXISTS ' if kind == 'exists' else ''}({print_tree(plan)})"
        case _:
            assert_never(expression)


_INFIX = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%", "IntegralDivide": "DIV",
    "And": "AND", "Or": "OR", "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<=",
    "GreaterThan": ">", "GreaterThanOrEqual": ">=", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^",
    "DateAddInterval": "+", "DateAddYMInterval": "+", "TimestampAddYMInterval": "+", "TimestampAddInterval": "+",
    "TimeAdd": "+", "DatetimeSub": "-", "SubtractTimestamps": "-", "SubtractDates": "-", "MultiplyDTInterval": "*",
    "MultiplyYMInterval": "*", "DivideDTInterval": "/", "DivideYMInterval": "/",
}  # fmt: skip

_TRY = {
    "Add": "try_add", "Subtract": "try_subtract", "Multiply": "try_multiply", "Divide": "try_divide",
    "Remainder": "try_mod", "Sum": "try_sum", "Average": "try_avg",
}  # fmt: skip


def _call(call: Call) -> str:
    if call.get("evalMode") == "TRY" and call.function in _TRY:
        return f"{_TRY[call.function]}({_arguments(call.arguments)})"
    if call.function in _INFIX:
        if len(call.arguments) != 2:
            raise UnprintableError(call.function)
        left, right = map(print_expression, call.arguments)
        return f"({left} {_INFIX[call.function]} {right})"
    special = _SPECIAL.get(call.function)
    if special is not None:
        return special(call, [print_expression(each) for each in call.arguments])
    name = call.get("name")
    if call.function in _UNPRINTABLE or not name or not _is_word(name):
        raise UnprintableError(call.function)
    return f"{name}({_arguments(call.arguments)})"


_UNPRINTABLE = frozenset({"StaticInvoke", "Invoke", "ScalaUDF", "OuterReference", "With", "CommonExpressionRef",
                          "TempResolvedColumn", "PreciseTimestampConversion"})  # fmt: skip


def _is_word(name: str) -> bool:
    return name.replace("_", "a").isalnum()


def _arguments(arguments: Sequence[Expression]) -> str:
    return ", ".join(map(print_expression, arguments))


def _moves_time(expression: Expression) -> bool:
    """Whether this is an instant plus or minus an interval, to which Spark adds a cast by itself."""
    if not isinstance(expression, Call):
        return False
    return expression.function in ("TimestampAddInterval", "TimeAdd") or expression.get("name") == "datetimesub"


def _cast(call: Call, arguments: list[str]) -> str:
    inner = call.arguments[0]
    if _moves_time(inner) and inner.type == call.type:
        return arguments[0]
    word = "TRY_CAST" if call.get("evalMode") == "TRY" else "CAST"
    return f"{word}({arguments[0]} AS {call.type})"


def _case(call: Call, arguments: list[str]) -> str:
    pairs, rest = divmod(len(arguments), 2)
    whens = " ".join(f"WHEN {arguments[2 * index]} THEN {arguments[2 * index + 1]}" for index in range(pairs))
    return f"CASE {whens}{f' ELSE {arguments[-1]}' if rest else ''} END"


def _field(call: Call, arguments: list[str]) -> str:
    name = call.get("fieldName")
    return f"{arguments[0]}.{quote(name)}"


def _array_field(call: Call, arguments: list[str]) -> str:
    field = dict(call.get("field"))
    return f"{arguments[0]}.{quote(field['name'])}"


def _in(call: Call, arguments: list[str]) -> str:
    return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"


def _like(word: str) -> Callable[[Call, list[str]], str]:
    def write(call: Call, arguments: list[str]) -> str:
        escape = call.get("escapeChar")
        said = f" ESCAPE {_text(escape)}" if escape not in (None, "\\") else ""
        return f"({arguments[0]} {word} {arguments[1]}{said})"

    return write


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _lambda(call: Call, arguments: list[str]) -> str:
    """A lambda: its body comes first, then its variables."""
    variables = arguments[1:]
    named = f"({', '.join(variables)})" if len(variables) != 1 else variables[0]
    if not variables:
        return arguments[0]
    return f"{named} -> {arguments[0]}"


def _trim(where: str) -> Callable[[Call, list[str]], str]:
    def write(call: Call, arguments: list[str]) -> str:
        if len(arguments) == 1:
            return f"{ {'BOTH': 'trim', 'LEADING': 'ltrim', 'TRAILING': 'rtrim'}[where] }({arguments[0]})"
        return f"TRIM({where} {arguments[1]} FROM {arguments[0]})"

    return write


def _date_add(sign: str) -> Callable[[Call, list[str]], str]:
    def write(call: Call, arguments: list[str]) -> str:
        days, way = call.arguments[1], sign
        if isinstance(days, Call) and days.function == "UnaryMinus":
            days, way = days.arguments[0], "-" if sign == "+" else "+"
        if isinstance(days, Call) and days.function == "ExtractANSIIntervalDays":
            return f"({arguments[0]} {way} {print_expression(days.arguments[0])})"
        return f"{'date_add' if sign == '+' else 'date_sub'}({', '.join(arguments)})"

    return write


def _replaceable(call: Call, arguments: list[str]) -> str:
    name = call.get("name")
    if name == "datetimesub":
        return f"({arguments[0]} - {arguments[1]})"
    if name == "between":
        return f"({arguments[0]} BETWEEN {arguments[1]} AND {arguments[2]})"
    if name in ("extract", "date_part", "datepart"):
        return f"date_part({arguments[0]}, {arguments[1]})"
    if name == "collate" or not _is_word(name):
        raise UnprintableError(name)
    return f"{name}({', '.join(arguments)})"


def _json_function(name: str) -> Callable[[Call, list[str]], str]:
    def write(call: Call, arguments: list[str]) -> str:
        options = call.get("options")
        given = ", ".join(f"{_text(key)}, {_text(str(value))}" for key, value in options) if options else ""
        schema = [_text(dict(call.get("schema"))["type"])] if name == "from_json" else []
        return f"{name}({', '.join([arguments[0], *schema, *([f'map({given})'] if given else [])])})"

    return write


def _collate(call: Call, arguments: list[str]) -> str:
    collation = call.arguments[1]
    assert isinstance(collation, Call)
    return f"collate({arguments[0]}, {_text(str(collation.get('collationName')))})"


def _identity(arguments: list[str]) -> str:
    """The identity of a row that is made of others, some of which may be missing."""
    return f"xxhash64({', '.join(f'coalesce({each}, -1L)' for each in arguments)})"


def _fingerprint(call: Call, arguments: list[str]) -> str:
    count = call.get("ids")
    values = [(text, parse_type(each.type)) for text, each in zip(arguments, call.arguments, strict=True)]
    return fingerprint(values[count:], *arguments[:count])


def _template(call: Call, arguments: list[str]) -> str:
    values = dict(zip(call.get("names"), arguments, strict=True))
    return re.sub(r"\{(\w+)\}", lambda match: values[match.group(1)], call.get("text"))


def _checked(call: Call, arguments: list[str]) -> str:
    value, wrong = arguments
    return f"if({wrong}, CAST(raise_error({_text(call.get('message'))}) AS {call.type}), {value})"


def _refuse(name: str) -> Any:
    raise UnprintableError(name)


_SPECIAL: dict[str, Callable[[Call, list[str]], str]] = {
    "Identity": lambda call, arguments: _identity(arguments),
    "Fingerprint": _fingerprint,
    "Template": _template,
    "Checked": _checked,
    "Not": lambda call, arguments: f"(NOT {arguments[0]})",
    "IsNull": lambda call, arguments: f"({arguments[0]} IS NULL)",
    "IsNotNull": lambda call, arguments: f"({arguments[0]} IS NOT NULL)",
    "UnaryMinus": lambda call, arguments: f"(- {arguments[0]})",
    "UnaryPositive": lambda call, arguments: f"(+ {arguments[0]})",
    "BitwiseNot": lambda call, arguments: f"(~ {arguments[0]})",
    "If": lambda call, arguments: f"if({', '.join(arguments)})",
    "CaseWhen": _case,
    "Cast": _cast,
    "In": _in,
    "Like": _like("LIKE"),
    "ILike": _like("ILIKE"),
    "RLike": lambda call, arguments: f"({arguments[0]} RLIKE {arguments[1]})",
    "GetStructField": _field,
    "GetArrayStructFields": _array_field,
    "GetArrayItem": lambda call, arguments: f"{arguments[0]}[{arguments[1]}]",
    "GetMapValue": lambda call, arguments: f"{arguments[0]}[{arguments[1]}]",
    "CreateNamedStruct": lambda call, arguments: f"named_struct({', '.join(arguments)})",
    "CreateArray": lambda call, arguments: f"array({', '.join(arguments)})",
    "CreateMap": lambda call, arguments: f"map({', '.join(arguments)})",
    "LambdaFunction": _lambda,
    "StringTrim": _trim("BOTH"),
    "StringTrimLeft": _trim("LEADING"),
    "StringTrimRight": _trim("TRAILING"),
    "DateAdd": _date_add("+"),
    "DateSub": _date_add("-"),
    "Replaceable": _replaceable,
    "Year": lambda call, arguments: f"year({arguments[0]})",
    "StructsToJson": _json_function("to_json"),
    "JsonToStructs": _json_function("from_json"),
    "Collate": _collate,
    "ResolvedCollation": lambda call, arguments: "",
    "Concat": lambda call, arguments: f"concat({', '.join(arguments)})",
    "TruncTimestamp": lambda call, arguments: f"date_trunc({', '.join(arguments)})",
    "TruncDate": lambda call, arguments: f"trunc({', '.join(arguments)})",
    "MicrosToTimestamp": lambda call, arguments: f"timestamp_micros({arguments[0]})",
    "CheckOverflow": lambda call, arguments: arguments[0],
    "PromotePrecision": lambda call, arguments: arguments[0],
}


_IGNORE_NULLS = frozenset({"First", "Last", "AnyValue", "NthValue", "Lead", "Lag"})
_AGGREGATES = {
    "First": "first", "Last": "last", "AnyValue": "any_value", "CollectList": "collect_list",
    "CollectSet": "collect_set", "Count": "count", "Sum": "sum", "Average": "avg", "Min": "min", "Max": "max",
    "MinBy": "min_by", "MaxBy": "max_by",
}  # fmt: skip


def _aggregate(call: AggregateCall) -> str:
    name = _AGGREGATES.get(call.function) or call.get("name") or call.function
    if call.get("evalMode") == "TRY":
        name = _TRY.get(call.function) or _refuse(call.function)
    if not _is_word(name) or call.function == "PivotFirst":
        raise UnprintableError(call.function)
    if call.function == "OrderedList":
        return _ordered_list(call)
    distinct = "DISTINCT " if call.distinct else ""
    text = f"{name}({distinct}{_arguments(call.arguments)})"
    if call.function in ("PercentileCont", "PercentileDisc"):
        way = " DESC" if call.get("reverse") else ""
        value, share = map(print_expression, call.arguments[:2])
        text = f"{name}({distinct}{share}) WITHIN GROUP (ORDER BY {value}{way})"
    elif call.function == "Mode" and call.get("reverseOpt") is not None:
        way = "" if call.get("reverseOpt") else " DESC"
        text = f"mode() WITHIN GROUP (ORDER BY {print_expression(call.arguments[0])}{way})"
    elif call.order:
        text += f" WITHIN GROUP (ORDER BY {', '.join(map(_order, call.order))})"
    if call.function in _IGNORE_NULLS and call.get("ignoreNulls") is True:
        text += " IGNORE NULLS"
    if call.filter is not None:
        text += f" FILTER (WHERE {print_expression(call.filter)})"
    return text


def _ordered_list(call: AggregateCall) -> str:
    """The values of a group that are not NULL, in the order of a number that each has."""
    value, place = map(print_expression, call.arguments)
    pairs = f"collect_list(IF({value} IS NULL, NULL, named_struct('i', {place}, 'x', {value})))"
    by_place = "(a, b) -> CASE WHEN a.i < b.i THEN -1 WHEN a.i > b.i THEN 1 ELSE 0 END"
    return f"transform(array_sort({pairs}, {by_place}), e -> e.x)"


def _window(call: WindowCall) -> str:
    function = call.function
    if isinstance(function, AggregateCall):
        text = _aggregate(function)
    elif function.function in ("Lead", "Lag"):
        arguments = list(function.arguments)
        name = function.function.lower()
        ignoring = " IGNORE NULLS" if function.get("ignoreNulls") else ""
        text = f"{name}({_arguments(arguments)}){ignoring}"
    elif function.function in _RANKS:
        text = f"{_RANKS[function.function]}()"
    elif function.function == "NTile":
        text = f"ntile({_arguments(function.arguments[:1])})"
    elif function.function == "NthValue":
        ignoring = " IGNORE NULLS" if function.get("ignoreNulls") else ""
        text = f"nth_value({_arguments(function.arguments)}){ignoring}"
    else:
        raise UnprintableError(function.function)
    parts = []
    if call.partition:
        parts.append(f"PARTITION BY {_arguments(call.partition)}")
    if call.order:
        parts.append(f"ORDER BY {', '.join(map(_order, call.order))}")
    if call.frame is not None and function.function not in (*_RANKS, "Lead", "Lag", "NTile"):
        parts.append(_frame(call.frame))
    return f"{text} OVER ({' '.join(parts)})"


_RANKS = {
    "RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank", "PercentRank": "percent_rank",
    "CumeDist": "cume_dist",
}  # fmt: skip


def _frame(frame: Frame) -> str:
    def end(value: str | Expression) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, Literal) and value.text.startswith("-"):
            return f"{value.text[1:]} PRECEDING"
        if isinstance(value, Call) and value.function == "UnaryMinus":
            return f"{print_expression(value.arguments[0])} PRECEDING"
        return f"{print_expression(value)} FOLLOWING"

    return f"{frame.kind} BETWEEN {end(frame.lower)} AND {end(frame.upper)}"


__all__ = ["UnprintableError", "name_of", "print_expression", "print_outputs", "print_tree", "scan_name"]

"""Time columns: which output of a view is its event time, and what becomes of a watermark on the way there.

A view's time column is its first output that is a parent's time column, the start or the end of its window, a bucket,
or one of these plus a constant. What else is made of a time has no watermark: nothing is known of what it does to
order. Times are followed from column to column through the tree.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from stepwell.algebra.expressions import Attribute, Call, Expression, Literal, Named, transform, walk
from stepwell.algebra.nodes import (
    Filter,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    Union,
    Unnest,
    Window,
    children_of,
)
from stepwell.model.durations import parse_duration
from stepwell.model.errors import StepwellError
from stepwell.model.watermarks import Transfer
from stepwell.rules.blocks import LEAF, Block, GroupBlock, RowBlock, WholeBlock, WindowBlock

Times = Mapping[int, str]
"""The time columns of the relations that have one."""


@dataclass(frozen=True, slots=True)
class Timing:
    """A time column, and how its watermark follows from the least of those that are read."""

    column: str
    transfer: Transfer


def timing_of(block: Block, times: Times, column: str | None = None) -> Timing | None:
    """The time column of a block: its first one, or the one that was chosen."""
    found = zip(block.names, transfers_of(block, times), strict=True)
    wanted = (each for each in found if column is None or each[0].lower() == column.lower())
    return next((Timing(name, transfer) for name, transfer in wanted if transfer is not None), None)


def transfers_of(block: Block, times: Times) -> list[Transfer | None]:
    """What becomes of the watermark in each output of a block, or None where that is lost."""
    match block:
        case RowBlock(tree, columns):
            known = _Followed(times).of(tree)
            return [known.get(each.id) for each in columns]
        case WindowBlock(rows, keys, top, columns):
            below = transfers_of(rows, times)[keys:]
            known = _Followed(times, dict(zip(_leaf(top).columns, below, strict=True))).of(top)
            return [known.get(each.id) for each in columns]
        case GroupBlock():
            return [_of_group(block, item, times) for item in block.items]
        case WholeBlock():
            return [None] * len(block.names)


def windows_of(block: Block, times: Times) -> Timing | None:
    """The window of each row that a block reads: the column of its rows that says it, and its watermark."""
    match block:
        case RowBlock():
            return timing_of(block, times)
        case WindowBlock(rows):
            return timing_of(rows, times)
        case GroupBlock(time_key=int(key)):
            transfer = transfers_of(block.rows, times)[key]
            return None if transfer is None else Timing(f"_sw_g{key}", transfer)
        case _:
            return None


def session_gap(block: Block) -> int | None:
    """How far apart the rows of a session may be, if a block groups by one."""
    if not isinstance(block, GroupBlock):
        return None
    return next((each.gap for each in block.results if each.gap is not None), None)


def time_column_of(tree: Node, times: Times) -> Attribute | None:
    """The first column of a tree that is the time column of what it reads, as it is."""
    known = _Followed(times).of(tree)
    return next((each for each in tree.output if known.get(each.id) == Transfer()), None)


def _leaf(node: Node) -> Scan:
    while not (isinstance(node, Scan) and node.relation == LEAF):
        node = children_of(node)[0]
    return node


Key = int | tuple[int | str, ...]
"""A column by its number; or a field of a column that is a struct, or of a struct in such a field."""

Known = Mapping[Key, Transfer | None]


class _Followed:
    """The times in the columns of a tree, from the leaves up."""

    def __init__(self, times: Times, leaf: Mapping[Attribute, Transfer | None] | None = None) -> None:
        self._times = times
        self._leaf = leaf or {}

    def of(self, node: Node) -> dict[int, Transfer]:
        """The columns of the output of a node that are times."""
        return {key: found for key, found in self._all(node).items() if found is not None and isinstance(key, int)}

    def _all(self, node: Node) -> dict[Key, Transfer | None]:
        match node:
            case Scan(relation=0) if node.relation == LEAF:
                return {column.id: found for column, found in self._leaf.items()}
            case Scan(relation, columns, names):
                wanted = self._times.get(relation, "").lower()
                return {
                    column.id: Transfer()
                    for column, name in zip(columns, names, strict=True)
                    if wanted and name.lower() == wanted
                }
            case Project(items, child):
                below = self._all(child)
                found: dict[Key, Transfer | None] = {}
                for item in items:
                    found[item.column.id] = _of_expression(item.expression, below)
                    found.update(_of_struct(item.column.id, item.expression, below))
                return found
            case Filter(_, child):
                return self._all(child)
            case Window(items, child):
                return self._all(child)
            case Unnest(array, element, _, _, child):
                below = self._all(child)
                return {**below, **_of_hops(array, element, below)}
            case Join(kind, left, right):
                if kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK):
                    return self._all(left)
                return {**self._all(left), **self._all(right)}
            case Union(columns, children):
                branches = []
                for child in children:
                    below = self._all(child)
                    branches.append([below.get(each.id) for each in child.output])
                return {
                    column.id: found[0]
                    for column, found in zip(columns, zip(*branches, strict=True), strict=True)
                    if len(set(found)) == 1
                }
            case _:
                return {}


def _of_struct(column: int, expression: Expression, below: Known) -> dict[Key, Transfer | None]:
    """The times in the fields of a column that is a struct: made here, handed on, or a field of another one."""
    match expression:
        case Call(function="CreateNamedStruct"):
            return {(column, name): _of_expression(part, below) for name, part in _fields(expression)}
        case Attribute(id=number):
            prefix: tuple[int | str, ...] = (number,)
        case Call(function="GetStructField", arguments=(Attribute(id=number),)):
            prefix = (number, expression.get("fieldName"))
        case _:
            return {}
    size = len(prefix)
    return {
        (column, *key[size:]): found
        for key, found in below.items()
        if isinstance(key, tuple) and key[:size] == prefix and len(key) > size
    }


def _fields(struct: Call) -> list[tuple[str, Expression]]:
    names = [each.text.strip("'") for each in struct.arguments[::2] if isinstance(each, Literal)]
    return list(zip(names, struct.arguments[1::2], strict=True))


def _of_hops(array: Expression, element: Attribute, below: Known) -> dict[Key, Transfer | None]:
    """The times in the fields of an array of structs that is written out: windows that overlap are such."""
    if not isinstance(array, Call) or array.function != "CreateArray" or not array.arguments:
        return {}
    structs = [each for each in array.arguments if isinstance(each, Call) and each.function == "CreateNamedStruct"]
    if len(structs) != len(array.arguments):
        return {}
    found: dict[Key, Transfer | None] = {}
    for field in zip(*map(_fields, structs), strict=True):
        name, values = field[0][0], [value for _, value in field]
        inner = [each for each in values if isinstance(each, Call) and each.function == "CreateNamedStruct"]
        if len(inner) == len(values):
            for part in zip(*map(_fields, inner), strict=True):
                found[element.id, name, part[0][0]] = _hop([_of_expression(value, below) for _, value in part])
        else:
            found[element.id, name] = _hop([_of_expression(value, below) for value in values])
    return found


def _hop(found: list[Transfer | None]) -> Transfer | None:
    """Windows that begin every so often and overlap, as one kind of window; or the same time in every element."""
    if any(each is None for each in found):
        return None
    transfers = [each for each in found if each is not None]
    if len(set(transfers)) == 1:
        return transfers[0]
    first = transfers[0]
    shifts = sorted((each.shift for each in transfers), reverse=True)
    bare = {Transfer(each.every, each.size, each.origin, 0, each.months, each.zone) for each in transfers}
    if len(bare) != 1 or not first.every or first.zone:
        return None
    if any(high - low != first.every for high, low in itertools.pairwise(shifts)):
        return None
    return Transfer(first.every, first.every * len(shifts), first.origin, shifts[0])


# -- groups -----------------------------------------------------------------------------------------------------------


def _of_group(group: GroupBlock, item: Expression, times: Times) -> Transfer | None:
    """What becomes of the watermark in an output of a group: its time key, its end, or the end of its session."""
    if isinstance(item, Named) and item.name.startswith("_sw_r"):
        result = group.results[int(item.name.removeprefix("_sw_r"))]
        if result.gap is not None:
            return Transfer()  # one that ends with the watermark can still grow, by a row of just that moment
    if group.time_key is None or session_gap(group) is not None:
        return None
    key = transfers_of(group.rows, times)[group.time_key]
    return _of_expression(item, {}, {f"_sw_g{group.time_key}": key})


# -- expressions over a time ------------------------------------------------------------------------------------------

_DAY = 86_400_000_000
_MONDAY = 4 * _DAY
_WIDTHS = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
           "DAY": _DAY, "DD": _DAY, "WEEK": 7 * _DAY}  # fmt: skip
_MONTHS = {"MONTH": 1, "MON": 1, "MM": 1, "QUARTER": 3, "YEAR": 12, "YYYY": 12, "YY": 12}


def _of_expression(
    expression: Expression, known: Known, named: Mapping[str, Transfer | None] | None = None
) -> Transfer | None:
    """What an expression makes of the watermark of the one time in it."""

    def of(each: Expression) -> Transfer | None:
        return _of_expression(each, known, named)

    match expression:
        case Attribute(id=number):
            return known.get(number)
        case Named(name):
            return (named or {}).get(name)
        case Call(function="Cast", arguments=(inner,)):
            found = of(inner)
            if expression.type == "DATE" and inner.type != "DATE":
                return _after(Transfer(_DAY, _DAY), found)
            return found if expression.type in ("TIMESTAMP", "TIMESTAMP_NTZ", "BIGINT", "INT", "DATE") else None
        case Call(function="UnixMicros" | "MicrosToTimestamp", arguments=(inner,)):
            return of(inner)
        case Call(function="GetStructField", arguments=(inner,)):
            if isinstance(inner, Call) and inner.function == "CreateNamedStruct":
                return of(dict(_fields(inner))[expression.get("fieldName")])
            return known.get((inner.id, expression.get("fieldName"))) if isinstance(inner, Attribute) else None
        case Call(function="TruncTimestamp", arguments=(Literal(text), inner)):
            return _after(_truncated(text.strip("'")), of(inner))
        case Call(function="TimestampAddInterval" | "TimeAdd", arguments=(inner, length)):
            return _shifted(of(inner), interval_of(length), 1)
        case Call(function="Replaceable", arguments=(inner, length)) if expression.get("name") == "datetimesub":
            return _shifted(of(inner), interval_of(length), -1)
        case Call(function="Add", arguments=(left, right)):
            if (by := _constant(right)) is not None:
                return _shifted(of(left), by, 1)
            return _shifted(of(right), _constant(left), 1)
        case Call(function="Subtract", arguments=(left, right)):
            if (by := _constant(right)) is not None:
                return _shifted(of(left), by, -1)
            bucket = _remainder(right, left)
            return _after(bucket, of(left)) if bucket is not None else None
        case Call(function="AddMonths", arguments=(Literal(text), count)) if "2000-01-01" in text:
            return _of_months(count, of)
        case Call(function="ToUTCTimestamp", arguments=(inner, Literal(zone))):
            return _zoned(inner, zone, known, named)
        case _:
            return None


def _after(outer: Transfer | None, inner: Transfer | None) -> Transfer | None:
    return None if outer is None or inner is None else outer.after(inner)


def _shifted(inner: Transfer | None, by: int | None, sign: int) -> Transfer | None:
    return None if inner is None or by is None else inner.shifted(sign * by)


def _constant(expression: Expression) -> int | None:
    """A number that is written out."""
    if isinstance(expression, Call) and expression.function == "Cast":
        return _constant(expression.arguments[0])
    if not isinstance(expression, Literal) or expression.type not in ("INT", "BIGINT", "SMALLINT", "TINYINT"):
        return None
    found = re.fullmatch(r"(-?\d+)[LSYlsy]?", expression.text)
    return int(found[1]) if found else None


def interval_of(expression: Expression) -> int | None:
    """An interval that is written out, in microseconds."""
    if isinstance(expression, Call) and expression.function == "Cast":
        return interval_of(expression.arguments[0])
    if not isinstance(expression, Literal):
        return None
    found = re.fullmatch(r"(?:INTERVAL )?'(-?)([^']*)'( [A-Z ]+)?", expression.text)
    if not found:
        return None
    sign, value, unit = (-1 if found[1] else 1), found[2], (found[3] or "").strip()
    if not unit:
        try:
            return sign * parse_duration(value)
        except StepwellError:
            return None
    names = ["DAY", "HOUR", "MINUTE", "SECOND"]
    first = unit.split(" ")[0]
    if first not in names:
        return None
    parts = re.split(r"[ :]", value)
    total = 0.0
    scales = dict(zip(names, (_DAY, 3_600_000_000, 60_000_000, 1_000_000), strict=True))
    for name, part in zip(names[names.index(first) :], parts, strict=False):
        whole, _, fraction = part.partition(".")
        total += int(whole) * scales[name] + (int(fraction.ljust(6, "0")[:6]) if fraction else 0)
    return sign * int(total)


def _remainder(expression: Expression, time: Expression) -> Transfer | None:
    """`time` modulo a width, counted from an origin: what is taken away from a time to get its bucket."""
    match expression:
        case Call(function="Pmod", arguments=(inner, width)):
            pass
        case Call(
            function="CaseWhen",
            arguments=(_, Call(function="Add"), Call(function="Remainder", arguments=(inner, width))),
        ):
            pass
        case _:
            return None
    length = _constant(width)
    if not length or length < 0:
        return None
    origin = 0
    if inner != time:
        if not isinstance(inner, Call) or inner.function != "Subtract" or inner.arguments[0] != time:
            return None
        found = _constant(inner.arguments[1])
        if found is None:
            return None
        origin = found
    return Transfer(length, length, origin)


def _truncated(unit: str) -> Transfer | None:
    if unit.upper() in _MONTHS:
        return Transfer(months=_MONTHS[unit.upper()])
    width = _WIDTHS.get(unit.upper())
    return Transfer(width, width, _MONDAY if unit.upper() == "WEEK" else 0) if width else None


def _of_months(count: Expression, of) -> Transfer | None:  # type: ignore[no-untyped-def]  # a closure
    """Months since 2000, less those since the bucket has begun."""
    match count:
        case Call(function="Subtract", arguments=(number, Call(function="Pmod", arguments=(other, width)))):
            months = _constant(width)
            inner = _months_since_2000(number)
            if months and number == other and inner is not None:
                return _after(Transfer(months=months), of(inner))
    return None


def _months_since_2000(expression: Expression) -> Expression | None:
    """The time in `(year(t) - 2000) * 12 + month(t) - 1`."""
    match expression:
        case Call(
            function="Subtract",
            arguments=(
                Call(
                    function="Add",
                    arguments=(
                        Call(
                            function="Multiply",
                            arguments=(
                                Call(function="Subtract", arguments=(Call(function="Year", arguments=(one,)), _)),
                                _,
                            ),
                        ),
                        Call(function="Month", arguments=(other,)),
                    ),
                ),
                _,
            ),
        ):
            return _as_time(one) if one == other else None
    return None


def _as_time(expression: Expression) -> Expression:
    """The time behind the day that it was cast to."""
    if isinstance(expression, Call) and expression.function == "Cast" and expression.type == "DATE":
        return expression.arguments[0]
    return expression


def _zoned(inner: Expression, zone: str, known: Known, named: Mapping[str, Transfer | None] | None) -> Transfer | None:
    """A bucket of local times, as an instant."""
    local = [
        each for each in walk(inner)
        if isinstance(each, Call) and each.function == "FromUTCTimestamp"
        and isinstance(each.arguments[1], Literal) and each.arguments[1].text == zone
    ]  # fmt: skip
    if not local or len(set(local)) != 1:
        return None
    time = _of_expression(local[0].arguments[0], known, named)
    marker = Named("_local", "TIMESTAMP")

    def change(each: Expression) -> Expression | None:
        return marker if each == local[0] else None

    found = _of_expression(transform(inner, change), {}, {"_local": Transfer()})
    if found is None or not found.is_window or time != Transfer():
        return None
    return Transfer(found.every, found.size, found.origin, found.shift, found.months, zone.strip("'"))

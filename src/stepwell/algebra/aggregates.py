"""Aggregates: how each is kept as a partial state, and finished.

*Invertible* ones add up signed rows and take any change; *mergeable* ones take new rows only, and a group that loses
one is computed anew; everything else has no state, and its groups are always computed anew.

Sums are exact, whatever the order of the rows: integers and decimals are added in a wider type and checked at the end,
floating point numbers as five integers of thirty bits, so that adding and taking away leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from stepwell.algebra.expressions import Expression
from stepwell.model.types import BIGINT, DOUBLE, FLOAT, INTEGERS, Array, DataType, Decimal, Map, Struct, parse_type

REFOLD = "stepwell: a value that only a recomputation can add"
"""What the query of a fold fails with where a group holds numbers outside the range of its integers."""

_LIMB = 1 << 30


ADDED = "coalesce({o}, 0) + coalesce({p}, 0)"
"""How the parts of invertible aggregates are combined."""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """An aggregate over columns of the grouped rows. `call` is Spark's, over `_sw_x0`…, as the user meant it.

    A row counts if `condition`, a column of the rows, is true; without one, every row does.
    """

    function: str
    call: Expression
    arguments: tuple[str, ...] = ()
    argument_types: tuple[str, ...] = ()
    result_type: str = ""
    plain: bool = True
    """Whether it is the function and its arguments, and nothing else: no DISTINCT, no order of its own."""
    condition: str | None = None
    gap: int | None = None
    """Of the end of a session: how far apart its rows may be."""


class Kind(StrEnum):
    """What a state can take."""

    INVERTIBLE = "invertible"
    MERGEABLE = "mergeable"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Part:
    """One column of a state: computed from rows by `partial`, combined by `merge` out of `{o}` and `{p}`.

    `careful` replaces `partial` where every row of the group is at hand and some of them are odd.
    """

    type: str
    partial: str
    merge: str = ADDED
    careful: str | None = None
    worse: str | None = None
    """Of a mergeable part: whether `{a}` is worse than `{b}`, and so does not matter beside it."""
    odd: str = "false"
    """Of which `{a}` that cannot be said."""

    def sql(self, *, careful: bool) -> str:
        """The column of a state, from rows; of no rows at all, a sum is 0 and not NULL."""
        expression = self.careful if careful and self.careful else self.partial
        whole = f"coalesce({expression}, 0)" if self.merge == ADDED else expression
        return f"CAST({whole} AS {self.type})"


@dataclass(frozen=True, slots=True)
class State:
    """How one aggregate is kept. `finish` speaks of its parts as `{0}`, `{1}`….

    `check`, where there is one, is true of a state with odd values, which a fold cannot make.
    """

    kind: Kind
    parts: tuple[Part, ...] = ()
    finish: str = ""
    check: str | None = None


_NOTHING = State(Kind.NONE)


ORDERED_BY_TIME = frozenset({"First", "Last"})
"""Aggregates that go by event time first, where the rows have one."""


def takes_condition(function: str) -> bool:
    """Whether an aggregate is kept for those rows that fulfil a condition, so that a NULL among them counts."""
    return function in ("First", "Last", "AnyValue", "any_value")


def state_of(result: GroupResult) -> State:
    """How an aggregate is kept, given its types. What it reads of a row stands in its parts as `{x0}`, `{x1}`….

    `{sign}` is 1 or -1, as the row comes or goes, `{id}` its identity, `{if}` the condition under which it counts.
    """
    make = _STATES.get(result.function)
    if make is None or not result.plain:
        return _NOTHING
    types = tuple(parse_type(each) for each in result.argument_types)
    arguments = tuple(f"{{x{index}}}" for index in range(len(types)))
    return make(arguments, types, result.result_type, None if result.condition is None else "{if}")


_SIGN, _ID = "{sign}", "{id}"

_Make = Callable[[tuple[str, ...], tuple[DataType, ...], str, str | None], State]


def _signed(value: str) -> str:
    return f"IF({_SIGN} < 0, -({value}), {value})"


def _present(*values: str) -> str:
    """How many rows have none of these NULL."""
    return f"sum(IF({' AND '.join(f'{each} IS NOT NULL' for each in values)}, {_SIGN}, 0L))"


def _count(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
    if not arguments:
        return State(Kind.INVERTIBLE, (Part("BIGINT", f"sum({_SIGN})"),), "{0}")
    return State(Kind.INVERTIBLE, (Part("BIGINT", _present(*arguments)),), "{0}")


def _count_if(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
    return State(Kind.INVERTIBLE, (Part("BIGINT", f"sum(IF({arguments[0]}, {_SIGN}, 0L))"),), "{0}")


def _total(value: str, type_: DataType) -> tuple[tuple[Part, ...], str, str | None] | None:
    """The parts of an exact sum, its value as SQL over `{1}`…, and what a fold cannot take."""
    if isinstance(type_, Decimal):
        if type_.precision > 27:  # nothing is wider than the sum itself
            return _split(value, type_)
        wide = f"DECIMAL(37,{type_.scale})"  # two of these add up without losing a digit, two of 38 would not
        merge = f"CAST(coalesce({{o}}, 0) + coalesce({{p}}, 0) AS {wide})"
        partial = f"CAST(coalesce(sum(CAST({_signed(value)} AS {wide})), 0) AS {wide})"
        return (Part(wide, partial, merge),), "{1}", None
    if type_ == BIGINT:
        high = Part("BIGINT", f"sum(shiftright({value}, 32) * {_SIGN})")
        low = Part("BIGINT", f"sum(({value} & 4294967295L) * {_SIGN})")
        return (high, low), "(CAST({1} AS DECIMAL(38,0)) * 4294967296 + {2})", None
    if type_ in INTEGERS:
        return (Part("BIGINT", f"sum(CAST({value} AS BIGINT) * {_SIGN})"),), "{1}", None
    if type_ in (FLOAT, DOUBLE):
        return _total_of_doubles(f"CAST({value} AS DOUBLE)")
    return None


def _total_of_doubles(value: str) -> tuple[tuple[Part, ...], str, str | None]:
    """|x| as whole multiples of 2^30, 1, 2^-30, 2^-60 and 2^-90, each added up as an integer with the sign of x.

    NaN and the infinities are counted. What does not fit (2^62 and more, or bits below 2^-90) is counted too; a group
    that has such numbers keeps them in a sorted array and cannot be folded.
    """
    is_finite = f"({value} < DOUBLE('Infinity') AND {value} > DOUBLE('-Infinity'))"
    is_odd = f"({is_finite} AND (abs({value}) >= 4611686018427387904D OR abs({value}) % {2.0**-90!r}D <> 0))"
    size = f"IF({is_finite} AND NOT {is_odd}, abs({value}), 0D)"
    sign = f"IF(({value} < 0) <> ({_SIGN} < 0), -1L, 1L)"
    limbs = [
        f"floor({size} / {_LIMB}D)",
        f"floor({size} % {_LIMB}D)",
        f"floor(({size} % 1D) * {_LIMB}D)",
        f"floor(({size} % {2.0**-30!r}D) * {2.0**60!r}D)",
        f"floor(({size} % {2.0**-60!r}D) * {2.0**90!r}D)",
    ]
    parts = [Part("BIGINT", f"sum(CAST({limb} AS BIGINT) * {sign})") for limb in limbs]
    for test in (f"isnan({value})", f"{value} = DOUBLE('Infinity')", f"{value} = DOUBLE('-Infinity')", is_odd):
        parts.append(Part("BIGINT", f"sum(IF({test}, {_SIGN}, 0L))"))
    # The fast way keeps no odd numbers: `careful` collects them, and only where every row of the group is there.
    parts.append(
        Part(
            "ARRAY<DOUBLE>",
            "CAST(array() AS ARRAY<DOUBLE>)",
            "CASE WHEN {o} IS NULL THEN {p} WHEN {p} IS NULL OR size({p}) = 0 THEN {o}"
            " ELSE array_sort(concat({o}, {p})) END",
            f"array_sort(collect_list(IF({is_odd}, {value}, NULL)))",
        )
    )
    finite = f"({_double([f'{{{index}}}' for index in range(1, 6)])} + aggregate({{10}}, 0D, (a, x) -> a + x))"
    total = (
        f"CASE WHEN {{6}} > 0 OR ({{7}} > 0 AND {{8}} > 0) THEN DOUBLE('NaN') WHEN {{7}} > 0 THEN DOUBLE('Infinity')"
        f" WHEN {{8}} > 0 THEN DOUBLE('-Infinity') ELSE {finite} END"
    )
    return tuple(parts), total, "{9} <> 0"


def _double(limbs: list[str]) -> str:
    """Five integers, each counting 2^30 times the next, as the floating point number they are."""

    def positive(values: list[str]) -> str:
        carried = values[4]
        rests = [f"(({carried}) & {_LIMB - 1}L) * {2.0**-90!r}D"]
        for value, weight in ((values[3], 2.0**-60), (values[2], 2.0**-30), (values[1], 1.0)):
            carried = f"{value} + shiftright({carried}, 30)"
            rests.append(f"(({carried}) & {_LIMB - 1}L) * {weight!r}D")
        top = f"({values[0]} + shiftright({carried}, 30))"
        sums = rests[0]
        for each in rests[1:]:
            sums = f"({sums} + {each})"
        return f"({sums} + {top} * {float(_LIMB)!r}D)"

    carried = limbs[4]
    for value in (limbs[3], limbs[2], limbs[1]):
        carried = f"{value} + shiftright({carried}, 30)"
    top = f"({limbs[0]} + shiftright({carried}, 30))"
    return f"IF({top} < 0, -{positive([f'(-{each})' for each in limbs])}, {positive(limbs)})"


def _split(value: str, type_: Decimal) -> tuple[tuple[Part, ...], str, str | None] | None:
    """A wide decimal in two: its last eighteen digits, and what stands before them."""
    if type_.scale > 6:
        return None  # Spark would round where the two are put together
    unit = f"CAST(1{'0' * (18 - type_.scale)} AS DECIMAL({19 - type_.scale},0))"
    low, small = f"({value} % {unit})", f"DECIMAL(37,{type_.scale})"
    high = f"CAST(({value} - {low}) / {unit} AS DECIMAL(20,0))"
    parts = []
    for wide, part in (("DECIMAL(37,0)", high), (small, low)):
        merge = f"CAST(coalesce({{o}}, 0) + coalesce({{p}}, 0) AS {wide})"
        parts.append(Part(wide, f"CAST(coalesce(sum(CAST({_signed(part)} AS {wide})), 0) AS {wide})", merge))
    whole = f"DECIMAL(38,{type_.scale})"
    return tuple(parts), f"(CAST({{1}} * {unit} AS {whole}) + CAST({{2}} AS {whole}))", None


def _sum(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
    total = _total(arguments[0], types[0])
    if total is None:
        return _NOTHING
    parts, value, check = total
    finish = f"IF({{0}} = 0, NULL, CAST({value} AS {result}))"
    return State(Kind.INVERTIBLE, (Part("BIGINT", _present(arguments[0])), *parts), finish, check)


def _avg(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
    total = _total(arguments[0], types[0])
    if total is None:
        return _NOTHING
    parts, value, check = total
    if isinstance(types[0], Decimal):
        quotient = _quotient(value, types[0])
        if quotient is None:
            return _NOTHING
    else:
        quotient = f"try_divide(CAST({value} AS DOUBLE), {{0}})"
    finish = f"CAST({quotient} AS {result})"
    return State(Kind.INVERTIBLE, (Part("BIGINT", _present(arguments[0])), *parts), finish, check)


def _quotient(value: str, type_: Decimal) -> str | None:
    """An average to four digits more than its decimals have, which is what Spark gives."""
    precision, scale = type_.precision, type_.scale
    total = f"CAST({value} AS DECIMAL({min(38, precision + 10)},{scale}))"
    if precision <= 24:
        return f"try_divide({total}, CAST({{0}} AS DECIMAL(20,0)))"
    if scale > 21:
        return None
    # There is no room left for these digits beside the whole number, so it is divided by itself.
    count = "nullif(CAST({0} AS DECIMAL(13,0)), 0)"
    rest = f"CAST({total} % {count} AS DECIMAL({min(38, 13 + scale)},{scale}))"
    whole = f"CAST(({total} - {rest}) / {count} AS DECIMAL({33 - scale},0))"
    return f"({whole} + CAST({rest} / {count} AS DECIMAL({scale + 5},{scale + 4})))"


def _all_true(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
    return State(Kind.INVERTIBLE, _truths(arguments[0]), "IF({0} + {1} = 0, NULL, {1} = 0)")


def _any_true(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
    return State(Kind.INVERTIBLE, _truths(arguments[0]), "IF({0} + {1} = 0, NULL, {0} > 0)")


def _truths(value: str) -> tuple[Part, ...]:
    return Part("BIGINT", f"sum(IF({value}, {_SIGN}, 0L))"), Part("BIGINT", f"sum(IF(NOT {value}, {_SIGN}, 0L))")


def _extreme(function: str, choose: str) -> _Make:
    def make(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
        worse = "{a} < {b}" if function == "max" else "{a} > {b}"
        odd = "{a} = 0" if types[0] in (FLOAT, DOUBLE) else "false"  # 0.0 and -0.0 are the same, and are not
        part = Part(result, f"{function}({arguments[0]})", f"{choose}({{o}}, {{p}})", worse=worse, odd=odd)
        return State(Kind.MERGEABLE, (part,), "{0}")

    return make


def _by(function: str, sign: str) -> _Make:
    """min_by and max_by: of equal ones the row that came first, or last."""

    def make(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
        if len(types) != 2 or isinstance(types[1], Array | Map | Struct):
            return _NOTHING
        value, order = arguments
        struct = f"STRUCT<`y`:{types[1]},`i`:BIGINT,`x`:{result}>"
        partial = (
            f"{function}(named_struct('y', {order}, 'i', {_ID}, 'x', {value}),"
            f" IF({order} IS NULL, NULL, named_struct('y', {order}, 'i', {_ID})))"
        )
        worse = _pair("a") + f" {_OPPOSITE[sign]} " + _pair("b")
        return State(Kind.MERGEABLE, (Part(struct, partial, _better(sign), worse=worse),), "{0}.x")

    return make


def _end(function: str, sign: str) -> _Make:
    """first and last: by the order in which the rows came, or by event time first if that is the second argument.

    A row without a time is neither while there is one with a time.
    """
    known = "IS NULL" if sign == "<" else "IS NOT NULL"

    def in_time(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
        value, time = arguments
        struct = f"STRUCT<`t`:{types[1]},`i`:BIGINT,`x`:{result}>"
        order = f"named_struct('n', {{0}} {known}, 't', {{0}}, 'i', {{1}})"
        key = _if(condition, order.format(time, _ID))
        partial = f"{function}(named_struct('t', {time}, 'i', {_ID}, 'x', {value}), {key})"
        old, new = order.format("{o}.t", "{o}.i"), order.format("{p}.t", "{p}.i")
        merge = f"CASE WHEN {{o}} IS NULL THEN {{p}} WHEN {{p}} IS NULL OR {old} {sign} {new} THEN {{o}} ELSE {{p}} END"
        worse = f"{order.format('{a}.t', '{a}.i')} {_OPPOSITE[sign]} {order.format('{b}.t', '{b}.i')}"
        return State(Kind.MERGEABLE, (Part(struct, partial, merge, worse=worse),), "{0}.x")

    def make(arguments: tuple[str, ...], types: tuple[DataType, ...], result: str, condition: str | None) -> State:
        if len(arguments) == 2:
            return in_time(arguments, types, result, condition)
        struct = f"STRUCT<`i`:BIGINT,`x`:{result}>"
        partial = f"{function}(named_struct('i', {_ID}, 'x', {arguments[0]}), {_if(condition, _ID)})"
        merge = (
            f"CASE WHEN {{o}} IS NULL THEN {{p}} WHEN {{p}} IS NULL OR {{o}}.i {sign} {{p}}.i THEN {{o}} ELSE {{p}} END"
        )
        worse = f"{{a}}.i {_OPPOSITE[sign]} {{b}}.i"
        return State(Kind.MERGEABLE, (Part(struct, partial, merge, worse=worse),), "{0}.x")

    return make


def _if(condition: str | None, order: str) -> str:
    """An order in which only the rows count that fulfil a condition: min_by and max_by pass over those without one."""
    return order if condition is None else f"IF({condition}, {order}, NULL)"


_OPPOSITE = {"<": ">", ">": "<"}


def _pair(state: str) -> str:
    return f"named_struct('y', {{{state}}}.y, 'i', {{{state}}}.i)"


def _better(sign: str) -> str:
    """Which of two states to keep: the one with the smaller or larger value, and of equal ones by their rows."""
    old, new = _pair("o"), _pair("p")
    return f"CASE WHEN {{o}} IS NULL THEN {{p}} WHEN {{p}} IS NULL OR {old} {sign} {new} THEN {{o}} ELSE {{p}} END"


_STATES: dict[str, _Make] = {
    "Count": _count,
    "count_if": _count_if,
    "countif": _count_if,
    "Sum": _sum,
    "Average": _avg,
    "CountIf": _count_if,
    "BoolAnd": _all_true,
    "BoolOr": _any_true,
    "bool_and": _all_true,
    "every": _all_true,
    "bool_or": _any_true,
    "some": _any_true,
    "any": _any_true,
    "Min": _extreme("min", "least"),
    "Max": _extreme("max", "greatest"),
    "MinBy": _by("min_by", "<"),
    "MaxBy": _by("max_by", ">"),
    "First": _end("min_by", "<"),
    "AnyValue": _end("min_by", "<"),
    "any_value": _end("min_by", "<"),
    "Last": _end("max_by", ">"),
}
"""By the class that Spark has for the aggregate, or by its name where Spark replaces it by others."""

WITH_STATES = frozenset(_STATES)
"""The aggregates that may have a state."""

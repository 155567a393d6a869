"""Groups: rows to the states of their groups, and old and new states to the changes of a view and of its state.

    partial(rows)       for each key: how many rows, and the state of each aggregate
    V                   finish(partial(rows)), of the groups that are there and fulfil HAVING
    ΔV, Δstate          for each touched group, what is finished from its new state less what is from its old one

A group is there while it has rows; without keys there is one group, also of no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stepwell.algebra.aggregates import REFOLD, GroupResult, Kind, State, state_of
from stepwell.algebra.expressions import (
    TRUE,
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Named,
    and_all,
    cast,
    checked,
    compare,
    either,
    equal,
    fingerprint_of,
    if_,
    is_true,
    negated,
    null,
    number,
    transform,
)
from stepwell.algebra.nodes import Aggregate, Filter, Fresh, Item, Node, Project, Scan, Unnest, passed
from stepwell.algebra.states import ALL, CAME, WENT, finished, is_odd, part_names, partial_state, type_of
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.relations import Column
from stepwell.model.types import parse_type
from stepwell.rules.blocks import LEAF, GroupBlock
from stepwell.rules.identity import Identified
from stepwell.rules.programs import STATE, Output, Program, StoredRows, Target, key_names, keys_of
from stepwell.rules.versions import versioned

COUNT = "_sw_n"
"""How many rows a group has."""

NEGATIVE = "stepwell: a group has a negative count"


@dataclass(frozen=True, slots=True)
class Partials:
    """A state for each group of some rows; where the sides of a change are apart, `went` has those of what went."""

    tree: Node
    keys: tuple[Attribute, ...]
    count: Attribute
    states: tuple[Attribute, ...]
    went: tuple[Attribute | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Pairs:
    """The old and the new state of each touched group; a group that was not there has no old count."""

    tree: Node
    keys: tuple[Attribute, ...]
    old_count: Attribute
    new_count: Attribute
    old: tuple[Attribute, ...]
    new: tuple[Attribute, ...]


def states_of(group: GroupBlock) -> tuple[State, ...]:
    return tuple(map(state_of, group.results))


def has_states(group: GroupBlock) -> bool:
    """Whether all aggregates of a group have states, so that these are kept."""
    return all(state.kind != Kind.NONE for state in states_of(group))


def is_invertible(group: GroupBlock) -> bool:
    """Whether rows can be taken back without looking at those that stay."""
    return all(state.kind == Kind.INVERTIBLE for state in states_of(group))


def state_columns(group: GroupBlock) -> tuple[Column, ...]:
    """The columns in which the states of a group are stored: its keys, how many rows, the parts of each aggregate."""
    keys = [Column(key, parse_type(type_)) for key, type_ in zip(key_names(group), group.key_types, strict=True)]
    parts = [
        Column(name, parse_type(part.type))
        for index, state in enumerate(states_of(group))
        for name, part in zip(part_names(index, state), state.parts, strict=True)
    ]
    return (*keys, Column(COUNT, parse_type("BIGINT")), *parts)


# -- rows to states ---------------------------------------------------------------------------------------------------


def partials(
    group: GroupBlock, rows: Identified, fresh: Fresh, *, exact: bool = False, apart: bool = False
) -> Partials:
    """partial(rows). What is not signed has come.

    One that is `exact` is of all rows of its groups, and takes any value; with `apart`, what came and what went of an
    aggregate that cannot be undone are two states.
    """
    reading = _Reading(group, rows)
    keys = [Item(fresh.like(each), each) for each in keys_of(group)]
    total = Call("Coalesce", (AggregateCall("Sum", (reading.sign,), "BIGINT"), number(0)), "BIGINT", nullable=False,
                 detail=(("name", "coalesce"),))  # fmt: skip
    count = Item(fresh.column("BIGINT", nullable=False), total)
    states, gone = [], []
    for index, state in enumerate(states_of(group)):
        sides = apart and state.kind == Kind.MERGEABLE
        states.append(Item(fresh.column(type_of(index)), reading.state(index, CAME if sides else ALL, exact=exact)))
        gone.append(Item(fresh.column(type_of(index)), reading.state(index, WENT, exact=exact)) if sides else None)
    items = (*keys, count, *states, *(each for each in gone if each is not None))
    went = tuple(each.column if each is not None else None for each in gone)
    columns = tuple(item.column for item in states)
    tree = Aggregate(keys_of(group), items, rows.tree)
    return Partials(tree, tuple(item.column for item in keys), count.column, columns, went)


@dataclass(frozen=True)
class _Reading:
    """How the aggregates of a group read its rows."""

    group: GroupBlock
    rows: Identified

    @property
    def sign(self) -> Expression:
        return self.rows.sign if self.rows.sign is not None else number(1)

    def value(self, name: str, type_: str) -> Expression:
        """What a column of the rows is called by; a constant is what it says."""
        found = dict(zip(self.group.rows.names, self.group.rows.columns, strict=True)).get(name)
        return found if found is not None else self.rows.id if name == ROW_ID else Named(name, type_)

    def state(self, index: int, side: str, *, exact: bool) -> AggregateCall:
        result = self.group.results[index]
        pairs = zip(result.arguments, result.argument_types, strict=True)
        arguments = [self.value(name, type_) for name, type_ in pairs]
        condition = None if result.condition is None else self.value(result.condition, "BOOLEAN")
        return partial_state(index, result, arguments, self.sign, self.rows.id, condition, exact=exact, rows=side)

    def call(self, result: GroupResult) -> Expression:
        """An aggregate that has no state, independent of the order of the rows."""
        named = transform(
            result.call, lambda each: self.value(each.name, each.type) if isinstance(each, Named) else None
        )
        assert isinstance(named, AggregateCall)
        if result.function == "CollectList" and result.plain and len(result.arguments) == 1:
            return AggregateCall("OrderedList", (*named.arguments, self.rows.id), named.type)
        if result.function == "CollectSet" and result.plain:
            return Call("SortArray", (named, TRUE), named.type, detail=(("name", "sort_array"),))
        return named


# -- states to rows ---------------------------------------------------------------------------------------------------


def computed(
    group: GroupBlock, rows: Identified, columns: tuple[Column, ...], fresh: Fresh, *, exact: bool = True
) -> StoredRows:
    """V, of all groups that some rows have; these are not signed.

    One that is not `exact` is faster, and fails where it meets a value that it cannot add.
    """
    reading = _Reading(group, rows)
    keys = [Item(fresh.like(each), each) for each in keys_of(group)]
    held, results = [], []
    odd: list[Item] = []
    for index, (result, state) in enumerate(zip(group.results, states_of(group), strict=True)):
        if state.kind == Kind.NONE:
            held.append(Item(fresh.column(result.result_type), reading.call(result)))
            results.append(Item(fresh.column(result.result_type), held[-1].column))
        else:
            held.append(Item(fresh.column(type_of(index)), reading.state(index, ALL, exact=exact)))
            results.append(Item(fresh.column(result.result_type), finished(held[-1].column, result)))
            if not exact and state.check is not None:
                odd.append(Item(fresh.column("BOOLEAN"), is_odd(held[-1].column)))
    some = Item(fresh.column("BIGINT"), AggregateCall("Count", (number(1),), "BIGINT"))
    tree: Node = Aggregate(keys_of(group), (*keys, *held, some), rows.tree)
    key_columns = tuple(item.column for item in keys)
    tree = Project((*passed(key_columns), *results, *odd), tree)
    doubt = either(*(item.column for item in odd)) if odd else None
    return shown(group, tree, key_columns, tuple(item.column for item in results), columns, fresh, doubt)


def shown(
    group: GroupBlock,
    tree: Node,
    keys: tuple[Attribute, ...],
    results: tuple[Attribute, ...],
    columns: tuple[Column, ...],
    fresh: Fresh,
    doubt: Expression | None = None,
) -> StoredRows:
    """V, from the keys of its groups and the results of its aggregates; it fails where there is `doubt` about these."""

    def sure(value: Expression) -> Expression:
        return value if doubt is None else checked(value, doubt, REFOLD)

    named = _named(keys, results)
    if group.having is not None:
        tree = Filter(sure(_said(group.having, named)), tree)
    id_ = fresh.column("BIGINT", nullable=False)
    tree = Project((*passed(tree.output), Item(id_, sure(fingerprint_of(keys)))), tree)
    return versioned(columns, [_said(each, named) for each in group.items], Identified(tree, id_), fresh)


def stored_states(group: GroupBlock, fresh: Fresh) -> Partials:
    """What is stored of the groups."""
    keys = tuple(fresh.like(replace(each, nullable=True)) for each in keys_of(group))
    count = fresh.column("BIGINT")
    states = tuple(fresh.column(type_of(index)) for index in range(len(group.results)))
    names = (*key_names(group), COUNT, *(f"_sw_p{index}" for index in range(len(states))))
    return Partials(Scan(LEAF, (*keys, count, *states), names, cut=STATE), keys, count, states)


def same_keys(one: tuple[Attribute, ...], other: tuple[Attribute, ...]) -> Expression:
    return and_all([equal(left, right) for left, right in zip(one, other, strict=True)])


def changes(group: GroupBlock, pairs: Pairs, columns: tuple[Column, ...], fresh: Fresh, *, exact: bool) -> Program:
    """ΔV and Δstate. A fold that is not `exact` fails where it meets a value that it cannot add."""
    return _Comparison(group, pairs, columns, fresh, exact).program()


@dataclass(frozen=True, slots=True)
class _Side:
    """The old or the new side of the pairs: whether the group is there, what it shows if HAVING lets it, versions."""

    count: Attribute
    states: tuple[Attribute, ...]
    there: Attribute
    shown: Attribute
    cells: tuple[Attribute, ...]
    row_version: Attribute
    state_version: Attribute


class _Comparison:
    """Old and new states, finished and compared."""

    def __init__(self, group: GroupBlock, pairs: Pairs, columns: tuple[Column, ...], fresh: Fresh, exact: bool) -> None:
        self._group, self._pairs, self._columns, self._fresh, self._exact = group, pairs, columns, fresh, exact
        self._tree: Node = pairs.tree

    def program(self) -> Program:
        pairs, fresh = self._pairs, self._fresh
        id_, old, new = self._finished()
        sign, place = fresh.column("BIGINT", nullable=False), fresh.column("INT", nullable=False)
        both = Call("CreateArray", (number(-1), number(1)), "ARRAY<BIGINT>", nullable=False)
        self._tree = Unnest(both, sign, place, False, self._tree)
        goes = compare("LessThan", sign, number(0))
        same_row = and_all([old.shown, new.shown, compare("EqualTo", old.row_version, new.row_version)])
        same_state = and_all([old.there, new.there, compare("EqualTo", old.state_version, new.state_version)])
        values: list[tuple[Expression, Expression]] = [
            (and_all([old.shown, negated(same_row)]), and_all([new.shown, negated(same_row)])),
            (and_all([old.there, negated(same_state)]), and_all([new.there, negated(same_state)])),
            (old.row_version, new.row_version),
            (old.state_version, new.state_version),
            (old.count, new.count),
            *zip(old.states, new.states, strict=True),
            *zip(old.cells, new.cells, strict=True),
        ]
        chosen = self._add(*((one.type, if_(goes, one, other)) for one, other in values))
        is_shown, is_there, row_version, state_version, count, *rest = chosen
        shared: tuple[tuple[Expression, str], ...] = ((id_, ROW_ID), (sign, DIFF))
        held = [*zip(pairs.keys, key_names(self._group), strict=True), (count, COUNT)]
        held += [(state, f"_sw_p{index}") for index, state in enumerate(rest[: len(old.states)])]
        cells = rest[len(old.states) :]
        shows = [(cell, column.name) for cell, column in zip(cells, self._columns, strict=True)]
        return Program(
            Filter(either(is_shown, is_there), self._tree),
            (
                Output(Target.STATE, (*held, *shared, (state_version, ROW_VERSION)), is_there),
                Output(Target.ROWS, (*shows, *shared, (row_version, ROW_VERSION)), is_shown),
            ),
        )

    def _finished(self) -> tuple[Attribute, _Side, _Side]:
        """The identity of each group, and its two sides."""
        group, pairs = self._group, self._pairs
        states = (pairs.old, pairs.new)
        results = [
            [(r.result_type, finished(s, r)) for r, s in zip(group.results, side, strict=True)] for side in states
        ]
        made = self._add(
            ("BIGINT", fingerprint_of(pairs.keys)), ("BOOLEAN", self._had()), ("BOOLEAN", self._has()),
            *results[0], *results[1],
        )  # fmt: skip
        id_, had, has, *finals = made
        half = len(finals) // 2
        shows = [self._shown(had, finals[:half]), self._shown(has, finals[half:])]
        columns = self._add(*shows[0], *shows[1])
        width = len(shows[0])
        sides = (columns[:width], columns[width:])
        counts = (pairs.old_count, pairs.new_count)
        versions = self._add(
            *(("BIGINT", fingerprint_of(cells, id_)) for _, *cells in sides),
            *(("BIGINT", fingerprint_of((count, *held), id_)) for count, held in zip(counts, states, strict=True)),
        )
        old, new = (
            _Side(counts[side], states[side], (had, has)[side], sides[side][0], sides[side][1:],
                  versions[side], versions[2 + side])
            for side in (0, 1)
        )  # fmt: skip
        return id_, old, new

    def _add(self, *values: tuple[str, Expression]) -> tuple[Attribute, ...]:
        """More columns, beside those that are there."""
        items = [Item(self._fresh.column(type_), each) for type_, each in values]
        self._tree = Project((*passed(self._tree.output), *items), self._tree)
        return tuple(item.column for item in items)

    def _shown(self, there: Attribute, results: Sequence[Attribute]) -> list[tuple[str, Expression]]:
        """Whether a side is shown, and its cells."""
        named = _named(self._pairs.keys, tuple(results))
        shows: Expression = there
        if self._group.having is not None:
            shows = and_all([there, if_(there, is_true(_said(self._group.having, named)), null("BOOLEAN"))])
        types = [str(each.type) for each in self._columns]
        pairs = zip(self._group.items, types, strict=True)
        return [("BOOLEAN", shows), *((t, if_(there, cast(_said(item, named), t), null(t))) for item, t in pairs)]

    def _had(self) -> Expression:
        had: Expression = Call("IsNotNull", (self._pairs.old_count,), "BOOLEAN", nullable=False)
        checks = [index for index, state in enumerate(states_of(self._group)) if state.check is not None]
        if self._exact or not checks:
            return had
        odd = [is_odd(side[index]) for index in checks for side in (self._pairs.old, self._pairs.new)]
        return checked(had, either(*odd), REFOLD)

    def _has(self) -> Expression:
        there = TRUE if not self._group.keys else compare("GreaterThan", self._pairs.new_count, number(0))
        return checked(there, compare("LessThan", self._pairs.new_count, number(0)), NEGATIVE)


def _named(keys: tuple[Attribute, ...], results: tuple[Attribute, ...]) -> dict[str, Expression]:
    named: dict[str, Expression] = {f"_sw_g{index}": each for index, each in enumerate(keys)}
    return named | {f"_sw_r{index}": each for index, each in enumerate(results)}


def _said(expression: Expression, named: Mapping[str, Expression]) -> Expression:
    """An expression over keys and results, by what these are."""
    return transform(expression, lambda each: named.get(each.name) if isinstance(each, Named) else None)

"""States compared: what is kept of each group against what its rows come to, as SQL.

A state is wrong before anybody sees it: the average of 2 and another 2 hides a wrong count, and a group that fails
HAVING hides everything. Most parts of a state have one form, so they are compared as they are, NULL, NaN and −0.0
included. Of equal values min and max may keep either, so theirs are compared as values are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stepwell.algebra.expressions import Named
from stepwell.algebra.fingerprints import fingerprint
from stepwell.algebra.nodes import Moment
from stepwell.model.files import ROW_ID
from stepwell.model.relations import Column
from stepwell.plan.programs import lowered
from stepwell.plan.wording import users_words
from stepwell.rules.blocks import GroupBlock
from stepwell.rules.groups import COUNT, partials, state_columns, states_of
from stepwell.rules.programs import Occasion, Output, Program, Target, key_names
from stepwell.rules.row_changes import rows_at

HOW = "_sw_how"
"""Of a difference: whether the state of the group is missing, unexpected or different."""

_NUMBER = "_sw_nr"
_EITHER = frozenset({"Min", "Max"})


@dataclass(frozen=True, slots=True)
class Held:
    """A column of a state that is not a key, with the words that a user has for it."""

    column: Column
    words: str
    is_either: bool
    """Whether of several equal values any may be kept."""


def held_in(group: GroupBlock) -> Iterator[Held]:
    """What a state holds of each group: how many rows, and the parts of each aggregate."""
    columns = iter(state_columns(group)[group.keys :])
    yield Held(next(columns), "rows", is_either=False)
    for index, (result, state) in enumerate(zip(group.results, states_of(group), strict=True)):
        words = users_words(group, f"_sw_r{index}")
        for _ in state.parts:
            yield Held(next(columns), words, result.function in _EITHER)


def partials_of(group: GroupBlock, occasion: Occasion) -> Program:
    """The states that the rows of a group come to, in the columns in which they are stored."""
    rows = rows_at(group.rows, Moment.AFTER, occasion)
    found = partials(group, rows, occasion.fresh, exact=True)
    names = (*key_names(group), COUNT, *(f"_sw_p{index}" for index in range(len(found.states))))
    columns = tuple(zip((*found.keys, found.count, *found.states), names, strict=True))
    return lowered(Program(found.tree, (Output(Target.STATE, columns),)), group)


def state_difference(group: GroupBlock, right: str, kept: str) -> str:
    """The groups whose state in `kept` is not that of the query `right`: `HOW`, the keys, and both states side by side.

    The columns of what is kept are called as they are in the state, those of what should be have an `_x` behind. A
    second state of one group is unexpected.
    """
    keys, held = key_names(group), list(held_in(group))
    by_key = ", ".join(keys) or "1"
    number = f"row_number() OVER (PARTITION BY {by_key} ORDER BY {ROW_ID}) AS {_NUMBER}"
    there = f"(SELECT *, {number} FROM {kept}) AS s"
    new = f"(SELECT *, 1 AS {_NUMBER} FROM ({right})) AS p"
    same = " AND ".join(_same(each) for each in held)
    how = (
        f"CASE WHEN s.{_NUMBER} IS NULL THEN 'missing' WHEN p.{_NUMBER} IS NULL THEN 'unexpected'"
        f" WHEN NOT coalesce({same}, false) THEN 'different' END AS {HOW}"
    )
    shown = [f"IF(p.{_NUMBER} IS NULL, s.{key}, p.{key}) AS {key}" for key in keys]
    for each in held:
        name = each.column.name
        shown += [f"s.{name} AS {name}", f"p.{name} AS {name}_x"]
    by_keys = " AND ".join(f"p.{key} <=> s.{key}" for key in keys) or "true"
    joined = f"{new} FULL JOIN {there} ON {by_keys} AND p.{_NUMBER} = s.{_NUMBER}"
    return f"SELECT * FROM (SELECT {', '.join([how, *shown])} FROM {joined}) WHERE {HOW} IS NOT NULL"


def said_of(group: GroupBlock, difference: dict[str, object]) -> str:
    """One row of `state_difference` as a line for a user."""
    names = {
        item.name: name for item, name in zip(group.items, group.names, strict=True) if isinstance(item, Named)
    }  # fmt: skip
    keys = [f"{names.get(key, users_words(group, key))} = {_said(difference[key])}" for key in key_names(group)]
    where = f"state of {', '.join(keys) or 'all rows'}"
    if difference[HOW] != "different":
        return f"{difference[HOW]}: {where}"
    parts: dict[str, tuple[list[str], list[str]]] = {}
    for each in held_in(group):
        name = each.column.name
        is_, should_be = _said(difference[name]), _said(difference[f"{name}_x"])
        if is_ != should_be:
            found = parts.setdefault(each.words, ([], []))
            found[0].append(is_)
            found[1].append(should_be)
    changes = [f"{words} kept as {', '.join(is_)} and not {', '.join(be)}" for words, (is_, be) in parts.items()]
    return f"different: {where}: {'; '.join(changes)}"


def _same(held: Held) -> str:
    name, type_ = held.column.name, held.column.type
    if held.is_either or name == COUNT:
        return f"p.{name} <=> s.{name}"
    return f"{fingerprint([(f'p.{name}', type_)])} = {fingerprint([(f's.{name}', type_)])}"


def _said(value: object) -> str:
    return "NULL" if value is None else str(value)

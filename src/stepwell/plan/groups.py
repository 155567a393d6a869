"""Groups as SQL: partial states folded into those that are kept, and rows finished from them.

One query gives both the change of the state and the change of the view: for every touched group its old and its new
state, side by side, are finished and compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepwell.algebra.expressions import Expression, Named, transform
from stepwell.algebra.printing import print_expression
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.relations import Column
from stepwell.model.types import parse_type, quote
from stepwell.plan.aggregates import REFOLD, Kind, Part, State, deterministic, state_of
from stepwell.plan.blocks import GroupBlock, GroupResult
from stepwell.plan.fingerprints import fingerprint
from stepwell.plan.render import keys_of, same_keys

COUNT = "_sw_n"
STATE_VERSION = "_sw_sver"
IN_STATE, IN_ROWS = "_sw_in_state", "_sw_in_rows"
"""Flags on the rows of a fold: which of the two changes a row belongs to."""


@dataclass(frozen=True, slots=True)
class Folding:
    """A group whose aggregates all have states."""

    group: GroupBlock
    states: tuple[State, ...]

    @property
    def is_invertible(self) -> bool:
        """Whether rows can be taken back without looking at those that stay."""
        return all(state.kind == Kind.INVERTIBLE for state in self.states)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the state: the keys, how many rows, and the parts of each aggregate."""
        keys = [
            Column(key, parse_type(type_)) for key, type_ in zip(keys_of(self.group), self.group.key_types, strict=True)
        ]
        parts = [Column(name, parse_type(part.type)) for name, part in self._parts()]
        return (*keys, Column(COUNT, parse_type("BIGINT")), *parts)

    def _parts(self) -> Iterator[tuple[str, Part]]:
        for index, state in enumerate(self.states):
            for number, part in enumerate(state.parts):
                yield f"_sw_p{index}_{number}", part

    def _names(self, index: int, prefix: str) -> list[str]:
        return [f"{prefix}p{index}_{number}" for number in range(len(self.states[index].parts))]

    @property
    def can_lose(self) -> bool:
        """Whether it can be seen in a state that a row which was taken back did not matter."""
        return all(
            state.kind == Kind.INVERTIBLE or all(part.worse or part.follows for part in state.parts)
            for state in self.states
        )

    def partial(self, rows: str, *, careful: bool, losing: bool = False) -> str:
        """Signed rows to a state for each of their groups; if that is `losing` rows, with the best of these beside."""
        keys = keys_of(self.group)
        columns = [*keys, f"coalesce(sum({DIFF}), 0L) AS {COUNT}"]
        for name, part in self._parts():
            if losing and (part.worse or part.follows):
                columns.append(f"CAST({part.partial} FILTER (WHERE {DIFF} > 0) AS {part.type}) AS {name}")
                columns.append(f"CAST({part.partial} FILTER (WHERE {DIFF} < 0) AS {part.type}) AS {_lost(name)}")
            else:
                columns.append(f"{part.sql(careful=careful)} AS {name}")
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join(columns)} FROM ({rows}){grouped}"

    def merged(self, partial: str, state: str, *, losing: bool = False) -> str:
        """Old and new states side by side: what is kept, and that with what has come.

        If that is `losing` rows: a row that was not the best of its group, or that a better or equal one replaces, does
        not matter. A group that has lost its best one fails the query: it has to be computed anew.
        """
        keys = keys_of(self.group)
        columns = [f"p.{key} AS {key}" for key in keys]
        count, worst, mattered = f"coalesce(s.{COUNT}, 0L) + p.{COUNT}", [], "false"
        states = []
        for name, part in self._parts():
            old, new, lost = f"s.{name}", f"p.{name}", f"p.{_lost(name)}"
            merged = part.merge.replace("{o}", old).replace("{p}", new)
            if part.follows:
                first = f"{name.rpartition('_')[0]}_0"
                merged = merged.replace("{o0}", f"s.{first}").replace("{p0}", f"p.{first}")
                merged = f"IF({mattered}, {new}, {merged})" if losing else merged
            if losing and part.worse:
                mattered = f"({lost} IS NOT NULL AND NOT coalesce({_compared(part.worse, lost, old)}, false))"
                replaced = f"coalesce(NOT ({_compared(part.worse, new, lost)}) AND {new} IS NOT NULL, false)"
                worst.append(f"({mattered} AND (NOT {replaced} OR {part.odd.replace('{a}', lost)}))")
                merged = f"IF({mattered}, {new}, {merged})"
            states += [f"{old} AS {_old(name)}", f"CAST({merged} AS {part.type}) AS {_new(name)}"]
        if worst:
            again = f"CAST(raise_error('{REFOLD}') AS BIGINT)"
            count = f"IF({count} > 0 AND ({' OR '.join(worst)}), {again}, {count})"
        columns += [f"s.{COUNT} AS _sw_on", f"{count} AS _sw_mn", *states]
        joined = f"({partial}) AS p LEFT JOIN {state} AS s ON {same_keys(self.group, 'p', 's')}"
        return f"SELECT {', '.join(columns)} FROM {joined}"

    def first(self, partial: str) -> str:
        """Old and new states side by side, where there is no old one yet."""
        columns = [*keys_of(self.group), "CAST(NULL AS BIGINT) AS _sw_on", f"{COUNT} AS _sw_mn"]
        for name, part in self._parts():
            columns += [f"CAST(NULL AS {part.type}) AS {_old(name)}", f"{name} AS {_new(name)}"]
        return f"SELECT {', '.join(columns)} FROM ({partial})"

    def replaced(self, partial: str, state: str, touched: str | None) -> str:
        """Old and new states side by side: what is kept, and what is there now; for the `touched` groups or for all."""
        keys = keys_of(self.group)
        if touched is None:
            source = f"({partial}) AS p FULL JOIN {state} AS s ON {same_keys(self.group, 'p', 's')}"
            columns = [f"IF(p.{COUNT} IS NULL, s.{key}, p.{key}) AS {key}" for key in keys]
        else:
            source = (
                f"({touched}) AS k LEFT JOIN ({partial}) AS p ON {same_keys(self.group, 'k', 'p')}"
                f" LEFT JOIN {state} AS s ON {same_keys(self.group, 'k', 's')}"
            )
            columns = [f"k.{key} AS {key}" for key in keys]
        columns += [f"s.{COUNT} AS _sw_on", f"coalesce(p.{COUNT}, 0L) AS _sw_mn"]
        for name, _ in self._parts():
            columns += [f"s.{name} AS {_old(name)}", f"p.{name} AS {_new(name)}"]
        return f"SELECT {', '.join(columns)} FROM {source}"

    def finished(self, pairs: str, columns: Sequence[Column], *, checked: bool) -> str:
        """Old and new states to the changes of the state and of the view, told apart by two flags.

        `checked` fails the query where a group holds values that a fold cannot add.
        """
        group, keys = self.group, keys_of(self.group)
        parts = [name for name, _ in self._parts()]
        kept = [*keys, "_sw_on", "_sw_mn", *map(_old, parts), *map(_new, parts)]
        results = []
        for index, state in enumerate(self.states):
            for prefix, result in (("_sw_o", "_sw_o"), ("_sw_m", "_sw_r")):
                value = _filled(state.finish, self._names(index, prefix))
                results.append(f"{value} AS {result}{index}")
        negative = "CAST(raise_error('stepwell: a group has a negative count') AS BOOLEAN)"
        has_new = "true" if not group.keys else "_sw_mn > 0"
        flags = [
            "_sw_on IS NOT NULL AS _sw_has_old",
            f"IF(_sw_mn < 0, {negative}, {has_new}) AS _sw_has_new",
        ]
        checks = [
            _filled(state.check, self._names(index, prefix))
            for index, state in enumerate(self.states) if state.check
            for prefix in ("_sw_o", "_sw_m")
        ]  # fmt: skip
        if checks and checked:
            test = " OR ".join(f"coalesce({check}, false)" for check in checks)
            flags[0] = f"IF({test}, CAST(raise_error('{REFOLD}') AS BOOLEAN), _sw_on IS NOT NULL) AS _sw_has_old"
        text = f"SELECT {', '.join([*kept, *results, *flags])} FROM ({pairs})"
        items = []
        for index, (item, column) in enumerate(zip(group.items, columns, strict=True)):
            old, new = _of_old(item), print_expression(item)
            items.append(f"IF(_sw_has_old, CAST({old} AS {column.type}), NULL) AS _sw_io{index}")
            items.append(f"IF(_sw_has_new, CAST({new} AS {column.type}), NULL) AS _sw_in{index}")
        old_shown, new_shown = "_sw_has_old", "_sw_has_new"
        if group.having is not None:
            old_shown = f"IF(_sw_has_old, coalesce({_of_old(group.having)}, false), false)"
            new_shown = f"IF(_sw_has_new, coalesce({print_expression(group.having)}, false), false)"
        shown = [f"{old_shown} AS _sw_shown_old", f"{new_shown} AS _sw_shown_new"]
        identity = fingerprint([(key, parse_type(t)) for key, t in zip(keys, group.key_types, strict=True)])
        outputs = [*kept, "_sw_has_old", "_sw_has_new", *items, *shown, f"{identity} AS {ROW_ID}"]
        text = f"SELECT {', '.join(outputs)} FROM ({text})"
        versions = []
        state_types = {column.name: column.type for column in self.columns}
        for side, count, rename in (("old", "_sw_on", _old), ("new", "_sw_mn", _new)):
            letter = side[0]
            row = [(f"_sw_i{letter}{index}", column.type) for index, column in enumerate(columns)]
            versions.append(f"{fingerprint(row, ROW_ID)} AS _sw_ver_{side}")
            held = [(count, state_types[COUNT]), *((rename(name), state_types[name]) for name in parts)]
            versions.append(f"{fingerprint(held, ROW_ID)} AS _sw_sver_{side}")
        text = f"SELECT *, {', '.join(versions)} FROM ({text})"
        structs = []
        for side, diff, count, rename in (("old", "-1L", "_sw_on", _old), ("new", "1L", "_sw_mn", _new)):
            letter, other = side[0], "new" if side == "old" else "old"
            fields = [(key, key) for key in keys]
            fields += [(COUNT, count), *((name, rename(name)) for name in parts)]
            fields += [(column.name, f"_sw_i{letter}{index}") for index, column in enumerate(columns)]
            fields += [
                (ROW_ID, ROW_ID),
                (ROW_VERSION, f"_sw_ver_{side}"),
                (STATE_VERSION, f"_sw_sver_{side}"),
                (DIFF, diff),
                (IN_ROWS, f"_sw_shown_{side} AND NOT (_sw_shown_{other} AND _sw_ver_old = _sw_ver_new)"),
                (IN_STATE, f"_sw_has_{side} AND NOT (_sw_has_{other} AND _sw_sver_old = _sw_sver_new)"),
            ]
            structs.append(f"named_struct({', '.join(f'{_literal(name)}, {value}' for name, value in fields)})")
        return f"SELECT * FROM (SELECT inline(array({', '.join(structs)})) FROM ({text})) WHERE {IN_ROWS} OR {IN_STATE}"


def folding_of(group: GroupBlock) -> Folding | None:
    """How a group is folded, or None if one of its aggregates has no state."""
    states = tuple(state_of(result) for result in group.results)
    return None if any(state.kind == Kind.NONE for state in states) else Folding(group, states)


def grouped_rows(group: GroupBlock, rows: str, *, signed: bool) -> str:
    """The rows of a group in the types they were analyzed with; unsigned ones count as new."""
    types = dict(zip(keys_of(group), group.key_types, strict=True))
    for result in group.results:
        types.update(zip(result.arguments, result.argument_types, strict=True))
    columns = [f"CAST({name} AS {types[name]}) AS {name}" if name in types else name for name in group.rows.names]
    return f"SELECT {', '.join([*columns, ROW_ID, DIFF if signed else f'1L AS {DIFF}'])} FROM ({rows})"


def direct(group: GroupBlock, rows: str, columns: Sequence[Column]) -> str:
    """The groups of some rows computed as the text says, with their identity."""
    keys = keys_of(group)
    folding = folding_of(group)
    if folding is not None:
        pairs = folding.replaced(folding.partial(rows, careful=True), _no_state(folding), None)
        names = ", ".join([*(quote(column.name) for column in columns), ROW_ID])
        return f"SELECT {names} FROM ({folding.finished(pairs, columns, checked=False)}) WHERE {IN_ROWS}"
    calls = []
    for index, result in enumerate(group.results):
        calls.append(f"{_one_result(result)} AS _sw_r{index}")
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    inner = (
        f"SELECT {', '.join([*keys, *calls])} FROM ({rows}){grouped}" if keys or calls else f"SELECT 1 FROM ({rows})"
    )
    identity = fingerprint([(key, parse_type(t)) for key, t in zip(keys, group.key_types, strict=True)])
    items = [
        f"CAST({print_expression(item)} AS {column.type}) AS {quote(column.name)}"
        for item, column in zip(group.items, columns, strict=True)
    ]
    where = f" WHERE {print_expression(group.having)}" if group.having is not None else ""
    return f"SELECT {', '.join([*items, f'{identity} AS {ROW_ID}'])} FROM ({inner}){where}"


def _one_result(result: GroupResult) -> str:
    """An aggregate among others of which one has no state: by its state where it has one, else as the user wrote it."""
    state = state_of(result)
    if state.kind == Kind.NONE:
        return deterministic(result)
    calls = [part.sql(careful=True) for part in state.parts]
    return _filled(state.finish, calls)


def _no_state(folding: Folding) -> str:
    columns = ", ".join(f"CAST(NULL AS {column.type}) AS {column.name}" for column in folding.columns)
    return f"(SELECT {columns} WHERE false)"


def _filled(template: str, names: Sequence[str]) -> str:
    return re.sub(r"\{(\d+)\}", lambda match: names[int(match.group(1))], template)


def _of_old(expression: Expression) -> str:
    """An expression over results, as SQL over those of the old state."""

    def change(each: Expression) -> Expression | None:
        if isinstance(each, Named) and each.name.startswith("_sw_r"):
            return Named(f"_sw_o{each.name.removeprefix('_sw_r')}", each.type)
        return None

    return print_expression(transform(expression, change))


def _compared(template: str, first: str, second: str) -> str:
    return template.replace("{a}", first).replace("{b}", second)


def _lost(name: str) -> str:
    return "_sw_l" + name.removeprefix("_sw_")


def _old(name: str) -> str:
    return "_sw_o" + name.removeprefix("_sw_")


def _new(name: str) -> str:
    return "_sw_m" + name.removeprefix("_sw_")


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

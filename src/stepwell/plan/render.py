"""Rendering: blocks to the SQL that maintains them.

A relation appears as a temporary view in up to three states: before the epoch, after it, and what the epoch did to it,
signed by `_diff`. Every text here is built of the user's own expressions; rows carry their identity along.

The laws. A join with an inner or left partner is linear in what stands left of it, so Δ starts there with the change in
each source in turn: what stands before it as it was, what follows as it is. For the partner of an outer, semi or anti
join, the rows that its change can touch are taken as they come out with the old partner and as with the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum

from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.relations import Column
from stepwell.model.types import quote
from stepwell.model.views import placeholder
from stepwell.plan.blocks import Group, Join, Partitioned, Rows, Select, Source, UnionAll, inputs_of
from stepwell.plan.fingerprints import fingerprint
from stepwell.plan.ties import reading_order


class Mode(StrEnum):
    """A relation before an epoch, after it, or the change between the two."""

    BEFORE = "b"
    AFTER = "a"
    DELTA = "d"


def view_name(relation: int, mode: Mode) -> str:
    """The temporary view of a relation in one of its states."""
    return f"{placeholder(relation)}_{mode.value}"


@dataclass(frozen=True, slots=True)
class Term:
    """One part of the change of a join: a state for each source, and which source's change has touched the rows."""

    states: tuple[Mode, ...]
    sign: int = 1
    touched_by: int | None = None
    unmatched: bool = False
    """The part of a FULL JOIN whose left side is missing."""


Cuts = dict[tuple[Select, Term, int], str]
"""The views to read in the places of sources that a term needs only a part of."""

NO_CUTS: Cuts = {}


def terms_of(select: Select, changed: AbstractSet[int]) -> list[Term]:
    """Δ of the sources of a SELECT, when the relations `changed` have changed."""
    found: list[Term] = []
    for index, source in enumerate(select.sources):
        moves = not changed.isdisjoint(inputs_of(source))
        before = (Mode.BEFORE,) * index
        if source.join == Join.FIRST:
            found = [Term((Mode.DELTA,))] if moves else []
            continue
        if source.join in (Join.RIGHT, Join.FULL):
            left_moves = bool(found)
            kept = [replace(term, states=(*term.states, Mode.AFTER)) for term in found]
            found = [*kept, *_touched(before, index, moves=moves)] if source.join == Join.FULL else []
            unmatched = source.join == Join.FULL
            if moves:
                found.append(Term((Mode.AFTER, Mode.DELTA), unmatched=unmatched))
            if left_moves:
                found.append(Term((Mode.AFTER, Mode.BEFORE), touched_by=0, unmatched=unmatched))
                found.append(Term((Mode.BEFORE, Mode.BEFORE), -1, 0, unmatched))
            continue
        found = [replace(term, states=(*term.states, Mode.AFTER)) for term in found]
        if source.join in (Join.INNER, Join.CROSS):
            if moves:
                found.append(Term((*before, Mode.DELTA)))
        else:
            found.extend(_touched(before, index, moves=moves))
    return found


def only_adds(rows: Rows, changed: AbstractSet[int]) -> bool:
    """Whether new rows in `changed` can only make new rows, and never take one away."""
    match rows:
        case UnionAll(branches):
            return all(only_adds(branch, changed) for branch in branches)
        case Select():
            inner = [source.input for source in rows.sources if not isinstance(source.input, int)]
            terms = terms_of(rows, changed)
            return all(term.touched_by is None for term in terms) and all(only_adds(each, changed) for each in inner)


def joins(rows: Rows) -> bool:
    """Whether several sources meet anywhere in these rows."""
    match rows:
        case UnionAll(branches):
            return any(joins(branch) for branch in branches)
        case Select():
            inner = [source.input for source in rows.sources if not isinstance(source.input, int)]
            return len(rows.sources) > 1 or any(joins(each) for each in inner)


def _touched(before: tuple[Mode, ...], index: int, *, moves: bool) -> list[Term]:
    if not moves:
        return []
    return [Term((*before, Mode.AFTER), 1, index), Term((*before, Mode.BEFORE), -1, index)]


# -- rows -------------------------------------------------------------------------------------------------------------


def rows_sql(rows: Rows, mode: Mode, changed: AbstractSet[int], cuts: Cuts = NO_CUTS) -> str:
    """The rows in one of their states, with `_sw_id`; the change also with `_diff`, 1 or -1."""
    match rows:
        case UnionAll(branches, names):
            parts = []
            for index, branch in enumerate(branches):
                if mode == Mode.DELTA and changed.isdisjoint(inputs_of(branch)):
                    continue
                columns = [
                    f"{quote(theirs)} AS {quote(ours)}" for theirs, ours in zip(branch.names, names, strict=True)
                ]
                columns.append(f"xxhash64({ROW_ID}, {index}) AS {ROW_ID}")
                if mode == Mode.DELTA:
                    columns.append(DIFF)
                parts.append(f"SELECT {', '.join(columns)} FROM ({rows_sql(branch, mode, changed, cuts)})")
            return " UNION ALL ".join(parts)
        case Select():
            if mode == Mode.DELTA:
                texts = [_term_sql(rows, term, changed, cuts) for term in terms_of(rows, changed)]
            else:
                texts = [_term_sql(rows, Term((mode,) * len(rows.sources)), changed, cuts)]
            text = " UNION ALL ".join(texts)
            return _told_apart(rows, text, signed=mode == Mode.DELTA) if rows.generates else text


def _term_sql(select: Select, term: Term, changed: AbstractSet[int], cuts: Cuts) -> str:
    sources = select.sources
    read = [
        _source_sql(source, state, changed, cuts, cuts.get((select, term, index)))
        for index, (source, state) in enumerate(zip(sources, term.states, strict=True))
    ]
    signed = Mode.DELTA in term.states or term.touched_by is not None
    columns = [f"{item} AS {quote(name)}" for item, name in zip(select.items, select.names, strict=True)]
    columns.append(f"{_identity(sources)} AS {ROW_ID}")
    if signed:
        moving = [source for source, state in zip(sources, term.states, strict=True) if state == Mode.DELTA]
        columns.append(f"{f'{quote(moving[0].alias)}.{DIFF}' if moving else f'{term.sign}L'} AS {DIFF}")
    text = f"SELECT {', '.join(columns)}"
    start = term.states.index(Mode.DELTA) if Mode.DELTA in term.states else 0
    if start:  # a change is small: what is joined to it first stays small
        order = reading_order(select, start)
        read, sources = [read[index] for index in order], _joined_anew(select, order)
    text += f" FROM {read[0]}" if sources else ""
    for source, part in zip(sources[1:], read[1:], strict=True):
        join = Join.RIGHT if term.unmatched and source.join == Join.FULL else source.join
        if join == Join.FULL and signed:
            join = Join.LEFT  # the rows without a left side are terms of their own
        text += f" {join.value} {part} {source.condition}"
    text += f" {select.laterals}" if select.laterals else ""
    conditions = [f"({select.where})"] if select.where else []
    if term.touched_by is not None:
        conditions.append(_touches(select.sources, term.touched_by, changed))
    if term.unmatched:
        conditions.append(f"{quote(select.sources[0].alias)}.{ROW_ID} IS NULL")
    return text + (f" WHERE {' AND '.join(conditions)}" if conditions else "")


def _joined_anew(select: Select, order: list[int]) -> tuple[Source, ...]:
    """The sources in another order; the conditions of those that have moved stand behind the last of them."""
    free = select.free if order != sorted(order) else 0
    chosen = [select.sources[index] for index in order]
    conditions = [f"({source.condition.removeprefix('ON ')})" for source in select.sources[:free] if source.condition]
    for place in range(free):
        is_last = place == free - 1 and conditions
        join = Join.FIRST if place == 0 else Join.INNER if is_last else Join.CROSS
        chosen[place] = replace(chosen[place], join=join, condition=f"ON {' AND '.join(conditions)}" if is_last else "")
    return tuple(chosen)


def _touches(sources: tuple[Source, ...], index: int, changed: AbstractSet[int]) -> str:
    """Whether a row joins with anything that has come or gone in the source `index`."""
    condition = sources[max(1, index)].condition.removeprefix("ON ") or "true"
    return f"EXISTS (SELECT 1 FROM {_source_sql(sources[index], Mode.DELTA, changed, NO_CUTS, None)} WHERE {condition})"


def _source_sql(source: Source, mode: Mode, changed: AbstractSet[int], cuts: Cuts, cut: str | None) -> str:
    if isinstance(source.input, int):
        return f"{cut or view_name(source.input, mode)} AS {quote(source.alias)}"
    if cut and isinstance(source.input, Select):  # of its one source
        cuts = {(source.input, Term((mode,)), 0): cut}
    return f"({rows_sql(source.input, mode, changed, cuts)}) AS {quote(source.alias)}"


def _identity(sources: tuple[Source, ...]) -> str:
    kept = [f"{quote(source.alias)}.{ROW_ID}" for source in sources if source.is_kept]
    if len(kept) < 2:
        return kept[0] if kept else "0L"
    return f"xxhash64({', '.join(f'coalesce({each}, -1L)' for each in kept)})"


def _told_apart(select: Select, text: str, *, signed: bool) -> str:
    """Rows that came of one row, each with an identity: by their values, and equal ones by counting them."""
    names = ", ".join(quote(name) for name in select.names)
    sign = f", {DIFF}" if signed else ""
    value = f"to_json(struct({names}), map('ignoreNullFields', 'false'))"
    inner = f"SELECT *, xxhash64({value}) AS _sw_value FROM ({text})"
    number = f"row_number() OVER (PARTITION BY {ROW_ID}, _sw_value{sign} ORDER BY _sw_value)"
    return f"SELECT {names}, xxhash64({ROW_ID}, _sw_value, {number}) AS {ROW_ID}{sign} FROM ({inner})"


# -- outputs of a view ------------------------------------------------------------------------------------------------


def typed(columns: Sequence[Column], text: str, *hidden: str) -> str:
    """`text` with its columns in the types they are stored in."""
    items = [f"CAST({quote(column.name)} AS {column.type}) AS {quote(column.name)}" for column in columns]
    return f"SELECT {', '.join([*items, *hidden])} FROM ({text})"


def versioned(columns: Sequence[Column], text: str, *hidden: str) -> str:
    """`text` with `_sw_ver`, the fingerprint of what each row is."""
    names = [quote(column.name) for column in columns]
    version = fingerprint([(quote(column.name), column.type) for column in columns], ROW_ID)
    return f"SELECT {', '.join([*names, ROW_ID, f'{version} AS {ROW_VERSION}', *hidden])} FROM ({text})"


def consolidated(columns: Sequence[Column], text: str) -> str:
    """`text` with every version once: what came and went leaves nothing. A row can come or go only once."""
    values = [f"any_value({quote(column.name)}) AS {quote(column.name)}" for column in columns]
    total = f"sum({DIFF})"
    wrong = "CAST(raise_error('stepwell: a row has a multiplicity of more than one') AS BIGINT)"
    checked = f"IF(abs({total}) > 1, {wrong}, {total})"
    return (
        f"SELECT {', '.join([*values, ROW_ID, ROW_VERSION])}, {checked} AS {DIFF} FROM ({text})"
        f" GROUP BY {ROW_ID}, {ROW_VERSION} HAVING {total} <> 0"
    )


def delta_sql(columns: Sequence[Column], delta: str, *, fresh: bool) -> str:
    """Δ of a view that is just rows; `fresh` says that it consists of rows that never were there before."""
    text = versioned(columns, typed(columns, delta, ROW_ID, DIFF), DIFF)
    return text if fresh else consolidated(columns, text)


def difference(columns: Sequence[Column], new: str, old: str) -> str:
    """new − old, both with `_sw_id` and `_sw_ver`."""
    names = ", ".join([*(quote(column.name) for column in columns), ROW_ID, ROW_VERSION])
    both = f"SELECT {names}, 1L AS {DIFF} FROM ({new}) UNION ALL SELECT {names}, -1L AS {DIFF} FROM ({old})"
    return consolidated(columns, both)


def partitioned_sql(block: Partitioned, rows: str, *, moved: str | None) -> str:
    """Rows with window functions over them, with `_sw_id`; if keys have `moved`, those of their partitions."""
    if moved is not None:
        rows = f"SELECT r.* FROM ({rows}) AS r LEFT SEMI JOIN ({moved}) AS k ON {same_keys(block, 'r', 'k')}"
    items = [f"{item} AS {quote(name)}" for item, name in zip(block.items, block.names, strict=True)]
    qualify = f" QUALIFY {block.qualify}" if block.qualify else ""
    return f"SELECT {', '.join([*items, ROW_ID])} FROM ({rows}){qualify}"


def keys_of(group: Group | Partitioned) -> list[str]:
    return [f"_sw_g{index}" for index in range(group.keys)]


def same_keys(group: Group | Partitioned, left: str, right: str) -> str:
    """Whether two rows are of the same group."""
    return " AND ".join(f"{left}.{key} <=> {right}.{key}" for key in keys_of(group)) or "true"

"""Blocks: a view's query as data, in the terms in which it can be maintained.

A `Select` filters, projects, unnests and joins; a `UnionAll` puts such rows behind one another; a `Group` folds them by
a key; a `Partitioned` computes windows over them. What is none of these is a `Whole`: a text that can only be computed
anew. A block inside another one that is not just rows becomes a hidden view, and the outer one reads that; so blocks
compose as views do.

Every row of a block has an identity, `_sw_id`: that of the row it comes from, a fingerprint of several for a join, of
the key for a group.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Join(StrEnum):
    """How a source is joined to those before it."""

    FIRST = "FIRST"
    INNER = "INNER JOIN"
    CROSS = "CROSS JOIN"
    LEFT = "LEFT JOIN"
    RIGHT = "RIGHT JOIN"
    FULL = "FULL JOIN"
    SEMI = "LEFT SEMI JOIN"
    ANTI = "LEFT ANTI JOIN"


@dataclass(frozen=True, slots=True)
class Source:
    """A relation or rows in a FROM. A negative relation is a block of the same view that has no number yet."""

    input: int | Select | UnionAll
    alias: str
    join: Join = Join.FIRST
    condition: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether its columns can be seen behind the join."""
        return self.join not in (Join.SEMI, Join.ANTI)


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of one of the sources of a SELECT."""

    source: int
    column: str


@dataclass(frozen=True, slots=True)
class Tie:
    """Two columns that a condition says are equal: that of the join of source `within`, or WHERE if that is 0."""

    left: Origin
    right: Origin
    within: int = 0


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition that every row of a source fulfils that counts, in the words of its relation alone."""

    source: int
    condition: str


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT items FROM sources WHERE condition, row by row."""

    sources: tuple[Source, ...]
    items: tuple[str, ...]
    names: tuple[str, ...]
    where: str | None = None
    laterals: str = ""
    generates: bool = False
    """Whether a row can become several: then they are told apart by their values."""
    ties: tuple[Tie, ...] = ()
    origins: tuple[Origin | None, ...] = ()
    """Where each item comes from that is nothing but a column."""
    free: int = 0
    """So many sources, from the first on, may be joined in any order: the conditions can stand behind all of them."""
    filters: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of every branch; `names` are those of the first."""

    branches: tuple[Select | UnionAll, ...]
    names: tuple[str, ...]


Rows = Select | UnionAll


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over columns of the grouped rows. `direct` is its call as the user meant it.

    The types are Spark's, filled in once it has analyzed the query.
    """

    function: str
    direct: str
    arguments: tuple[str, ...] = ()
    argument_types: tuple[str, ...] = ()
    result_type: str = ""
    plain: bool = True
    """Whether it is the function and its arguments, and nothing else: no DISTINCT, no ORDER BY."""
    since: str | None = None
    """Of a first or last by time: the key that is the start of its window, if rows are numbered as they came."""
    bits: int = 0
    """How many bits there are for that number beside the time since then."""


@dataclass(frozen=True, slots=True)
class Group:
    """GROUP BY: `rows` has the keys as `_sw_g0`… and the arguments as `_sw_x0`…; without keys there is one group.

    `items` and `having` speak of the keys and of the results, `_sw_r0`….
    """

    rows: Rows
    keys: int
    key_types: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    items: tuple[str, ...]
    names: tuple[str, ...]
    having: str | None = None
    distinct: bool = False
    """Whether the text says DISTINCT or UNION where it could have said GROUP BY."""
    time_key: int | None = None
    """The key that is a bucket of event time, if one is."""


@dataclass(frozen=True, slots=True)
class Partitioned:
    """Window functions: `rows` has what all windows are partitioned by as `_sw_g0`… and columns as `_sw_x0`….

    `items` and `qualify` speak of the columns and have OVER in them.
    """

    rows: Rows
    keys: int
    items: tuple[str, ...]
    names: tuple[str, ...]
    qualify: str | None = None
    made_total: bool = False
    """Whether an order with ties was made total by the row's identity."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A text over placeholders that is computed anew, and why it cannot be done better."""

    text: str
    names: tuple[str, ...]
    reason: str


Block = Select | UnionAll | Group | Partitioned | Whole


@dataclass(frozen=True, slots=True)
class Plan:
    """A view's query: its last block, and the blocks that are kept as hidden views, each before those that read it."""

    root: Block
    hidden: tuple[Block, ...] = ()


def obstacle(block: Block) -> str | None:
    """Why a block can only be computed anew, if that is so."""
    match block:
        case Whole(_, _, reason):
            return reason
        case Partitioned(keys=0):
            return "a LIMIT, or an OVER without a PARTITION BY that all windows share, looks at all rows"
        case _:
            return None


def inputs_of(block: Block | Source) -> Iterator[int]:
    """The relations that a block reads, as often as it does."""
    match block:
        case Source(input=int(relation)):
            yield relation
        case Source(input=Select() | UnionAll() as rows):
            yield from inputs_of(rows)
        case Select(sources):
            for source in sources:
                yield from inputs_of(source)
        case UnionAll(branches):
            for branch in branches:
                yield from inputs_of(branch)
        case Group(rows) | Partitioned(rows):
            yield from inputs_of(rows)
        case Whole(text):
            yield from (int(found) for found in dict.fromkeys(re.findall(r"\b_sw_rel(\d+)\b", text)))


def renumbered(block: Any, numbers: dict[int, int]) -> Any:
    """A block with the numbers of its relations replaced."""
    if isinstance(block, Source) and isinstance(block.input, int):
        return dataclasses.replace(block, input=numbers.get(block.input, block.input))
    if isinstance(block, tuple):
        return tuple(renumbered(each, numbers) for each in block)
    if dataclasses.is_dataclass(block) and not isinstance(block, type):
        changed = {field.name: renumbered(getattr(block, field.name), numbers) for field in dataclasses.fields(block)}
        return dataclasses.replace(block, **changed)
    return block


_CLASSES: dict[str, type] = {
    each.__name__: each
    for each in (Origin, Tie, Filter, Source, Select, UnionAll, Aggregate, Group, Partitioned, Whole)
}


def encode(value: Any) -> Any:
    """A block as JSON."""
    if isinstance(value, tuple):
        return [encode(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"is": type(value).__name__, **fields}
    return value


def decode(value: Any) -> Any:
    """A block back from JSON."""
    if isinstance(value, list):
        return tuple(decode(each) for each in value)
    if isinstance(value, dict):
        fields = {name: decode(each) for name, each in value.items() if name != "is"}
        if "join" in fields:
            fields["join"] = Join(fields["join"])
        return _CLASSES[value["is"]](**fields)
    return value

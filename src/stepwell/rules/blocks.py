"""Blocks: a view's query in the parts in which it can be maintained.

A `RowBlock` filters, projects, unnests, joins and unites; a `GroupBlock` folds such rows by a key; a `WindowBlock`
computes windows over them. What is none of these is a `WholeBlock`: a text that can only be computed anew. A block
inside another one that is not just rows becomes a hidden view, and the outer one reads that; so blocks compose as views
do.

Every row of a block has an identity, `_sw_id`: see `rules.identity`; a group has that of its key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stepwell.algebra import expressions, nodes
from stepwell.algebra.aggregates import GroupResult
from stepwell.algebra.expressions import Attribute, Expression
from stepwell.algebra.nodes import JoinKind, Moment, Node, Scan, relations_of


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows of a tree of rows; `columns` are its outputs, and `names` what they are called."""

    tree: Node
    columns: tuple[Attribute, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupBlock:
    """GROUP BY: `rows` has the keys as `_sw_g0`… and the arguments as `_sw_x0`…; without keys there is one group.

    `items` and `having` speak of the keys and of the results, `_sw_r0`….
    """

    rows: RowBlock
    keys: int
    key_types: tuple[str, ...]
    results: tuple[GroupResult, ...]
    items: tuple[Expression, ...]
    names: tuple[str, ...]
    having: Expression | None = None
    distinct: bool = False
    """Whether the text says DISTINCT or UNION where it could have said GROUP BY."""
    time_key: int | None = None
    """The key that is a bucket of event time, if one is."""


@dataclass(frozen=True, slots=True)
class WindowBlock:
    """Window functions: `rows` has what all windows are partitioned by as `_sw_g0`…, and its columns as `_sw_x0`….

    `top` computes the windows over a leaf with the columns `_sw_x0`… of these rows; `columns` are its outputs.
    """

    rows: RowBlock
    keys: int
    top: Node
    columns: tuple[Attribute, ...]
    names: tuple[str, ...]
    made_total: bool = False
    """Whether an order with ties was made total by the row's identity."""


@dataclass(frozen=True, slots=True)
class WholeBlock:
    """A text over placeholders that is computed anew, and why it cannot be done better."""

    text: str
    names: tuple[str, ...]
    reason: str
    relations: tuple[int, ...] = ()


Block = RowBlock | GroupBlock | WindowBlock | WholeBlock

LEAF = 0
"""The relation of the leaf under the windows of a block: no relation has this number."""


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """A view's query: its last block, and the blocks that are kept as hidden views, each before those that read it."""

    root: Block
    hidden: tuple[Block, ...] = ()


def obstacle(block: Block) -> str | None:
    """Why a block can only be computed anew, if that is so."""
    match block:
        case WholeBlock():
            return block.reason
        case WindowBlock(keys=0):
            return "a LIMIT, or an OVER without a PARTITION BY that all windows share, looks at all rows"
        case _:
            return None


def rows_of(block: Block) -> RowBlock:
    """The rows that a block reads, or is."""
    match block:
        case RowBlock():
            return block
        case GroupBlock(rows) | WindowBlock(rows):
            return rows
        case WholeBlock():
            raise ValueError("the rows of a query that is computed as a whole cannot be told")


def inputs_of(block: Block) -> Iterator[int]:
    """The relations that a block reads, each once."""
    if isinstance(block, WholeBlock):
        yield from block.relations
    else:
        yield from relations_of(rows_of(block).tree)


def renumbered(block: Any, numbers: dict[int, int]) -> Any:
    """A block with the numbers of its relations replaced."""
    if isinstance(block, Scan):
        return dataclasses.replace(block, relation=numbers.get(block.relation, block.relation))
    if isinstance(block, tuple):
        return tuple(renumbered(each, numbers) for each in block)
    if isinstance(block, WholeBlock):
        return dataclasses.replace(block, relations=tuple(numbers.get(each, each) for each in block.relations))
    if dataclasses.is_dataclass(block) and not isinstance(block, type):
        changed = {field.name: renumbered(getattr(block, field.name), numbers) for field in dataclasses.fields(block)}
        return dataclasses.replace(block, **changed)
    return block


# -- as JSON ----------------------------------------------------------------------------------------------------------

VERSION = 2
"""The form in which blocks are stored, and the layout of the states that belong to them.

One more whenever either changes: a view whose plan is stored in another form is planned anew from its text, and
rebuilt.
"""

_CLASSES: dict[str, type] = {
    each.__name__: each
    for each in (
        RowBlock, GroupResult, GroupBlock, WindowBlock, WholeBlock,
        *(getattr(expressions, name) for name in (
            "Attribute", "Literal", "Call", "AggregateCall", "Order", "Frame", "WindowCall", "Named", "Variable")),
        *(getattr(nodes, name) for name in (
            "Item", "Scan", "Values", "Project", "Filter", "Join", "Aggregate", "Unnest", "Union", "Window")),
    )
}  # fmt: skip


def stored(block: Block) -> dict[str, Any]:
    """A block as the catalog keeps it."""
    return {"version": VERSION, "block": encode(block)}


def restored(plan: dict[str, Any]) -> Block | None:
    """The block that the catalog keeps, or None if it is kept in another form than ours."""
    if plan.get("version") != VERSION:
        return None
    block: Block = decode(plan["block"])
    return block


def encode(value: Any) -> Any:
    """A block as JSON."""
    if isinstance(value, tuple):
        return [encode(each) for each in value]
    if isinstance(value, JoinKind | Moment):
        return {"is": type(value).__name__, "value": value.value}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {}
        for field in dataclasses.fields(value):
            held = getattr(value, field.name)
            if field.default is dataclasses.MISSING or held != field.default:
                fields[field.name] = encode(held)
        return {"is": type(value).__name__, **fields}
    return value


def decode(value: Any) -> Any:
    """A block back from JSON."""
    if isinstance(value, list):
        return tuple(decode(each) for each in value)
    if isinstance(value, dict):
        if value["is"] == "JoinKind":
            return JoinKind(value["value"])
        if value["is"] == "Moment":
            return Moment(value["value"])
        return _CLASSES[value["is"]](**{name: decode(each) for name, each in value.items() if name != "is"})
    return value


def with_small_numbers(block: Block) -> Block:
    """The block with its columns numbered in the order in which they appear: equal blocks look the same."""
    numbers: dict[int, int] = {}

    def look(value: Any) -> Any:
        if isinstance(value, list):
            return [look(each) for each in value]
        if isinstance(value, dict):
            found = {name: look(each) for name, each in value.items()}
            if value.get("is") in ("Attribute", "Variable"):
                found["id"] = numbers.setdefault(value["id"], len(numbers) + 1)
            return found
        return value

    found: Block = decode(look(encode(block)))
    return found

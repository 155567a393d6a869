"""Rendering: the rows of a block as its query gives them, as SQL."""

from __future__ import annotations

from typing import assert_never

from stepwell.algebra.expressions import Expression
from stepwell.algebra.nodes import Fresh, Moment
from stepwell.algebra.printing import print_expression, print_outputs
from stepwell.model.files import ROW_ID
from stepwell.model.types import quote
from stepwell.rules.blocks import Block, GroupBlock, RowBlock, WholeBlock, WindowBlock
from stepwell.rules.identity import at
from stepwell.rules.partitions import windows_over
from stepwell.rules.programs import key_names


def block_sql(block: Block) -> str:
    """The rows of a block, over its inputs after an epoch."""
    match block:
        case WholeBlock(text):
            return text
        case RowBlock():
            return _rows(block)
        case WindowBlock():
            return _windows(block)
        case GroupBlock():
            keys = key_names(block)
            calls = [f"{print_expression(each.call)} AS _sw_r{index}" for index, each in enumerate(block.results)]
            grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
            pairs = zip(block.items, block.names, strict=True)
            shown = ", ".join(f"{print_expression(item)} AS {quote(name)}" for item, name in pairs)
            groups = f"SELECT {', '.join([*keys, *calls]) or '1'} FROM ({_rows(block.rows)}){grouped}"
            return f"SELECT {shown} FROM ({groups})"
        case _:
            assert_never(block)


def _rows(rows: RowBlock) -> str:
    found = at(rows.tree, Moment.AFTER, Fresh(rows.tree))
    outputs: list[tuple[Expression, str]] = [*zip(rows.columns, rows.names, strict=True), (found.id, ROW_ID)]
    return print_outputs(found.tree, outputs)


def _windows(block: WindowBlock) -> str:
    fresh = Fresh(block.rows.tree, block.top)
    found = windows_over(block, at(block.rows.tree, Moment.AFTER, fresh), fresh)
    return print_outputs(found.tree, list(zip(block.columns, block.names, strict=True)))

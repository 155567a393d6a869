"""Rendering: blocks to the SQL that maintains them.

The rules give the trees; here they are printed, with the names and types in which a view's rows are stored, with the
identity `_sw_id` and the version `_sw_ver` of each row, and netted where that is not so already.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from stepwell.algebra.expressions import Expression
from stepwell.algebra.nodes import Fresh, Moment, Node, Scan, rebuilt
from stepwell.algebra.printing import print_outputs
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.relations import Column
from stepwell.model.types import parse_type, quote
from stepwell.plan.blocks import LEAF, GroupBlock, RowBlock, WindowBlock
from stepwell.plan.fingerprints import fingerprint
from stepwell.rules.deltas import Cutting, Deltas, NoCutting
from stepwell.rules.identity import Identified, at

NO_CUTTING = NoCutting()


def rows_sql(
    rows: RowBlock, moment: Moment, changed: AbstractSet[int] = frozenset(), cutting: Cutting = NO_CUTTING
) -> str:
    """The rows before or after an epoch, with `_sw_id`; or what `changed` makes of them, also with `_diff`, 1 or -1.

    A row of the change may be there with both signs: see `netted`.
    """
    fresh = Fresh(rows.tree)
    if moment == Moment.DELTA:
        found = Deltas(changed, fresh, cutting).of(rows.tree)
        assert found is not None, "nothing that these rows read has changed"
    else:
        found = at(rows.tree, moment, fresh)
    return printed_rows(rows, found)


def printed_rows(rows: RowBlock, found: Identified) -> str:
    """A tree of these rows, under their names, with `_sw_id` and, if it is signed, `_diff`."""
    outputs: list[tuple[Expression, str]] = [*zip(rows.columns, rows.names, strict=True), (found.id, ROW_ID)]
    if found.sign is not None:
        outputs.append((found.sign, DIFF))
    return print_outputs(found.tree, outputs)


def netted(rows: RowBlock, text: str) -> str:
    """The change of some rows with each of them once: what came and went leaves nothing."""
    values = [(quote(name), parse_type(column.type)) for name, column in zip(rows.names, rows.columns, strict=True)]
    names = ", ".join(f"any_value({quote(name)}) AS {quote(name)}" for name in rows.names)
    shown = f"{names}, " if names else ""
    total = f"sum({DIFF})"
    return (
        f"SELECT {shown}{ROW_ID}, {_checked(total)} AS {DIFF} FROM (SELECT *, {fingerprint(values)} AS _sw_value"
        f" FROM ({text})) GROUP BY {ROW_ID}, _sw_value HAVING {total} <> 0"
    )


def _checked(total: str) -> str:
    wrong = "CAST(raise_error('stepwell: a row has a multiplicity of more than one') AS BIGINT)"
    return f"IF(abs({total}) > 1, {wrong}, {total})"


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
    return (
        f"SELECT {', '.join([*values, ROW_ID, ROW_VERSION])}, {_checked(total)} AS {DIFF} FROM ({text})"
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


def windows_sql(block: WindowBlock, rows: str, *, moved: str | None) -> str:
    """Rows with window functions over them, with `_sw_id`; if keys have `moved`, those of their partitions."""
    if moved is not None:
        rows = f"SELECT r.* FROM ({rows}) AS r LEFT SEMI JOIN ({moved}) AS k ON {same_keys(block, 'r', 'k')}"
    fresh = Fresh(block.top)
    found = at(block.top, Moment.AFTER, fresh)
    tree = rebuilt(found.tree, lambda node: _over(node, rows))
    outputs: list[tuple[Expression, str]] = [*zip(block.columns, block.names, strict=True), (found.id, ROW_ID)]
    return print_outputs(tree, outputs)


def _over(node: Node, rows: str) -> Node:
    return replace(node, cut=f"({rows})") if isinstance(node, Scan) and node.relation == LEAF else node


def keys_of(block: GroupBlock | WindowBlock) -> list[str]:
    return [f"_sw_g{index}" for index in range(block.keys)]


def same_keys(block: GroupBlock | WindowBlock, left: str, right: str) -> str:
    """Whether two rows are of the same group."""
    return " AND ".join(f"{left}.{key} <=> {right}.{key}" for key in keys_of(block)) or "true"

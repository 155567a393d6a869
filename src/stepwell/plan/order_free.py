"""Whether a query gives the same rows in whatever order Spark reads what it is asked over.

If so, its text can be run as it stands, and its answer compared with what is kept of it; else an order that the text
leaves open has to be made total first.
"""

from __future__ import annotations

from stepwell.model.types import DOUBLE, FLOAT, parse_type
from stepwell.rules.blocks import Block, GroupBlock, WindowBlock

_EXACT = frozenset({
    "Count", "CountIf", "count_if", "Min", "Max", "BoolAnd", "BoolOr", "bool_and", "bool_or", "every", "some", "any",
})  # fmt: skip
_BY_STATE = _EXACT | {"Sum", "Average", "First", "Last", "AnyValue", "any_value", "MinBy", "MaxBy", "CollectList"}


def is_order_free(block: Block) -> bool:
    """Whether Spark gives the same rows for the text of a block, however it reads."""
    if isinstance(block, WindowBlock):
        return not block.made_total
    if not isinstance(block, GroupBlock):
        return True
    for result in block.results:
        floats = any(parse_type(each) in (FLOAT, DOUBLE) for each in result.argument_types)
        if result.function not in _EXACT and (floats or result.function not in ("Sum", "Average")):
            return False
    return True


def has_exact_results(group: GroupBlock) -> bool:
    """Whether no aggregate of a group differs in its last digits by how it is computed, as ours are."""
    return all(each.function in _BY_STATE for each in group.results)

"""Wording: an expression of ours in the user's own words, for a message about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stepwell.algebra.aggregates import GroupResult
from stepwell.algebra.expressions import Attribute, Call, Expression, Named, transform, walk
from stepwell.algebra.nodes import Aggregate, Node, Project, Scan, nodes_of
from stepwell.algebra.printing import UnprintableError, print_expression
from stepwell.algebra.states import is_state
from stepwell.rules.blocks import Block, GroupBlock, WholeBlock, rows_of


def users_words(block: Block, text: str, tree: Node | None = None) -> str:
    """`text`, a piece of SQL that we made, with our names replaced by what they stand for in the query.

    `tree` is what the SQL was made from, if that is more than the rows of the block.
    """
    cast = re.fullmatch(r"CAST(\(.*) AS [\w<>:, ]+(?:\(\d+,\d+\))?\)", text)
    text = (cast[1][1:] if cast and _is_wrapped(text.removeprefix("CAST")) else text).replace("`", "")
    if isinstance(block, WholeBlock):
        return text
    words = _words(block)
    if tree is not None:
        words = {**_columns(tree, block.results if isinstance(block, GroupBlock) else ()), **words}
    for _ in range(8):
        said = re.sub(r"\b(?:c\d+|_sw_[rogx]\d+)\b|^\w+$", lambda found: words.get(found[0], found[0]), text)
        if said == text:
            break
        text = said
    text = re.sub(r"CAST\((-?\w+?)L? AS \w+(?:\(\d+,\d+\))?\)", r"\1", text.replace("`", ""))
    return text[1:-1] if _is_wrapped(text) else text


def _is_wrapped(text: str) -> bool:
    """Whether the first parenthesis of a text is closed by its last."""
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return index == len(text) - 1 and text.startswith("(")
    return False


def _words(block: Block) -> dict[str, str]:
    """What our names stand for: columns of relations by their names, others by what they are made of."""
    rows = rows_of(block)
    found = _columns(rows.tree)
    found.update({name: found.get(f"c{each.id}", name) for name, each in zip(rows.names, rows.columns, strict=True)})
    if isinstance(block, GroupBlock):
        for index, result in enumerate(block.results):
            found[f"_sw_r{index}"] = found[f"_sw_o{index}"] = print_expression(result.call)
        found.update({name: print_expression(item) for name, item in zip(block.names, block.items, strict=True)})
    return found


def _columns(tree: Node, results: Sequence[GroupResult] = ()) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in nodes_of(tree):
        if isinstance(node, Project | Aggregate):
            for item in node.items:
                said = _said(item.expression, results)
                if item.expression != item.column and said is not None:
                    found.setdefault(f"c{item.column.id}", said)
        elif isinstance(node, Scan):
            found.update({f"c{each.id}": name for each, name in zip(node.columns, node.names, strict=True)})
    return found


def _said(expression: Expression, results: Sequence[GroupResult]) -> str | None:
    """What a column is made of; None if that is our own affair."""
    match expression:
        case Call(function="FinishedState", arguments=(state,)):
            return print_expression(results[int(state.type.removeprefix("STATE "))].call)
        case _ if any(is_state(each) for each in walk(expression)):
            return None
        case _:
            try:
                return print_expression(_bare(expression))
            except UnprintableError:
                return None


def _bare(expression: Expression) -> Expression:
    return transform(expression, lambda each: Named(f"c{each.id}", each.type) if isinstance(each, Attribute) else None)

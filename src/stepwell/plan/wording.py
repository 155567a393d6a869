"""Wording: an expression of ours in the user's own words, for a message about it."""

from __future__ import annotations

import re

from stepwell.algebra.expressions import Attribute, Expression, Named, transform
from stepwell.algebra.nodes import Node, Project, Scan, nodes_of
from stepwell.algebra.printing import print_expression
from stepwell.plan.blocks import Block, GroupBlock, WholeBlock, rows_of


def users_words(block: Block, text: str) -> str:
    """`text`, a piece of SQL that we made, with our names replaced by what they stand for in the query."""
    cast = re.fullmatch(r"CAST\((.*) AS [\w<>:, ]+(?:\(\d+,\d+\))?\)", text)
    text = (cast[1] if cast else text).replace("`", "")
    if isinstance(block, WholeBlock):
        return text
    words = _words(block)
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


def _columns(tree: Node) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in nodes_of(tree):
        if isinstance(node, Project):
            for item in node.items:
                if item.expression != item.column:
                    found.setdefault(f"c{item.column.id}", print_expression(_bare(item.expression)))
        elif isinstance(node, Scan):
            found.update({f"c{each.id}": name for each, name in zip(node.columns, node.names, strict=True)})
    return found


def _bare(expression: Expression) -> Expression:
    return transform(expression, lambda each: Named(f"c{each.id}", each.type) if isinstance(each, Attribute) else None)

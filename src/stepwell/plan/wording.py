"""Wording: an expression of ours in the user's own words, for a message about it."""

from __future__ import annotations

import re

from stepwell.plan.blocks import Block, Group, Partitioned, Select, UnionAll, Whole


def users_words(block: Block, text: str) -> str:
    """`text` with the names of outputs, results, keys and arguments replaced by what they stand for in the query."""
    cast = re.fullmatch(r"CAST\((.*) AS [\w<>:, ]+(?:\(\d+,\d+\))?\)", text)
    text = (cast[1] if cast else text).replace("`", "")
    if isinstance(block, UnionAll | Whole):
        return text
    text = dict(zip(block.names, block.items, strict=True)).get(text, text)
    if isinstance(block, Group):
        text = re.sub(r"\b_sw_[ro](\d+)\b", lambda found: block.aggregates[int(found[1])].direct, text)
    if isinstance(block, Group | Partitioned) and isinstance(block.rows, Select):
        items = dict(zip(block.rows.names, block.rows.items, strict=True))
        text = re.sub(r"\b_sw_[gx]\d+\b", lambda found: items.get(found[0], found[0]), text)
    return text.replace("`", "")

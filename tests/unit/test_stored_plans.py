"""Plans as the catalog keeps them: in a form that has a number."""

from __future__ import annotations

import dataclasses
import hashlib

from stepwell.algebra.expressions import Attribute
from stepwell.algebra.nodes import Scan
from stepwell.rules import blocks
from stepwell.rules.blocks import RowBlock, restored, stored

FORM = (2, "770c0389af2d")
"""The version, and a hash of the classes and fields that plans are made of."""


def test_a_block_is_restored_as_it_was_stored() -> None:
    column = Attribute(1, "INT")
    block = RowBlock(Scan(1, (column,), ("a",)), (column,), ("a",))
    assert restored(stored(block)) == block


def test_a_block_of_another_version_is_not_read() -> None:
    assert restored({"is": "RowBlock"}) is None
    assert restored({"version": blocks.VERSION - 1, "block": {"is": "Unheard"}}) is None


def test_another_form_is_another_version() -> None:
    """If this fails, blocks or trees have other fields than before: raise `blocks.VERSION`, and write both down here."""
    fields = {name: [each.name for each in dataclasses.fields(kind)] for name, kind in blocks._CLASSES.items()}
    assert (blocks.VERSION, hashlib.sha256(repr(sorted(fields.items())).encode()).hexdigest()[:12]) == FORM

"""Emission: which part of what is known of a view it shows, as SQL over the two.

`live` is all that is known, kept by the view's own rules. With EMIT AFTER WATERMARK a view shows the windows that have
closed: Δ = σ(t < old)Δlive + σ(old ≤ t < new)live. With EMIT PERIODICALLY it shows, when its time has come, all that
has changed since it last did; in between, the windows that close.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.algebra.nodes import Moment
from stepwell.algebra.printing import scan_name
from stepwell.model.files import DIFF, ROW_ID
from stepwell.model.relations import Column
from stepwell.model.types import quote
from stepwell.plan.render import consolidated, difference, typed, versioned


def shown(columns: Sequence[Column], live: int, condition: str = "true") -> str:
    """The rows of `live` that meet a condition, with their identities and versions."""
    text = f"SELECT * FROM {scan_name(live, Moment.AFTER)} WHERE {condition}"
    return versioned(columns, typed(columns, text, ROW_ID))


def closed_change(columns: Sequence[Column], live: int, corrected: str | None, closing: str | None) -> str:
    """What a view shows anew: changes of windows that it shows already, and windows that close."""
    names = ", ".join([*(quote(column.name) for column in columns), ROW_ID])
    parts = []
    if corrected is not None:
        parts.append(f"SELECT {names}, {DIFF} FROM {scan_name(live, Moment.DELTA)} WHERE {corrected}")
    if closing is not None:
        parts.append(f"SELECT {names}, 1L AS {DIFF} FROM {scan_name(live, Moment.AFTER)} WHERE {closing}")
    text = " UNION ALL ".join(parts)
    return consolidated(columns, versioned(columns, typed(columns, text, ROW_ID, DIFF), DIFF))


def closing_change(columns: Sequence[Column], live: int, own: str, closing: str) -> str:
    """What is known of the windows that close, less what is shown of them."""
    return difference(columns, shown(columns, live, closing), f"SELECT * FROM {own} WHERE {closing}")


def whole_change(columns: Sequence[Column], live: int, own: str) -> str:
    """What is known of all that has changed, less what is shown of it."""
    moved = f"SELECT DISTINCT {ROW_ID} FROM {scan_name(live, Moment.DELTA)}"
    new = f"SELECT r.* FROM ({shown(columns, live)}) AS r LEFT SEMI JOIN ({moved}) AS k ON r.{ROW_ID} = k.{ROW_ID}"
    old = f"SELECT o.* FROM {own} AS o LEFT SEMI JOIN ({moved}) AS k ON o.{ROW_ID} = k.{ROW_ID}"
    return difference(columns, new, old)

"""Values as scenario files write them, which is the way PostgreSQL prints them."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any


def to_text(value: Any) -> str:
    """NULL, t and f, floats without a useless .0, instants without a zone; an empty string is (empty)."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "t" if value else "f"
        case float():
            return _float(value)
        case decimal.Decimal():
            return format(value, "f")
        case datetime.datetime():
            naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
            return naive.isoformat(sep=" ")
        case bytes() | bytearray():
            return "\\x" + bytes(value).hex()
        case "":
            return "(empty)"
        case _ if hasattr(value, "asDict"):
            return "(" + ",".join(to_text(each) for each in value) + ")"
        case dict():
            return "{" + ",".join(sorted(f"{to_text(key)}:{to_text(each)}" for key, each in value.items())) + "}"
        case list() | tuple():
            return "{" + ",".join(to_text(each) for each in value) + "}"
    return str(value)


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 and str(value) != "-0.0" else repr(value)

"""Plans of texts: what analysis makes of a query over relations that exist only by their columns."""

from __future__ import annotations

from collections.abc import Mapping

import stepwell
from stepwell.engine.define.analysis import plan_text
from stepwell.rules.blocks import ViewPlan
from stepwell.sql import Composition, window_calls
from stepwell.sql.statements import Slice


def plan_of(
    db: stepwell.Database, query: str, columns: Mapping[int, Mapping[str, str]], times: Mapping[int, str]
) -> ViewPlan:
    """The plan of a query that names its relations `_sw_rel1`, `_sw_rel2`…."""
    text = Slice(query, 0, len(query))
    bound = Composition().add_slice(text, window_calls(text)).text
    return plan_text(db._runtime, bound, columns, times)

"""Other limits for a database that is open: a test goes on with the same rows as if they were many, or few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import stepwell
from stepwell.engine.session import IN_PLAN
from stepwell.model.limits import Limits


def with_limits(db: stepwell.Database, limits: Limits) -> None:
    """Let a database go by these limits from its next statement on; what it waits for, and its threads, stay."""
    runtime = db._runtime
    object.__setattr__(runtime, "limits", limits)
    runtime.spark._limits = limits
    for session in runtime.spark._maintenance:
        session.conf.set(IN_PLAN, str(limits.in_plan_bytes))


def limit(db: stepwell.Database, **changes: Any) -> None:
    """The same for some of them, by name."""
    with_limits(db, replace(db._runtime.limits, **changes))

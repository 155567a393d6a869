"""Fail points: named places at which a process can be made to die, so that recovery is tested at every one.

`STEPWELL_FAILPOINT=acknowledge.before` kills the process with SIGKILL where the name is reached, `=…:3` at the third
time. Without the variable a fail point is one dictionary look-up.
"""

from __future__ import annotations

import os
import signal

FAILPOINTS = (
    "create.withheld",
    "create.registered",
    "build.pinned",
    "build.written",
    "build.inside",
    "build.slice",
    "build.pass",
    "build.join.inside",
    "build.joining",
    "reserve.after",
    "write.before",
    "write.after",
    "acknowledge.before",
    "acknowledge.inside",
    "acknowledge.after",
    "barrier.aligned",
    "maintain.view",
    "barrier.commit.before",
    "barrier.commit.inside",
    "barrier.committed",
    "publish.copied",
    "publish.before",
    "publish.inside",
    "publish.after",
    "barrier.readable.inside",
    "barrier.readable",
    "merge.written",
    "merge.committed",
    "fold.written",
    "fold.committed",
    "refresh.threshold",
    "refresh.moved",
    "refresh.written",
    "refresh.enter.inside",
    "refresh.batch",
    "checkpoint.pinned",
    "checkpoint.copied",
    "checkpoint.catalog",
    "checkpoint.published",
    "restore.marked",
    "restore.copied",
    "restore.inside",
    "restore.committed",
    "restore.unmarked",
    "repair.checked",
    "repair.marked",
    "vacuum.forgotten",
    "vacuum.deleted",
)

_reached: dict[str, int] = {}


def failpoint(name: str) -> None:
    """Die here if the environment says so."""
    wanted = os.environ.get("STEPWELL_FAILPOINT")
    if not wanted:
        return
    target, _, count = wanted.partition(":")
    if target == name:
        _reached[name] = _reached.get(name, 0) + 1
        if _reached[name] >= int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)

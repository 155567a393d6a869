"""VERIFY as a statement: the verdict on a view as rows, and its repair in the next barrier."""

from __future__ import annotations

from collections.abc import Callable

from stepwell.catalog import control, writes
from stepwell.engine.define.creation import view_called
from stepwell.engine.inspect.inspection import differences
from stepwell.engine.inspect.verify import mark_for_repair, verify
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.jobs import Job, RefreshRequest
from stepwell.model.rows import Rows
from stepwell.sql.statements import Verify


def answer_verify(
    runtime: Runtime, body: Verify, wait: Callable[[Epoch], None], run: Callable[[RefreshRequest], Job]
) -> Rows:
    """Compare a view with its query, and mend it if that is asked for.

    `wait` returns once an epoch can be read, `run` once a refresh is done.
    """
    with runtime.catalog.read() as tx:
        view = view_called(tx, body.name)
    verdict = verify(runtime, view)
    if body.repair and not verdict.is_ok and view.deferral is not None:
        run(RefreshRequest((view.id,), force=True))
    elif body.repair and not verdict.is_ok:
        mark_for_repair(runtime, view)
        with runtime.catalog.write() as tx:
            epoch = control.lock(tx).open_epoch
            writes.request_barrier(tx, epoch, runtime.clock.now())
        wait(epoch)
    columns = ["view", "epoch", "ok", "rows", "missing", "unexpected", "states"]
    row = (view.name, verdict.epoch, verdict.is_ok, verdict.rows, verdict.missing, verdict.unexpected, verdict.states)
    return Rows(columns, [row], notes=differences(view, verdict))

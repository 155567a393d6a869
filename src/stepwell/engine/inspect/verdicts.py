"""VERIFY as a statement: the verdict on a view as rows, and its repair in the next barrier."""

from __future__ import annotations

from collections.abc import Callable

from stepwell.engine.define.creation import view_called
from stepwell.engine.inspect.inspection import differences
from stepwell.engine.inspect.repair import own_damage, rebuild, require_sound_parents, rewrite
from stepwell.engine.inspect.verify import verify
from stepwell.engine.read.snapshots import readable_epoch
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.jobs import Job, RefreshRequest
from stepwell.model.relations import Relation
from stepwell.model.rows import Rows
from stepwell.sql.statements import Verify

_COLUMNS = ["view", "epoch", "ok", "rows", "missing", "unexpected", "states"]


def answer_verify(
    runtime: Runtime, body: Verify, wait: Callable[[Epoch], None], run: Callable[[RefreshRequest], Job]
) -> Rows:
    """Compare a view with its query, and mend it if that is asked for.

    `wait` returns once an epoch can be read, `run` once a refresh is done.
    """
    with runtime.catalog.read() as tx:
        view = view_called(tx, body.name)
    if body.repair:
        require_sound_parents(runtime, view)
        damage = own_damage(runtime, view)
        if damage is not None:
            epoch = readable_epoch(runtime)
            _mend(view, rebuild(runtime, view), wait, run)
            unknown = (view.name, epoch, False, None, None, None, None)
            return Rows(_COLUMNS, [unknown], notes=[f"{damage.message}: it is built anew"])
    verdict = verify(runtime, view)
    if body.repair and not verdict.is_ok:
        _mend(view, None if view.deferral is not None else rewrite(runtime, view), wait, run)
    row = (view.name, verdict.epoch, verdict.is_ok, verdict.rows, verdict.missing, verdict.unexpected, verdict.states)
    return Rows(_COLUMNS, [row], notes=differences(view, verdict))


def _mend(
    view: Relation, epoch: Epoch | None, wait: Callable[[Epoch], None], run: Callable[[RefreshRequest], Job]
) -> None:
    """Wait for the barrier that writes a view anew; a deferred view is then refreshed, whatever its log says."""
    if epoch is not None:
        wait(epoch)
    if view.deferral is not None:
        run(RefreshRequest((view.id,), force=True))

"""Staleness: which buckets of a continuous aggregate have to be computed when it is read, since when, and of what."""

from __future__ import annotations

from stepwell.catalog import Transaction, control, deferrals
from stepwell.engine.define.creation import view_called
from stepwell.engine.definitions import Definitions, load_in
from stepwell.engine.read.deferred import buckets_of
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError
from stepwell.model.intervals import Interval
from stepwell.model.invalidations import Invalidation
from stepwell.model.relations import Relation
from stepwell.model.rows import Rows
from stepwell.model.watermarks import FOREVER, NEVER, written
from stepwell.sql.statements import Name


def explain_staleness(runtime: Runtime, name: Name) -> Rows:
    """The ranges of a deferred view that a read computes, each with its reason."""
    with runtime.catalog.read() as tx:
        view = view_called(tx, name)
        require_deferred(view, name)
        found = _reasons(tx, load_in(runtime, tx), view, control.look(tx).readable_epoch)
    assert view.deferral is not None
    buckets, integer = buckets_of(view.deferral), view.deferral.integer
    rows = [
        (
            written(each.range.start, integer=integer),
            written(each.range.end, integer=integer),
            why,
            each.epoch or None,
            None if each.range.start == NEVER or each.range.end == FOREVER
            else buckets.count((each.range,), runtime.limits.counted_buckets),
        )
        for each, why in sorted(dict.fromkeys(found), key=lambda pair: pair[0])
    ]  # fmt: skip
    return Rows(["start", "end", "why", "epoch", "buckets"], rows)


def require_deferred(view: Relation, name: Name) -> None:
    if view.deferral is None:
        raise StepwellError(
            f'{view.kind} "{view.name}" is always fresh: every epoch maintains it',
            place=name.slice.place,
            hint="WITH (refresh = 'deferred') makes a view that is refreshed.",
            sqlstate="55000",
        )


def _reasons(tx: Transaction, known: Definitions, view: Relation, at: Epoch) -> list[tuple[Invalidation, str]]:
    deferral = view.deferral
    assert deferral is not None
    buckets = buckets_of(deferral)
    found = [
        (Invalidation(label, each.epoch), "changed since it was stored" if each.epoch else "never computed")
        for each in deferrals.view_log(tx, view.id, at)
        for label in buckets.stale((each.range,))
    ]
    for id_, column in [(deferral.source, deferral.column), *((id_, "") for id_ in deferral.dimensions)]:
        for entry in deferrals.source_log(tx, id_, column, at):
            labels = buckets.around((entry.range,))
            found += [(Invalidation(each, entry.epoch), f'"{known.name(id_)}" has changed') for each in labels]
    source = known.by_id[deferral.source]
    if source.deferral is not None:
        for each, _ in _reasons(tx, known, source, at):
            labels = buckets.around((each.range,))
            found += [(Invalidation(label, each.epoch), f'"{source.name}" is not fresh there') for label in labels]
    done = deferrals.completed(tx, view.id, at)
    if done != NEVER:
        found.append((Invalidation(Interval(done, FOREVER), Epoch(0)), "beyond what is completed"))
    return found

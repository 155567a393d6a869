"""REPAIR: a view is written anew from what it reads, and whatever reads it finds out what that changes.

What it reads is the truth only if it is as it was written: every byte of it is read before anything is changed.
"""

from __future__ import annotations

from stepwell.catalog import Transaction, control, deferrals, files, lives, writes
from stepwell.engine.damages import name_relation
from stepwell.engine.definitions import Definitions, load, load_in
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import DataFileError
from stepwell.model.failpoints import failpoint
from stepwell.model.files import DataFile
from stepwell.model.intervals import ALWAYS
from stepwell.model.invalidations import Invalidation
from stepwell.model.lifecycle import Life, Owed, owing, rebuilt, replaced, waits_for_parent
from stepwell.model.relations import Relation
from stepwell.model.views import RelationId
from stepwell.storage import all_damages


def require_sound_parents(runtime: Runtime, view: Relation) -> None:
    """Fail if a file that a view is computed from is not as it was written."""
    damage = _damage(runtime, _parents(load(runtime), view))
    if damage is not None:
        raise name_relation(runtime, damage)
    failpoint("repair.checked")


def own_damage(runtime: Runtime, view: Relation) -> DataFileError | None:
    """What is wrong with the files of a view and of its hidden parts, if anything is."""
    parts = load(runtime).parts_of(view)
    damage = _damage(runtime, {view.id, *(each.id for each in parts)})
    return None if damage is None else name_relation(runtime, damage)


def rewrite(runtime: Runtime, view: Relation) -> Epoch:
    """Let the next barrier write a view anew whose rows are wrong; the epoch in which it is right."""
    with runtime.catalog.write() as tx:
        known, all_lives = load_in(runtime, tx), lives.get_all(tx)
        own = [view.id, *view.view.blocks]
        for id_ in [*own, *known.order.downstream(own)]:
            if id_ in all_lives:  # one that is stopped cannot go by the changes either
                lives.put(tx, id_, owing(all_lives[id_], Owed.REWRITE if id_ in own else Owed.RECOMPUTE))
        epoch = _ask(runtime, tx)
    failpoint("repair.marked")
    return epoch


def rebuild(runtime: Runtime, view: Relation) -> Epoch:
    """The same for a view whose rows cannot be read: nothing of what is stored is looked at."""
    with runtime.catalog.write() as tx:
        control.lock(tx)
        known, all_lives = load_in(runtime, tx), lives.get_all(tx)
        own = [view.id, *view.view.blocks]
        for id_ in own:
            if id_ in all_lives and view.deferral is None:
                lives.put(tx, id_, rebuilt(all_lives[id_]))
        if view.deferral is not None:
            _empty(runtime, tx, known, view)
        for id_ in known.order.downstream(own):
            if id_ in all_lives:
                lives.put(tx, id_, _recomputed(all_lives[id_]))
        epoch = _ask(runtime, tx)
    failpoint("repair.marked")
    return epoch


def _recomputed(life: Life) -> Life:
    """A view that reads one which is rebuilt; it has waited for it perhaps."""
    return replaced(life) if waits_for_parent(life) else owing(life, Owed.RECOMPUTE)


def _empty(runtime: Runtime, tx: Transaction, known: Definitions, view: Relation) -> None:
    """Take all that is stored of a deferred view away, and call all of it stale, also for the views above it."""
    epoch = control.lock(tx).open_epoch
    whole = (Invalidation(ALWAYS, epoch),)
    for each in (view, *known.parts_of(view)):
        files.close(tx, each.id, files.latest(tx, each.id), [], epoch, runtime.clock.now())
    deferrals.replace_log(tx, view.id, whole)
    deferrals.log_change(tx, view.id, {}, epoch, runtime.limits.log_entries)


def _ask(runtime: Runtime, tx: Transaction) -> Epoch:
    epoch = control.lock(tx).open_epoch
    writes.request_barrier(tx, epoch, runtime.clock.now())
    return epoch


def _parents(known: Definitions, view: Relation) -> set[RelationId]:
    """The relations whose rows a view is computed from; of a deferred one also those that fill what is stale of it."""
    found: set[RelationId] = set()
    for each in view.view.inputs:
        parent = known.by_id[each.relation]
        if not parent.is_hidden:
            found.add(parent.id)
        if parent.is_hidden or parent.deferral is not None:
            found |= _parents(known, parent)
    return found


def _damage(runtime: Runtime, ids: set[RelationId]) -> DataFileError | None:
    with runtime.catalog.read() as tx:
        readable = control.look(tx).readable_epoch
        needed: dict[int, DataFile] = {}
        for id_ in ids:
            for file in (*files.content(tx, id_, readable), *files.latest(tx, id_)):
                needed[file.id] = file
    return next(iter(all_damages(runtime.warehouse, needed.values(), deep=True)), None)

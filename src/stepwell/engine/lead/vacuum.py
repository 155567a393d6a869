"""Vacuum: files that nobody can need any more leave the catalog, then the disk; so do those nobody ever knew."""

from __future__ import annotations

from stepwell.catalog import barriers, control, deferrals, files, lives, pins, relations, views, watermarks, writes
from stepwell.engine.runtime import Runtime
from stepwell.model.failpoints import failpoint
from stepwell.model.files import Store
from stepwell.plan import oldest_kept, removable


def vacuum(runtime: Runtime, retention: int) -> int:
    """Remove what no epoch within `retention`, no pin and no reader of the last hour can need; how many files."""
    now, lazy_readers = runtime.clock.now(), runtime.limits.lazy_readers_microseconds
    with runtime.catalog.write() as tx:
        readable = control.lock(tx).readable_epoch
        pinned = pins.pinned(tx)
        oldest = oldest_kept(barriers.readable(tx), pinned, now, retention)
        gone = []
        if oldest is not None:
            barriers.forget_epochs(tx, oldest)
            views.forget_refreshes(tx, oldest)
            for versions in (relations, lives, watermarks, deferrals):
                versions.forget_before(tx, oldest)
            ended = files.with_endings(tx)
            gone = removable(
                [(file, at) for file, at, other in ended if not other], oldest, now, lazy_readers=lazy_readers
            )
            # what was merged since somebody has looked at what a pinned epoch is in, he may be copying still
            before = min([now - lazy_readers + 1, *pins.moments(tx)])
            gone += [file for file, at, other in ended if other and at is not None and at < before]
        published = {file.id for id_ in relations.known_ids(tx) for file in files.published(tx, id_)}
        gone = [file for file in gone if file.id not in published]
        unneeded = relations.droppable(tx, readable)
        dropped = [
            id_
            for id_, at in relations.known_ids(tx).items()
            if at is not None and now - at >= lazy_readers and not pinned and id_ in unneeded
        ]
        gone += files.of_relations(tx, dropped)
        files.forget(tx, [file.id for file in gone])
        relations.forget(tx, dropped)
        views.forget(tx, dropped)
        lives.forget(tx, dropped)
        watermarks.forget(tx, dropped)
        deferrals.forget(tx, dropped)
        writes.forget_before(tx, now - runtime.limits.conflict_microseconds)
    failpoint("vacuum.forgotten")
    for file in gone:
        runtime.warehouse.delete(runtime.warehouse.path(file.relation, file.store, file.path))
    for id_ in dropped:
        runtime.logs.forget(id_)
        runtime.warehouse.delete_folder(f"{runtime.warehouse.root}/data/{id_}")
    failpoint("vacuum.deleted")
    return len(gone) + len(clean_orphans(runtime, older_than=runtime.limits.orphan_microseconds))


def clean_orphans(runtime: Runtime, *, older_than: int) -> list[str]:
    """Delete the files that the catalog does not know: what crashes and cancelled statements left."""
    found = runtime.warehouse.list(f"{runtime.warehouse.root}/data")
    with runtime.catalog.read() as tx:
        known = files.paths(tx)
    prefix = f"{runtime.warehouse.root}/data/"
    unknown: dict[str, tuple[int, str, str]] = {}
    for path in found:
        parts = path.removeprefix(prefix).split("/", 2)
        if len(parts) < 3 or parts[2].startswith("_delta_log/") or parts[1] not in (Store.ROWS, Store.CHANGES):
            continue
        name = (int(parts[0]), parts[1], parts[2])
        if name not in known and runtime.clock.now() - runtime.warehouse.modified_at(path) >= older_than:
            unknown[path] = name
    if not unknown:
        return []
    with runtime.catalog.write() as tx:  # nobody can acknowledge one of them between this look and its end
        control.lock(tx)
        known = files.paths(tx)
        orphans = [path for path, name in unknown.items() if name not in known]
        for path in orphans:
            runtime.warehouse.delete(path)
    return orphans

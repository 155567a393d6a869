"""Stopped views: what to say to those who write what a view cannot follow, and to those who read such a view."""

from __future__ import annotations

from stepwell.catalog import relations, views
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.relations import Relation
from stepwell.model.views import ViewState, held


def failed_in(runtime: Runtime, epoch: Epoch) -> list[str]:
    """The views that could not follow an epoch, each with the reason."""
    with runtime.catalog.read() as tx:
        failed = [
            record
            for record in views.get_all(tx).values()
            if record.state == ViewState.ERROR and record.reflects == epoch - 1
        ]
        named = [(relations.by_id(tx, record.relation), record) for record in failed]
    return [
        f'materialized view "{relation.name}" has failed and stays as of epoch {record.reflects}: {record.reason}'
        for relation, record in named
        if relation is not None and not relation.is_hidden
    ]


def stopped(runtime: Runtime, relation: Relation) -> str | None:
    """What a reader of a view should know: that it does not follow its parents, since when and why."""
    if not relation.is_maintained:
        return None
    with runtime.catalog.read() as tx:
        record = views.get_all(tx).get(relation.id)
    if record is None or record.state == ViewState.RUNNING:
        return None
    what = "has failed" if record.state == ViewState.ERROR else "is paused"
    return (
        f'materialized view "{relation.name}" {what} and shows epoch {held(record.reflects)}: {record.reason}; '
        f"ALTER MATERIALIZED VIEW {relation.name} RESUME brings it up to date"
    )

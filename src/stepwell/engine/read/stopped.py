"""Stopped views: what to say to those who write what a view cannot follow, and to those who read such a view."""

from __future__ import annotations

from stepwell.catalog import jobs, lives
from stepwell.engine.definitions import load_in
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError
from stepwell.model.jobs import JobId, said_of_progress
from stepwell.model.lifecycle import Building, Failed, Serving, runs, why_stopped
from stepwell.model.relations import Relation


def failed_in(runtime: Runtime, epoch: Epoch) -> list[str]:
    """The views that could not follow an epoch, each with the reason."""
    with runtime.catalog.read() as tx:
        all_lives, by_id = lives.get_all(tx), load_in(runtime, tx).by_id
    return [
        f'materialized view "{by_id[id_].name}" has failed and stays as of epoch {life.reflects}: {life.condition.why}'
        for id_, life in all_lives.items()
        if isinstance(life, Serving) and isinstance(life.condition, Failed) and life.reflects == epoch - 1
        if id_ in by_id and not by_id[id_].is_hidden
    ]


def require_there(runtime: Runtime, relation: Relation, epoch: Epoch | None) -> None:
    """Fail if a view is still being built, or was at an epoch that somebody looks back at."""
    if not relation.is_maintained:
        return
    with runtime.catalog.read() as tx:
        life = lives.find(tx, relation.id, epoch)
        if not isinstance(life, Building):
            return
        job = None if life.job is None else jobs.find(tx, JobId(life.job))
    if epoch is not None:
        raise StepwellError(f'{relation.kind} "{relation.name}" was not there yet at epoch {epoch}', sqlstate="55000")
    hint = f"WAIT MATERIALIZED VIEW {relation.name} returns once it is there."
    raise StepwellError(
        f'{relation.kind} "{relation.name}" is not there yet',
        detail=life.failed or (None if job is None else f"It is being built: {said_of_progress(job)}."),
        hint=f"DROP MATERIALIZED VIEW {relation.name}, and CREATE it again." if life.failed else hint,
        sqlstate="55000",
    )


def stopped(runtime: Runtime, relation: Relation) -> str | None:
    """What a reader of a view should know: that it does not follow its parents, since when and why."""
    if not relation.is_maintained:
        return None
    with runtime.catalog.read() as tx:
        life = lives.find(tx, relation.id)
        if not isinstance(life, Serving) or runs(life):
            return None
        why = why_stopped(life, load_in(runtime, tx).name)
    what = "has failed" if isinstance(life.condition, Failed) else "is paused"
    return (
        f'materialized view "{relation.name}" {what} and shows epoch {life.reflects}: {why}; '
        f"ALTER MATERIALIZED VIEW {relation.name} RESUME brings it up to date"
    )

"""Labels: a load or an insert that has one happens once, however often it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from stepwell.catalog import loads
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import AlreadyLoadedError, LabelError
from stepwell.model.loads import Label
from stepwell.model.relations import Relation
from stepwell.model.rows import Rows


def require_new(runtime: Runtime, relation: Relation, label: Label) -> None:
    """Stop if a load of this label was acknowledged: the same one is done already, another is a mistake."""
    with runtime.catalog.read() as tx:
        known = loads.find(tx, label.text)
    if known is None:
        return
    if known.relation != relation.id or known.label.digest != label.digest:
        other = "other files" if label.files else "other rows"
        into = "another table" if known.relation != relation.id else other
        raise LabelError(
            f'the label "{label.text}" was used for {into}',
            detail=f"Files and rows of that load, in epoch {known.epoch}: {known.label.files} and {known.label.rows}.",
            hint="Give this load a label of its own.",
        )
    raise AlreadyLoadedError(f'the load "{label.text}" is there already, since epoch {known.epoch}')


def once(write: Callable[[], Rows], label: str | None, staged: list[str]) -> Rows:
    """What a write answers; nothing was inserted where its label is there already, and a note says so."""
    if label is not None and label in staged:
        raise LabelError(f'the label "{label}" is used in this transaction already')
    try:
        return write()
    except AlreadyLoadedError as error:
        return Rows(["inserted", "retracted", "epoch"], [(0, 0, None)], [error.message])

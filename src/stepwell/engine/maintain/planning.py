"""Planning an epoch: what is known when it is closed, from catalog and files, and the plan that follows from it.

The barrier runs the plan; EXPLAIN REFRESH makes the same for the epoch that is still open, and prints it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from stepwell.catalog import barriers, lives
from stepwell.engine.definitions import Definitions, load_in
from stepwell.engine.maintain.event_time import Marks, advance
from stepwell.engine.maintain.workspace import Workspace
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.files import DataFile
from stepwell.model.lifecycle import Life, paused, runs
from stepwell.model.relations import Relation
from stepwell.model.views import EmitMode, RelationId
from stepwell.plan.epoch_plan import AtClose, EpochPlan, Extent, plan_epoch


@dataclass(frozen=True)
class Prepared:
    """An epoch before it is run: its plan, and all that it was made from."""

    definitions: Definitions
    lives: Mapping[RelationId, Life]
    left_out: Mapping[RelationId, Life]
    """Views that the epoch shall do without, as they lived before."""
    marks: Marks
    workspace: Workspace
    known: AtClose
    plan: EpochPlan


def prepare(
    runtime: Runtime,
    epoch: Epoch,
    deltas: Mapping[RelationId, Sequence[DataFile]],
    without: AbstractSet[RelationId] = frozenset(),
) -> Prepared:
    """The plan of an epoch that does `deltas` to the tables, by what is in force at it; without some views."""
    with runtime.catalog.read() as tx:
        definitions, found = load_in(runtime, tx, epoch), lives.get_all_at(tx, epoch)
        kept_since = barriers.oldest(tx)
    left_out = {id_: life for id_, life in found.items() if id_ in without and runs(life)}
    found |= {id_: paused(life) for id_, life in left_out.items()}
    stopped = frozenset(id_ for id_, life in found.items() if not runs(life))
    marks = advance(runtime, definitions, epoch, deltas, stopped)
    workspace = Workspace(runtime, definitions.by_id, Epoch(epoch - 1), deltas)
    emits = frozenset(id_ for id_, each in definitions.by_id.items() if id_ not in stopped and _may_emit(each, marks))
    changes = {id_: workspace.change(id_) for id_ in deltas if deltas[id_] and id_ in definitions.order}
    known = AtClose(
        changes,
        Extents(workspace),
        runtime.costs.all(),
        runtime.limits,
        emits,
        runtime.refolding.waiting,
        kept_since,
    )
    return Prepared(definitions, found, left_out, marks, workspace, known, plan_epoch(epoch, definitions, found, known))


class Extents(Mapping[RelationId, Extent]):
    """How much there is of each relation, looked up when somebody asks."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def __getitem__(self, relation: RelationId) -> Extent:
        content = self._workspace.after(relation)
        return Extent(content.count, content.bytes)

    def __iter__(self) -> Iterator[RelationId]:
        return iter(self._workspace.relations)

    def __len__(self) -> int:
        return len(self._workspace.relations)


def _may_emit(view: Relation, marks: Marks) -> bool:
    """Whether a view that shows less than is known of it may have more to show, whatever its parents do."""
    if view.definition.view is None or view.view.live is None:
        return False
    is_due = view.view.emission.mode == EmitMode.PERIODICALLY and marks.is_due(view)
    return marks.moves(view.id) or is_due

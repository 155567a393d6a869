"""Snapshots: what a statement sees. All relations at one epoch, or everything acknowledged so far and its own writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from stepwell.catalog import Transaction, barriers, control, files, relations
from stepwell.engine.consolidation import without_idle_updates
from stepwell.engine.runtime import Runtime
from stepwell.epochs import FIRST_EPOCH, Epoch
from stepwell.errors import EpochNotRetainedError
from stepwell.files import LATEST, NewFile, Store
from stepwell.plan import Content, changes_between, content_at
from stepwell.relations import Relation, RelationId
from stepwell.storage import scan_changes, scan_content
from stepwell.writes import Position


class Snapshot:
    """One consistent view of the database. `position` is the last acknowledgement it sees."""

    def __init__(
        self,
        runtime: Runtime,
        tx: Transaction,
        epoch: Epoch | None = None,
        staged: Mapping[RelationId, Sequence[NewFile]] | None = None,
    ) -> None:
        """At `epoch`, or at the newest readable one; with `staged`, after everything acknowledged and those files."""
        at = control.look(tx)
        self._runtime, self._tx = runtime, tx
        self._staged = staged
        self.position: Position = at.last_position
        self.epoch: Epoch = at.readable_epoch if epoch is None else epoch

    def relation(self, name: str) -> Relation:
        return relations.get(self._tx, name, None if self._staged is not None else self.epoch)

    def relation_at(self, name: str, epoch: Epoch) -> Relation:
        """The relation called `name` today, as it was at an epoch that the user chose."""
        relation = relations.get(self._tx, name, barriers.require_readable(self._tx, epoch))
        if relation.created_epoch > epoch:
            raise EpochNotRetainedError(
                f'{relation.kind} "{relation.name}" did not exist at epoch {epoch}',
                detail=f"It was created in epoch {relation.created_epoch}.",
            )
        return relation

    def epoch_at(self, moment: int) -> Epoch:
        return barriers.epoch_at(self._tx, moment)

    def content(self, relation: Relation, epoch: Epoch | None = None) -> Content:
        if self._staged is not None and epoch is None:
            own = [file.staged(relation.id) for file in self._staged.get(relation.id, ())]
            return content_at([*files.latest(self._tx, relation.id), *own], LATEST)
        at = self.epoch if epoch is None else epoch
        return content_at(files.content(self._tx, relation.id, at), at)

    def rows(self, relation: Relation, content: Content) -> DataFrame:
        """Content as a DataFrame, with the hidden columns."""
        return scan_content(self._runtime.spark.session, self._runtime.warehouse, relation, content)

    def changes(self, relation: Relation, after: int, upto: int | None) -> DataFrame:
        """The changelogs of the epochs (after, upto], consolidated epoch by epoch."""
        last = self.epoch if upto is None else barriers.require_readable(self._tx, upto)
        oldest = barriers.oldest(self._tx)
        since = max(after, relation.created_epoch - 1)
        if after > last:
            raise EpochNotRetainedError(f"there are no epochs after {after} and up to {last}")
        if since < oldest and oldest > FIRST_EPOCH:
            raise EpochNotRetainedError(
                f"the changes after epoch {after} are not kept",
                detail=f"The oldest epoch kept is {oldest}.",
                hint=f"Ask for the changes after {oldest}.",
            )
        found = changes_between(files.logged_between(self._tx, relation.id, Epoch(after), last), Epoch(after), last)

        def scan(*stores: Store) -> DataFrame:
            chosen = [file for file in found if file.store in stores]
            session, warehouse = self._runtime.spark.session, self._runtime.warehouse
            return scan_changes(session, warehouse, relation, chosen, Epoch(after), last)

        if not any(file.store == Store.CHANGES for file in found):
            return scan(Store.ROWS)
        return scan(Store.ROWS).union(without_idle_updates(relation, scan(Store.CHANGES)))

"""Snapshots: what a statement sees. All relations at one epoch, or all that is acknowledged and its own writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from stepwell.catalog import barriers, control, files, relations, writes
from stepwell.engine.read.consolidation import without_idle_updates
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import FIRST_EPOCH, Epoch
from stepwell.model.errors import ConflictError, EpochNotRetainedError
from stepwell.model.files import LATEST, NewFile, Store
from stepwell.model.relations import Relation
from stepwell.model.views import RelationId
from stepwell.model.writes import Position
from stepwell.plan import Content, changes_between, content_at
from stepwell.storage import scan_changes, scan_content


class Snapshot:
    """One consistent view of the database. `position` is the last acknowledgement it is sure to see.

    It holds no transaction open: the content of an epoch is the same whenever it is looked up. Beyond the readable
    epochs a later look may see more than `position` says; a write then finds a conflict that is none, and runs again.
    """

    def __init__(
        self,
        runtime: Runtime,
        staged: Mapping[RelationId, Sequence[NewFile]] | None = None,
    ) -> None:
        """At the newest readable epoch; with `staged`, after everything acknowledged and those files."""
        with runtime.catalog.read() as tx:
            at = control.look(tx)
        self._runtime = runtime
        self._staged = staged
        self._looked: dict[RelationId, Position] = {}
        self.position: Position = at.last_position
        self.epoch: Epoch = at.readable_epoch

    def relation(self, name: str) -> Relation:
        with self._runtime.catalog.read() as tx:
            return relations.get(tx, name, None if self._staged is not None else self.epoch)

    def relation_numbered(self, id_: RelationId, epoch: Epoch | None = None) -> Relation:
        """The relation of this number as the snapshot sees it, or as it was at an epoch that the user chose."""
        at = epoch if epoch is not None or self._staged is not None else self.epoch
        with self._runtime.catalog.read() as tx:
            found = relations.by_id(tx, id_, at) or relations.by_id(tx, id_)
        if found is None and epoch is not None:
            raise EpochNotRetainedError(f"what was read at epoch {epoch} is dropped since, and its rows are not kept")
        if found is None:
            raise ConflictError("a relation was dropped while it was looked up")
        return found

    def relation_at(self, name: str, epoch: Epoch) -> Relation:
        """The relation called `name` today, as it was at an epoch that the user chose."""
        with self._runtime.catalog.read() as tx:
            relation = relations.get(tx, name, barriers.require_readable(tx, epoch))
        if relation.created_epoch > epoch:
            raise EpochNotRetainedError(
                f'{relation.kind} "{relation.name}" did not exist at epoch {epoch}',
                detail=f"It was created in epoch {relation.created_epoch}.",
            )
        return relation

    def epoch_at(self, moment: int) -> Epoch:
        with self._runtime.catalog.read() as tx:
            return barriers.epoch_at(tx, moment)

    def content(self, relation: Relation, epoch: Epoch | None = None) -> Content:
        with self._runtime.catalog.read() as tx:
            if self._staged is not None and epoch is None:
                self._looked[relation.id] = control.look(tx).last_position
                own = [file.staged(relation.id) for file in self._staged.get(relation.id, ())]
                return content_at([*files.latest(tx, relation.id), *own], LATEST)
            at = self.epoch if epoch is None else barriers.require_readable(tx, epoch)
            return content_at(files.content(tx, relation.id, at), at)

    def require_whole(self) -> None:
        """Fail if the relations looked at beyond the readable epochs were not seen in one state.

        Each was looked up in its turn. They make one state unless one was written after its look and before the last.
        """
        last = max(self._looked.values(), default=self.position)
        with self._runtime.catalog.read() as tx:
            for relation, at in self._looked.items():
                if at < last and writes.is_touched(tx, relation, after=at, upto=last):
                    raise ConflictError(
                        "the relations were changed while they were looked up", detail="Nothing was applied."
                    )

    def rows(self, relation: Relation, content: Content) -> DataFrame:
        """Content as a DataFrame, with the hidden columns."""
        return scan_content(
            self._runtime.spark.session, self._runtime.warehouse, relation, content, self._runtime.limits
        )

    def changes(self, relation: Relation, after: int, upto: int | None) -> DataFrame:
        """The changelogs of the epochs (after, upto], consolidated epoch by epoch."""
        with self._runtime.catalog.read() as tx:
            last = self.epoch if upto is None else barriers.require_readable(tx, upto)
            oldest = barriers.oldest(tx)
            logged = files.logged_between(tx, relation.id, Epoch(after), last)
        since = max(after, relation.created_epoch - 1)
        if after > last:
            raise EpochNotRetainedError(f"there are no epochs after {after} and up to {last}")
        if since < oldest and oldest > FIRST_EPOCH:
            raise EpochNotRetainedError(
                f"the changes after epoch {after} are not kept",
                detail=f"The oldest epoch kept is {oldest}.",
                hint=f"Ask for the changes after {oldest}.",
            )
        found = changes_between(logged, Epoch(after), last)

        def scan(*stores: Store) -> DataFrame:
            chosen = [file for file in found if file.store in stores]
            session, warehouse = self._runtime.spark.session, self._runtime.warehouse
            return scan_changes(session, warehouse, relation, chosen, Epoch(after), last)

        if not any(file.store == Store.CHANGES for file in found):
            return scan(Store.ROWS)
        return scan(Store.ROWS).union(without_idle_updates(relation, scan(Store.CHANGES)))


def readable_epoch(runtime: Runtime) -> Epoch:
    """The newest epoch that can be read."""
    with runtime.catalog.read() as tx:
        return control.look(tx).readable_epoch

"""The workspace of an epoch: relations in their states, as temporary views of a session of its own.

A text names what it reads (`_sw_rel7_a`); the workspace puts that there, from the files, and counts what it offers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from stepwell.catalog import barriers, files
from stepwell.engine.runtime import Runtime
from stepwell.epochs import Epoch
from stepwell.files import DIFF, EPOCH, ROW_ID, DataFile, NewFile, Store
from stepwell.plan import Content, changes_between, content_at
from stepwell.plan.render import Mode, view_name
from stepwell.plan.steps import Change
from stepwell.relations import Relation
from stepwell.storage import net_changes, scan_changes, scan_content, scan_delta
from stepwell.types import quote
from stepwell.views import RelationId, placeholder

OWN, KEPT = "_sw_own", "_sw_kept"
"""What a view holds, and its state, both as they were before the epoch."""

QUICK, FEW = 8 * 2**20, 20_000
"""A text over fewer bytes and rows than these is done before Spark would have compiled it."""

_NAME = re.compile(r"\b_sw_rel(\d+)(?:_([abd]))?\b")


class Workspace:
    """What the views of one epoch read. `epoch` is the one before: what is there; `deltas` is what comes."""

    def __init__(
        self,
        runtime: Runtime,
        by_id: Mapping[RelationId, Relation],
        epoch: Epoch,
        deltas: Mapping[RelationId, Sequence[DataFile]],
        session: SparkSession | None = None,
    ) -> None:
        """`session` is the one of the barrier loop unless another is given."""
        self.runtime = runtime
        self._session = session
        self.epoch = epoch
        self.bytes = 0
        self._by_id = by_id
        self._deltas: dict[RelationId, tuple[DataFile, ...]] = {
            id_: tuple(each) for id_, each in deltas.items() if each
        }
        self._before: dict[RelationId, Content] = {}
        self._now: Workspace | None = None
        self._missed: dict[RelationId, tuple[DataFile, ...]] = {}
        self._there: dict[str, tuple[str, ...]] = {}
        """The temporary views that are there already, with their columns: one view's texts read much the same."""

    @property
    def session(self) -> SparkSession:
        return self._session or self.runtime.spark.maintenance()

    def beside(self, worker: int) -> Workspace:
        """The same workspace for another worker: what is there and what comes is shared, the session is its own."""
        other = Workspace(self.runtime, self._by_id, self.epoch, {}, self.runtime.spark.maintenance(worker))
        other._deltas, other._before = self._deltas, self._before
        return other

    def since(self, epoch: Epoch, relations: Iterable[RelationId]) -> Workspace:
        """The same for a view that stands at an earlier epoch: what was there then, and all that has come since."""
        other = Workspace(self.runtime, self._by_id, epoch, {}, self._session)
        other._now = self
        with self.runtime.catalog.read() as tx:
            for id_ in relations:
                logged = files.logged_between(tx, id_, epoch, self.epoch)
                other._missed[id_] = changes_between(logged, epoch, self.epoch)
                if other._missed[id_] or self.delta(id_):
                    other._deltas[id_] = (*other._missed[id_], *self.delta(id_))
        return other

    def keeps(self, epoch: int) -> bool:
        """Whether the changes since an epoch are all there."""
        with self.runtime.catalog.read() as tx:
            return epoch >= barriers.oldest(tx)

    def delta(self, relation: RelationId) -> tuple[DataFile, ...]:
        return self._deltas.get(relation, ())

    def add_delta(self, relation: RelationId, new: Sequence[NewFile]) -> None:
        """Let the children see what has become of a view in this epoch."""
        if new:
            self._deltas[relation] = tuple(file.staged(relation) for file in new)

    def forget(self, relations: Iterable[RelationId]) -> None:
        """Take these for empty: what is stored of them no longer counts."""
        self._before.update({relation: Content((), ()) for relation in relations})

    def before(self, relation: RelationId) -> Content:
        if relation not in self._before:
            with self.runtime.catalog.read() as tx:
                self._before[relation] = content_at(files.content(tx, relation, self.epoch), self.epoch)
        return self._before[relation]

    def after(self, relation: RelationId) -> Content:
        if self._now is not None:
            return self._now.after(relation)
        before, new = self.before(relation), self.delta(relation)
        return Content(
            before.rows + tuple(file for file in new if file.store == Store.ROWS),
            before.changes + tuple(file for file in new if file.store == Store.CHANGES),
            before.upto,
        )

    def change(self, relation: RelationId) -> Change:
        """How much the epoch changes of a relation."""
        statistics = [file.statistics for file in self.delta(relation)]
        rows, retracted = sum(each.rows for each in statistics), sum(each.retracted for each in statistics)
        return Change(rows, retracted, self.after(relation).count)

    def run(self, text: str, view: Relation, *others: tuple[str, Callable[[], DataFrame]]) -> DataFrame:
        """Spark's plan of a text over the inputs of `view`; `others` are names that it may also read."""
        offered, rows = self.bytes, 0
        columns = {source.relation: source.columns for source in view.view.inputs}
        for match in dict.fromkeys(_NAME.findall(text)):
            relation = RelationId(int(match[0]))
            mode = Mode(match[1]) if match[1] else None
            name = view_name(relation, mode) if mode else placeholder(relation)
            if self._there.get(name) != columns[relation]:
                self._frame(relation, columns[relation], mode).createOrReplaceTempView(name)
                self._there[name] = columns[relation]
            self.bytes += self._offered(relation, mode)
            rows += self._rows(relation, mode)
        for name, make in others:
            if re.search(rf"\b{name}\b", text):
                make().createOrReplaceTempView(name)
        self.runtime.spark.hurry(self.session, self.bytes - offered <= QUICK and rows <= FEW)
        return self.session.sql(text)

    def stored(self, relation: Relation, bounds: str | None = None) -> DataFrame:
        """What a relation held before the epoch, with its identities and versions; within `bounds` if there are any."""
        content = (self._now or self).before(relation.id)
        self.bytes += content.bytes
        rows = scan_content(self.session, self.runtime.warehouse, relation, content)
        return rows.where(bounds) if bounds else rows

    def changes(self, relation: RelationId) -> DataFrame:
        """What has come and gone of a relation."""
        return self._changes(self._by_id[relation])

    def _changes(self, relation: Relation) -> DataFrame:
        """What has come and gone: in the epoch, or in all of them since the one that the view stands at."""
        session, warehouse, missed = self.session, self.runtime.warehouse, self._missed.get(relation.id)
        if not missed or self._now is None:
            return scan_delta(session, warehouse, relation, self.delta(relation.id))
        parts = [scan_changes(session, warehouse, relation, missed, self.epoch, self._now.epoch).drop(EPOCH)]
        if new := self._now.delta(relation.id):
            parts.append(scan_delta(session, warehouse, relation, new))
        return net_changes(relation, reduce(DataFrame.unionByName, parts))

    def _offered(self, id_: RelationId, mode: Mode | None) -> int:
        """How many bytes a relation has in one of its states."""
        if mode == Mode.DELTA:
            return sum(file.statistics.bytes for file in self.delta(id_))
        return (self.before(id_) if mode == Mode.BEFORE else self.after(id_)).bytes

    def _rows(self, id_: RelationId, mode: Mode | None) -> int:
        """How many rows a relation has in one of its states."""
        if mode == Mode.DELTA:
            return sum(file.statistics.rows for file in self.delta(id_))
        return (self.before(id_) if mode == Mode.BEFORE else self.after(id_)).count

    def _frame(self, id_: RelationId, columns: Sequence[str], mode: Mode | None) -> DataFrame:
        relation = self._by_id[id_]
        names = [quote(name) for name in columns]
        warehouse = self.runtime.warehouse
        if mode == Mode.DELTA:
            return self._changes(relation).select(*names, ROW_ID, DIFF)
        content = self.before(id_) if mode == Mode.BEFORE else self.after(id_)
        frame = scan_content(self.session, warehouse, relation, content)
        return frame.select(*names, ROW_ID) if mode else frame.select(*names)

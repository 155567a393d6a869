"""The workspace of an epoch: relations in their states, as temporary views of a session of its own.

A text names what it reads (`_sw_rel7_a`); the workspace puts that there, from the files, and counts what it offers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from stepwell.algebra.nodes import Moment, Node, scans_of
from stepwell.algebra.printing import scan_name
from stepwell.catalog import barriers, files
from stepwell.engine.maintain.keys import Keys
from stepwell.engine.runtime import Runtime
from stepwell.engine.session import Pace
from stepwell.model.epochs import Epoch
from stepwell.model.errors import UnsupportedError
from stepwell.model.files import DIFF, EPOCH, ROW_ID, DataFile, NewFile, Store
from stepwell.model.limits import Limits
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import RelationId, Settings
from stepwell.plan import Content, changes_between, content_at
from stepwell.plan.cuts import Change
from stepwell.sql import outside_code
from stepwell.sql.statements import Slice
from stepwell.storage import net_changes, read_delta, scan_changes, scan_content, scan_delta, small_frame


@dataclass(frozen=True, slots=True)
class Reads:
    """What a text reads: relations, each at a moment, and what was put beside them under a name."""

    relations: frozenset[tuple[RelationId, Moment]] = frozenset()
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *trees: Node) -> Reads:
        """What some trees read."""
        scans = [scan for tree in trees for scan in scans_of(tree)]
        plain = frozenset((RelationId(scan.relation), scan.moment) for scan in scans if scan.cut is None)
        return cls(plain, frozenset(scan.cut for scan in scans if scan.cut is not None))

    @classmethod
    def now(cls, relations: Iterable[int]) -> Reads:
        """What a text reads that names relations as they are."""
        return cls(frozenset((RelationId(each), Moment.NOW) for each in relations))

    def and_(self, *names: str) -> Reads:
        return Reads(self.relations, self.names | {*names})


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
        self._batches: dict[str, pa.Table] = {}
        self._small_deltas: dict[RelationId, pa.Table] = {}

    @property
    def session(self) -> SparkSession:
        return self._session or self.runtime.spark.maintenance()

    def beside(self, worker: int, settings: Settings = ()) -> Workspace:
        """The same workspace for another worker: what is there and what comes is shared, the session is its own.

        In it the text of a view means what it meant under the `settings` that the view was created with.
        """
        other = Workspace(self.runtime, self._by_id, self.epoch, {}, self.runtime.spark.maintenance(worker, settings))
        other._deltas, other._before, other._small_deltas = self._deltas, self._before, self._small_deltas
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

    @property
    def relations(self) -> Mapping[RelationId, Relation]:
        """All relations that are there."""
        return self._by_id

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

    def offer(self, name: str, batch: pa.Table) -> None:
        """Let texts read a small table under a name."""
        small_frame(self.session, batch, self.runtime.limits).createOrReplaceTempView(name)
        self._batches[name] = batch

    def run(
        self,
        text: str,
        view: Relation,
        reads: Reads,
        others: Mapping[str, Callable[[], DataFrame]] | None = None,
        *,
        pace: Pace | None = None,
    ) -> DataFrame:
        """Spark's plan of a text over the inputs of `view`; `others` are what else it may read, made if it does."""
        if outside_code(Slice(text, 0, len(text))):  # no statement of ours has made such a view
            raise UnsupportedError(f'{view.kind} "{view.name}" runs code from outside the database')
        offered, rows = self.bytes, 0
        columns = {source.relation: source.columns for source in view.view.inputs}
        for relation, moment in sorted(reads.relations):
            name = scan_name(relation, moment)
            if self._there.get(name) != columns[relation]:
                self._frame(relation, columns[relation], moment).createOrReplaceTempView(name)
                self._there[name] = columns[relation]
            self.bytes += self._offered(relation, moment)
            rows += self._rows(relation, moment)
        for name in reads.names & (others or {}).keys():
            assert others is not None
            others[name]().createOrReplaceTempView(name)
        rows += sum(self._batches[name].num_rows for name in reads.names & self._batches.keys())
        self.runtime.spark.keep_pace(self.session, pace or _pace(self.bytes - offered, rows, self.runtime.limits))
        return self.session.sql(text)

    def stored(self, relation: Relation, keys: Keys | None = None) -> DataFrame:
        """What a relation held before the epoch, with its identities and versions; of all keys, or of these."""
        content = (self._now or self).before(relation.id)
        self.bytes += content.bytes
        rows = self._scan(relation, content, keys)
        return F.broadcast(rows) if keys is not None else rows

    def part(self, relation: RelationId, columns: Sequence[str], keys: Keys) -> DataFrame:
        """What a relation holds after the epoch of some keys: the columns, and identities."""
        content = self.after(relation)
        self.bytes += content.bytes
        self.runtime.spark.keep_pace(self.session, Pace.SOME)  # whatever it is, it is read once and sorted by no one
        frame = self._scan(self._by_id[relation], content, keys, columns)
        return frame.select(*(quote(name) for name in columns), ROW_ID)

    def _scan(
        self, relation: Relation, content: Content, keys: Keys | None, columns: Sequence[str] | None = None
    ) -> DataFrame:
        session, warehouse, limits = self.session, self.runtime.warehouse, self.runtime.limits
        if keys is None:
            return scan_content(session, warehouse, relation, content, limits, columns)
        narrow = keys.narrowing(warehouse, content, limits)
        return scan_content(session, warehouse, relation, content, limits, columns, narrow)

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

    def small_delta(self, id_: RelationId) -> pa.Table | None:
        """What the epoch did to a relation, if that is little."""
        size = sum(file.statistics.bytes for file in self.delta(id_))
        if self._missed.get(id_) or size > self.runtime.limits.small_delta_bytes:
            return None
        if id_ not in self._small_deltas:
            self._small_deltas[id_] = read_delta(self.runtime.warehouse, self._by_id[id_], self.delta(id_))
        return self._small_deltas[id_]

    def _offered(self, id_: RelationId, moment: Moment) -> int:
        """How many bytes a relation has in one of its states."""
        if moment == Moment.DELTA:
            return sum(file.statistics.bytes for file in self.delta(id_))
        return (self.before(id_) if moment == Moment.BEFORE else self.after(id_)).bytes

    def _rows(self, id_: RelationId, moment: Moment) -> int:
        """How many rows a relation has in one of its states."""
        if moment == Moment.DELTA:
            return sum(file.statistics.rows for file in self.delta(id_))
        return (self.before(id_) if moment == Moment.BEFORE else self.after(id_)).count

    def _frame(self, id_: RelationId, columns: Sequence[str], moment: Moment) -> DataFrame:
        relation = self._by_id[id_]
        names = [quote(name) for name in columns]
        warehouse, limits = self.runtime.warehouse, self.runtime.limits
        if moment == Moment.DELTA:
            small = self.small_delta(id_)
            if small is not None:
                return small_frame(self.session, small.select([*columns, ROW_ID, DIFF]), limits)
            return self._changes(relation).select(*names, ROW_ID, DIFF)
        content = self.before(id_) if moment == Moment.BEFORE else self.after(id_)
        frame = scan_content(self.session, warehouse, relation, content, limits, columns)
        return frame.select(*names, ROW_ID) if moment != Moment.NOW else frame.select(*names)


def _pace(size: int, rows: int, limits: Limits) -> Pace:
    """How to go about a text that reads so many bytes and rows."""
    if size <= limits.uncompiled_bytes and rows <= limits.uncompiled_rows:
        return Pace.FEW
    return Pace.SOME if size <= limits.planned_once_bytes else Pace.MANY

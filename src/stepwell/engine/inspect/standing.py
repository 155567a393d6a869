"""Where a warehouse stands, by its catalog and its files alone: nothing is led, changed or started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stepwell.catalog import Transaction, barriers, control, files, leases, relations
from stepwell.engine.damages import owner_of
from stepwell.engine.inspect.inspection import graph_nodes
from stepwell.engine.read.system import SYSTEM_NAMESPACE, read_system_table
from stepwell.engine.runtime import Runtime
from stepwell.graph import DrawnRelation
from stepwell.model.epochs import Epoch
from stepwell.model.errors import UndefinedTableError, nearest
from stepwell.model.files import Store
from stepwell.model.lifecycle import ViewState
from stepwell.model.relations import Relation
from stepwell.model.rows import Rows
from stepwell.sql.statements import Name, Slice
from stepwell.storage import all_damages, log_state


@dataclass(frozen=True, slots=True)
class Standing:
    """A warehouse and its catalog at one moment."""

    warehouse: str
    catalog: str
    readable: Epoch
    open: Epoch
    unfinished: int
    """How many epochs are being closed, or were left by a crash."""
    holder: str | None
    """Who leads."""
    stopped: tuple[DrawnRelation, ...]
    """Views in error, and paused ones."""
    tables: Rows
    """As in `stepwell.tables`, but for the paths."""
    behind: tuple[PublishedTable, ...]
    """Relations whose Delta tables show an earlier epoch."""


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A relation as outside readers find it: where, at which epoch, and how many epochs behind what can be read."""

    name: str
    path: str
    epoch: Epoch | None
    behind: int

    @property
    def said_behind(self) -> str:
        return f"{self.behind} epoch{'' if self.behind == 1 else 's'} behind"


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is not as the catalog says: in which relation, and what."""

    relation: str
    what: str


class Onlooker:
    """A warehouse that is looked at and not worked in. Close it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def standing(self) -> Standing:
        """Where it stands now."""
        with self._runtime.catalog.read() as tx:
            at = control.look(tx)
            unfinished = barriers.unfinished(tx)
            holder = leases.look(tx).holder
        names, rows = self._tables()
        shown = [name for name in names if name != "path"]
        return Standing(
            warehouse=self._runtime.warehouse.url,
            catalog=self._runtime.catalog.url,
            readable=at.readable_epoch,
            open=at.open_epoch,
            unfinished=len(unfinished),
            holder=holder,
            stopped=tuple(each for each in self.nodes() if each.label.endswith((ViewState.ERROR, ViewState.PAUSED))),
            tables=Rows(shown, [tuple(row[names.index(name)] for name in shown) for row in rows]),
            behind=tuple(each for each in self._published() if each.behind),
        )

    def published(self, name: str) -> PublishedTable:
        """The table or view of this name as outside readers find it."""
        known = self._published()
        for each in known:
            if each.name.lower() == name.removeprefix("main.").lower():
                return each
        raise UndefinedTableError(
            f'relation "{name}" does not exist', hint=nearest(name, [each.name for each in known])
        )

    def _published(self) -> list[PublishedTable]:
        names, rows = self._tables()
        wanted = [names.index(name) for name in ("name", "path", "published_epoch", "behind")]
        return [PublishedTable(*(row[at] for at in wanted)) for row in rows]

    def _tables(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        text = f"{SYSTEM_NAMESPACE}.tables"
        table, rows = read_system_table(self._runtime, Name((SYSTEM_NAMESPACE, "tables"), Slice(text, 0, len(text))))
        return [column.name for column in table.columns], rows

    def nodes(self) -> list[DrawnRelation]:
        """Its relations, parents before children, to be drawn."""
        return graph_nodes(self._runtime)

    def damages(self, *, deep: bool = False) -> list[Damage]:
        """Data files that are missing or damaged, and Delta logs that are not as they were published.

        `deep` reads every byte of every file that some epoch needs, else only files that are small.
        """
        with self._runtime.catalog.read() as tx:
            found = files.in_use(tx)
            logs = [each for relation in relations.get_all(tx) for each in self._log_damages(tx, relation)]
        damages = []
        for error in all_damages(self._runtime.warehouse, found, deep=deep):
            owner = owner_of(self._runtime, error)
            damages.append(Damage(owner.name if owner else "", f"{error.message}. {error.detail}"))
        return [*damages, *logs]

    def require_writable(self) -> None:
        """Fail if files cannot be written there."""
        self._runtime.warehouse.create()

    def close(self) -> None:
        self._runtime.close()

    def _log_damages(self, tx: Transaction, relation: Relation) -> list[Damage]:
        warehouse = self._runtime.warehouse
        state = log_state(warehouse, relation.id)
        if state is None:
            return []
        there, published_at, foreign = state
        folder = warehouse.folder(relation.id, Store.ROWS)
        if foreign:
            return [Damage(relation.name, f"{foreign} commits in the Delta log at {folder} are not stepwell's")]
        if there != {file.path for file in files.published(tx, relation.id)}:
            what = f"the Delta log at {folder} differs from what was published for epoch {published_at}"
            return [Damage(relation.name, what)]
        return []

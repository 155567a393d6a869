"""A generation: all definitions between two changes of any, every relation by its number, and the graphs between them.

Read once: an epoch in which no definition changes looks up nothing. One that was closed before a definition changed has
those that were in force at it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from stepwell.catalog import Transaction, control, relations
from stepwell.graph import Registry
from stepwell.model.epochs import Epoch
from stepwell.model.relations import Relation, RelationKind
from stepwell.model.views import OUTDATED, EmitMode, RelationId
from stepwell.rules.blocks import Block, GroupBlock, RowBlock, WholeBlock, restored
from stepwell.rules.groups import has_states, state_columns


@dataclass(frozen=True)
class Definitions:
    """All relations of one generation, in force from the epoch `since` on; or those of an epoch before."""

    generation: int
    since: Epoch
    by_id: dict[RelationId, Relation]
    graph: Registry
    """Who reads whom, as the users have written it."""
    order: Registry
    """Who is computed from whom: stored relations alone, hidden ones too."""

    @cached_property
    def blocks(self) -> dict[RelationId, Block]:
        """The plan of every view; of one that is outdated, that it is computed anew from its text."""
        return {
            id_: restored(each.view.plan) or _unplanned(each) for id_, each in self.by_id.items() if each.is_maintained
        }

    @cached_property
    def outdated(self) -> frozenset[RelationId]:
        """The views, hidden ones too, whose plan or state has another form than this version of stepwell gives it."""
        return frozenset(id_ for id_ in self.blocks if self._is_outdated(self.by_id[id_]))

    def _is_outdated(self, view: Relation) -> bool:
        if view.deferral is not None:
            return False  # nothing is kept of it but rows
        if restored(view.view.plan) is None:
            return True
        block, state = self.blocks[view.id], self.state_of(view)
        keeps = isinstance(block, GroupBlock) and has_states(block)
        return (state.columns if state else None) != (
            state_columns(block) if isinstance(block, GroupBlock) and keeps else None
        )

    @cached_property
    def sources(self) -> frozenset[RelationId]:
        """The relations whose plain files hold rows with identities that were never used before.

        Tables, and views that are just rows of such. The identity of a group comes again with the group.
        """
        found: set[RelationId] = set()
        for id_ in self.order.order():
            is_rows = id_ in self.blocks and isinstance(self.blocks[id_], RowBlock)
            if self.by_id[id_].kind == RelationKind.TABLE or (is_rows and found.issuperset(self.order.parents(id_))):
                found.add(id_)
        return frozenset(found)

    @cached_property
    def timed(self) -> dict[RelationId, list[RelationId]]:
        """The relations that have a watermark, each with those of its parents that have one."""
        found: dict[RelationId, list[RelationId]] = {}
        for id_ in self.order.order():
            relation = self.by_id[id_]
            parents = [parent for parent in self.order.parents(id_) if parent in found]
            declared = relation.definition.watermark is not None
            if declared or (parents and relation.is_maintained and relation.view.transfer is not None):
                found[id_] = parents
        return found

    @cached_property
    def periodic(self) -> frozenset[RelationId]:
        """The views that emit by the clock."""
        return frozenset(
            id_
            for id_, each in self.by_id.items()
            if each.definition.view is not None and each.view.emission.mode == EmitMode.PERIODICALLY
        )

    @cached_property
    def idling(self) -> dict[RelationId, int]:
        """The tables that have no say when nothing comes for so long."""
        rules = {id_: each.definition.watermark for id_, each in self.by_id.items()}
        return {id_: rule.idle_timeout for id_, rule in rules.items() if rule is not None and rule.idle_timeout}

    @cached_property
    def watched(self) -> dict[RelationId, frozenset[str]]:
        """The relations that continuous aggregates read, each with the time columns that they go by."""
        found: dict[RelationId, set[str]] = {}
        for each in self.by_id.values():
            if each.deferral is not None:
                found.setdefault(each.deferral.source, set()).add(each.deferral.column)
                for id_ in each.deferral.dimensions:
                    found.setdefault(id_, set())
        return {id_: frozenset(columns) for id_, columns in found.items()}

    def called(self, name: str) -> Relation | None:
        """The relation of this name, unless it is a hidden one."""
        return self._by_name.get(name.lower())

    @cached_property
    def _by_name(self) -> dict[str, Relation]:
        return {each.name.lower(): each for each in self.by_id.values() if not each.is_hidden}

    def beside(self, more: Iterable[Relation]) -> Definitions:
        """The same with relations that are not there yet."""
        by_id = {**self.by_id, **{each.id: each for each in more}}
        graph, order = self.graph.follow(_written(by_id)), self.order.follow(_computed(by_id))
        return Definitions(self.generation, self.since, by_id, graph, order)

    def without(self, gone: AbstractSet[RelationId]) -> Definitions:
        """The same without relations that are to go."""
        by_id = {id_: each for id_, each in self.by_id.items() if id_ not in gone}
        graph, order = self.graph.follow(_written(by_id)), self.order.follow(_computed(by_id))
        return Definitions(self.generation, self.since, by_id, graph, order)

    def ledger_of(self, view: Relation) -> Relation | None:
        """The relation that holds what came too late for a view."""
        return None if view.view.judge is None else self.by_id[view.view.judge.ledger]

    def state_of(self, view: Relation) -> Relation | None:
        """The relation that holds a view's partial results."""
        return None if view.view.state is None else self.by_id[view.view.state]

    def name(self, id_: RelationId) -> str:
        return self.by_id[id_].name

    def parts_of(self, view: Relation) -> list[Relation]:
        """The hidden relations of a view, those that read others first."""
        found = [self.by_id[id_] for id_ in reversed(view.view.blocks)]
        states = [self.by_id[each.view.state] for each in (view, *found) if each.view.state is not None]
        ledgers = [self.by_id[each.view.judge.ledger] for each in (view, *found) if each.view.judge is not None]
        return [*found, *states, *ledgers]


def _unplanned(view: Relation) -> Block:
    relations = tuple(int(each.relation) for each in view.view.inputs)
    return WholeBlock(view.view.bound, tuple(column.name for column in view.columns), OUTDATED, relations)


class LatestDefinitions:
    """The definitions of the generation that was looked at last."""

    def __init__(self) -> None:
        self._known: Definitions | None = None
        self._lock = threading.Lock()

    @property
    def known(self) -> Definitions | None:
        """What was looked up last, without a look at whether it is in force still."""
        return self._known

    def seen_by(self, tx: Transaction, at: Epoch | None = None) -> Definitions:
        """The definitions as a transaction sees them: those of now, or those in force at an epoch."""
        generation = control.look(tx).generation
        with self._lock:
            known = self._known
            if known is None or known.generation != generation:
                graph, order = (known.graph, known.order) if known else (Registry(), Registry())
                known = _follow(generation, relations.changed_in(tx), relations.get_all(tx), graph, order)
                self._known = known
        if at is None or at >= known.since:
            return known
        # A definition has changed since that epoch was closed: few epochs come here, and nothing is kept of it.
        return _follow(generation, at, relations.get_all(tx, at), Registry(), Registry())


def _follow(generation: int, since: Epoch, found: list[Relation], graph: Registry, order: Registry) -> Definitions:
    by_id = {each.id: each for each in found}
    return Definitions(generation, since, by_id, graph.follow(_written(by_id)), order.follow(_computed(by_id)))


def _written(by_id: dict[RelationId, Relation]) -> dict[RelationId, tuple[RelationId, ...]]:
    return {
        id_: tuple(dict.fromkeys(each.view.parents)) if each.definition.view else ()
        for id_, each in by_id.items()
        if not each.is_hidden
    }


def _computed(by_id: dict[RelationId, Relation]) -> dict[RelationId, tuple[RelationId, ...]]:
    return {
        id_: tuple(dict.fromkeys(source.relation for source in each.view.inputs)) if each.is_maintained else ()
        for id_, each in by_id.items()
        if each.is_stored
    }

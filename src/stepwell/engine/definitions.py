"""Definitions as the engine needs them: every relation by its number, and the graphs between them.

Read once for each generation of the catalog: an epoch in which no definition changes looks up nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from stepwell.catalog import Transaction, control, relations
from stepwell.engine.runtime import Runtime
from stepwell.graph import Registry
from stepwell.model.relations import Relation, RelationKind
from stepwell.model.views import EmitMode, RelationId
from stepwell.plan.blocks import Block, RowBlock, decode


@dataclass(frozen=True)
class Definitions:
    """All relations of one generation."""

    generation: int
    by_id: dict[RelationId, Relation]
    graph: Registry
    """Who reads whom, as the users have written it."""
    order: Registry
    """Who is computed from whom: stored relations alone, hidden ones too."""

    @cached_property
    def blocks(self) -> dict[RelationId, Block]:
        """The plan of every view."""
        return {id_: decode(each.view.plan) for id_, each in self.by_id.items() if each.is_maintained}

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


def load(runtime: Runtime) -> Definitions:
    """The definitions as they are now."""
    with runtime.catalog.read() as tx:
        return load_in(runtime, tx)


def load_in(runtime: Runtime, tx: Transaction) -> Definitions:
    """The definitions as a transaction sees them."""
    generation = control.look(tx).generation
    known: Definitions | None = runtime.cache.get("definitions")
    if known is None or known.generation != generation:
        by_id = {each.id: each for each in relations.get_all(tx)}
        graph, order = (known.graph, known.order) if known else (Registry(), Registry())
        known = Definitions(generation, by_id, graph.follow(_written(by_id)), order.follow(_computed(by_id)))
        runtime.cache["definitions"] = known
    return known


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

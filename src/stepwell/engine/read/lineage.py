"""Lineage of stored views: from column to column, through parts and plain views, down to the tables."""

from __future__ import annotations

from collections.abc import Iterator

from stepwell.engine.definitions import Definitions
from stepwell.model.relations import Relation
from stepwell.model.views import RelationId
from stepwell.plan.lineage import origins

ColumnOfRelation = tuple[RelationId, str]
"""A relation and one of its columns."""


def parents_of_column(definitions: Definitions, relation: Relation, column: str) -> list[ColumnOfRelation]:
    """The columns that a view's column is made of, in the relations that the view reads."""
    if relation.definition.view is None:
        return []
    found: list[ColumnOfRelation] = []
    for number, name in _origins(definitions, relation, column):
        parent = definitions.by_id[RelationId(number)]
        found.extend(parents_of_column(definitions, parent, name) if parent.is_hidden else [(parent.id, name)])
    return list(dict.fromkeys(found))


def paths(definitions: Definitions, relation: Relation, column: str) -> Iterator[list[ColumnOfRelation]]:
    """Every way from a column down to the columns of tables; the column itself comes first."""
    here: ColumnOfRelation = (relation.id, column)
    parents = parents_of_column(definitions, relation, column)
    if not parents:
        yield [here]
    for id_, name in parents:
        for rest in paths(definitions, definitions.by_id[id_], name):
            yield [here, *rest]


def _origins(definitions: Definitions, relation: Relation, column: str) -> list[tuple[int, str]]:
    if relation.is_maintained:
        return origins(definitions.blocks[relation.id], column)
    known = {name.lower(): found for name, found in relation.view.plan.get("lineage", {}).items()}
    return [(number, name) for number, name in known.get(column.lower(), ())]

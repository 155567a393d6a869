"""Rewriting: a stored definition back to the statement that would make it today."""

from __future__ import annotations

from stepwell.engine.definitions import Definitions
from stepwell.model.create_statement import create_statement
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import RelationId
from stepwell.sql import Composition, find_references
from stepwell.sql.statements import Slice


def create_text(known: Definitions, relation: Relation) -> str:
    """The statement that would create a relation as it is now, with the names that its parents have today."""
    if relation.definition.view is None:
        return create_statement(relation)
    text = relation.view.text
    where = Slice(text, 0, len(text))
    numbers: dict[str, RelationId] = {}
    parents = iter(relation.view.parents)
    replacements: dict[Slice, str] = {}
    for reference in find_references(where):
        name = reference.name.last.lower()
        if name not in numbers:
            numbers[name] = next(parents)
        today = known.name(numbers[name])
        if today.lower() != name:
            alias = "" if reference.aliased else f" AS {quote(reference.name.last)}"
            replacements[reference.slice] = f"{quote(today)}{alias}"
    return create_statement(relation, Composition().add_slice(where, replacements).text)

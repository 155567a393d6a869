"""Naming: what a name in a statement means, and which names are not a user's to take."""

from __future__ import annotations

from stepwell.catalog import Transaction, relations
from stepwell.engine.definitions import load
from stepwell.engine.read.queries import plain_name
from stepwell.engine.read.system import SYSTEM_NAMESPACE
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import ReadOnlyError, ReservedNameError, StepwellError
from stepwell.model.files import HIDDEN_PREFIX
from stepwell.model.relations import Relation
from stepwell.sql.statements import Name


def relation_called(tx: Transaction, name: Name) -> Relation:
    """The relation that a user named, and not a system table."""
    refuse_system(name)
    try:
        return relations.get(tx, plain_name(name))
    except StepwellError as error:
        raise error.at(name.slice.place) from None


def relation_named(runtime: Runtime, name: Name) -> Relation:
    """The same, looked up by itself."""
    with runtime.catalog.read() as tx:
        return relation_called(tx, name)


def user_relations(runtime: Runtime) -> list[Relation]:
    """The tables and views that users have made, parents before children."""
    known = load(runtime)
    return [known.by_id[id_] for id_ in known.graph.order()]


def refuse_system(name: Name) -> None:
    """Fail if a name means a system table, which nobody can change."""
    if is_system(name):
        raise ReadOnlyError(f'system table "{name}" cannot be changed', place=name.slice.place)


def is_system(name: Name) -> bool:
    """Whether a name means a system table."""
    return len(name.parts) > 1 and name.parts[0].lower() == SYSTEM_NAMESPACE


def new_name(name: Name) -> str:
    """A name that a user may give to a relation, without its namespace."""
    if is_system(name):
        raise ReadOnlyError(f'"{name}" would be a system table', place=name.slice.place, hint="Choose another name.")
    if name.last.lower().startswith(HIDDEN_PREFIX):
        raise ReservedNameError(f'names that begin with "{HIDDEN_PREFIX}" are reserved', place=name.slice.place)
    return plain_name(name)

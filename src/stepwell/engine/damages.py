"""Damaged files: whose they are, and what a user can do about them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from stepwell.catalog import relations
from stepwell.engine.definitions import load
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import DataFileError, StepwellError
from stepwell.model.relations import Relation
from stepwell.model.types import quote
from stepwell.model.views import RelationId


@contextmanager
def naming_relations(runtime: Runtime) -> Iterator[None]:
    """Let an error about a file of the warehouse say whose file it is, and what to do."""
    try:
        yield
    except DataFileError as error:
        name_relation(runtime, error)
        raise


def name_relation(runtime: Runtime, error: DataFileError) -> DataFileError:
    """The same error, which says whose file it is."""
    owner = owner_of(runtime, error)
    if owner is not None:
        error.message = error.message.replace(f'"{error.path}"', f'"{error.path}" of {owner.kind} "{owner.name}"')
        if owner.is_maintained:
            error.hint = f"VERIFY {quote(owner.name)} REPAIR builds it anew from what it reads."
        error.path = None  # it is named now
    return error


def owner_of(runtime: Runtime, error: DataFileError) -> Relation | None:
    """The relation that a user knows and that a damaged file belongs to."""
    folder = re.match(re.escape(runtime.warehouse.root) + r"/data/(\d+)/", error.path or "")
    if folder is None:
        return None
    id_ = RelationId(int(folder.group(1)))
    try:
        known = load(runtime)
        with runtime.catalog.read() as tx:
            found = known.by_id.get(id_) or relations.by_id(tx, id_)
    except StepwellError:  # the file is what is told of; the catalog is another matter
        return None
    if found is None or not found.is_hidden:
        return found
    views = [each for each in known.by_id.values() if each.is_maintained and not each.is_hidden]
    return next((each for each in views if found.id in [part.id for part in known.parts_of(each)]), None)

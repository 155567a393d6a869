"""Functions in Python: a view goes on with the version that it was created with."""

from __future__ import annotations

from stepwell.catalog import relations
from stepwell.engine.runtime import Runtime
from stepwell.model.errors import InvalidDefinitionError
from stepwell.model.functions import Function


def register_function(runtime: Runtime, function: Function) -> None:
    """Let queries call a function; fail if a view calls another version of it."""
    with runtime.catalog.read() as tx:
        known = relations.get_all(tx)
    for each in known:
        versions = dict(each.view.functions) if each.definition.view and not each.is_hidden else {}
        if versions.get(function.key, function.version) != function.version:
            raise InvalidDefinitionError(
                f'{each.kind} "{each.name}" was created with version {versions[function.key]} of function '
                f'"{function.name}", and this is version {function.version}',
                hint=f"Register it under another name, or drop {each.name} first.",
                sqlstate="55006",
            )
    runtime.spark.register(function)

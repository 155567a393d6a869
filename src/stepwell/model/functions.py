"""Functions: Python that queries may call, under a name and a version.

A view remembers the versions of the functions in its query. What another version would answer is not what is stored, so
a view is maintained only where the same versions are at hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from stepwell.model.errors import InvalidDefinitionError, ReservedNameError
from stepwell.model.files import HIDDEN_PREFIX


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function of values that gives a value of the type `returns`; the same for the same values, always."""

    name: str
    version: int
    call: Callable[..., Any]
    returns: str = "STRING"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", self.name):
            raise InvalidDefinitionError(f'"{self.name}" cannot be the name of a function', sqlstate="42602")
        if self.name.lower().startswith(HIDDEN_PREFIX):
            raise ReservedNameError(f'names that begin with "{HIDDEN_PREFIX}" are reserved')
        if isinstance(self.version, bool) or not isinstance(self.version, int) or self.version < 1:
            raise InvalidDefinitionError(f'the version of function "{self.name}" must be a number, from 1')
        if not callable(self.call):
            raise InvalidDefinitionError(f'function "{self.name}" cannot be called')

    @property
    def key(self) -> str:
        """The name as it is compared."""
        return self.name.lower()


Versions = tuple[tuple[str, int], ...]
"""Names of functions, in small letters, with their versions."""


def unlike(wanted: Versions, here: Iterable[Function]) -> str | None:
    """What is wrong with the functions that are here, for a view that wants these."""
    known = {each.key: each.version for each in here}
    for name, version in wanted:
        if name not in known:
            return f'function "{name}" is not registered here'
        if known[name] != version:
            return f'function "{name}" is here in version {known[name]}, the view was created with version {version}'
    return None

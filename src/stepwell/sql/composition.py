"""Composition: a text for Spark made of our own words and slices of the user's, from which places lead back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stepwell.model.errors import Place
from stepwell.sql.statements import Slice


class Composition:
    """A text being put together. Slices keep their places, so an error in the whole can point into the source."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._origins: list[tuple[int, int, Slice]] = []
        self._names: dict[str, str] = {}
        self._length = 0

    def add(self, text: str) -> Composition:
        """Words of our own."""
        self._pieces.append(text)
        self._length += len(text)
        return self

    def add_slice(self, text: Slice, replacements: Mapping[Slice, str] | None = None) -> Composition:
        """Words of the user's, with the given stretches of them replaced."""
        inside = sorted(
            (where for where in replacements or {} if text.start <= where.start and where.end <= text.end),
            key=lambda where: where.start,
        )
        at = text.start
        for where in inside:
            self._keep(Slice(text.source, at, where.start))
            replacement = (replacements or {})[where]
            self._names[replacement.split()[0]] = where.text
            self._origins.append((self._length, self._length + len(replacement), where))
            self.add(replacement)
            at = where.end
        self._keep(Slice(text.source, at, text.end))
        return self

    def _keep(self, text: Slice) -> None:
        self._origins.append((self._length, self._length + len(text.text), text))
        self.add(text.text)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def in_users_words(self, message: str) -> str:
        """`message` with the names that were put in replaced by those that the user wrote."""
        for ours, theirs in self._names.items():
            message = theirs.join(re.split(rf"\b{re.escape(ours)}\b", message))
        return message

    def origin(self, start: int, end: int) -> Place | None:
        """Where in the user's text the stretch [start, end) of the whole came from, if it came from there."""
        for begins, ends, where in self._origins:
            if begins <= start < ends:
                if ends - begins != where.end - where.start:
                    return where.place
                first = where.start + start - begins
                return Place(where.source, first, min(first + max(1, end - start), where.end))
        return None

"""Checkpoints: copies of a whole database at one epoch, several of which share the files in one place."""

from __future__ import annotations

import dataclasses
import json
import zlib
from dataclasses import dataclass
from typing import Any

from stepwell.model.epochs import Epoch

CHECKPOINT_FORMAT = 1
"""What this version writes. It reads this one and all before it."""


CatalogRows = dict[str, list[dict[str, Any]]]
"""The rows of a catalog, by table."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint consists of. It is written last: a checkpoint is there if its manifest is.

    The catalog's rows are in the file `catalog`, and name every data file with its size and checksum.
    """

    identity: str
    """Of the database; a restored one has the same."""
    epoch: Epoch
    taken_at: int
    program: str
    revision: str
    """Of the catalog that the rows are of."""
    catalog: str
    catalog_bytes: int
    catalog_checksum: int
    files: int
    bytes: int
    format: int = CHECKPOINT_FORMAT

    def as_text(self) -> str:
        """As it is written: one object, which holds a checksum of itself."""
        body = dataclasses.asdict(self)
        return json.dumps({**body, "checksum": _checksum(body)}, indent=1)

    @staticmethod
    def from_text(text: str) -> Manifest:
        """A manifest as it was written; a ValueError if that cannot be. One of a newer format has its format only."""
        found = json.loads(text)
        if not isinstance(found, dict) or not isinstance(found.get("format"), int):
            raise ValueError("it is no manifest of a checkpoint")
        stated = found.pop("checksum", None)
        if stated != _checksum(found):
            raise ValueError("its checksum is not that of what it says")
        if found["format"] > CHECKPOINT_FORMAT:
            empty: dict[str, Any] = {each.name: 0 for each in dataclasses.fields(Manifest)}
            return Manifest(**{**empty, "format": found["format"], "program": str(found.get("program", ""))})
        return Manifest(**found)


def _checksum(body: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())

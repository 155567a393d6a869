"""Links: every published relation by its name, in the folder `published` of the warehouse, where there are links."""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Mapping

from stepwell.model.files import Store
from stepwell.storage.warehouse import Warehouse

_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EROFS)
_UNFIT = re.compile(r"[/\\\x00]|%[0-9a-fA-F]{2}|^\.")
"""What a file cannot be called, or readers of Delta tables take for something else."""


class PublishedLinks:
    """The links of a warehouse. Object stores have none, and odd names have none: those are found by their path."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._last: Mapping[str, int] | None = None

    def follow(self, names: Mapping[str, int]) -> None:
        """Have a link for each name to the relation of that number, and no others. Each is replaced at once."""
        if not self._warehouse.is_local or names == self._last:
            return
        folder = f"{self._warehouse.root}/published"
        wanted = {name: self._target(id_) for name, id_ in names.items() if is_linked(name)}
        try:
            os.makedirs(folder, exist_ok=True)
            there = {entry: os.readlink(f"{folder}/{entry}") for entry in os.listdir(folder) if _is_link(folder, entry)}
            for name, target in wanted.items():
                if there.get(name) != target:
                    new = f"{folder}/.{uuid.uuid4().hex}"
                    os.symlink(target, new)
                    os.replace(new, f"{folder}/{name}")
            for name in there.keys() - wanted.keys():
                os.unlink(f"{folder}/{name}")
        except FileNotFoundError:
            return  # another process follows the same names at the same time; the next epoch looks again
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        self._last = dict(names)

    def _target(self, id_: int) -> str:
        return os.path.relpath(self._warehouse.folder(id_, Store.ROWS), f"{self._warehouse.root}/published")


def is_linked(name: str) -> bool:
    """Whether a relation of this name has a link where there are links."""
    return not _UNFIT.search(name) and len(os.fsencode(name)) <= 200


def _is_link(folder: str, entry: str) -> bool:
    return os.path.islink(f"{folder}/{entry}")

"""A private folder: what Java is started with lies where nobody else can put it."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path


@cache
def private_folder() -> Path:
    """A folder in the temporary one that only this user can look into and write, the same for all processes.

    Its name can be guessed, so somebody else may have been there first. If it is a link, not ours, or open to others,
    this process gets a folder of its own, which goes when it ends.
    """
    folder = Path(tempfile.gettempdir()) / f"stepwell-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not _is_private(folder):
            folder = Path(tempfile.mkdtemp(prefix="stepwell-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _is_private(folder: Path) -> bool:
    there = folder.lstat()
    return stat.S_ISDIR(there.st_mode) and there.st_uid == os.getuid() and not there.st_mode & 0o077

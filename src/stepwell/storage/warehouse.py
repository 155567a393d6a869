"""The warehouse: folders and files behind one URL. All file access of the driver goes through here."""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import fs

from stepwell.model.errors import WarehouseError, mask
from stepwell.model.files import Store

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file system says of a file: None for the size of one that is not there; the time in nanoseconds."""

    path: str
    size: int | None
    changed_at: int


class Warehouse:
    """A place for data. Relations have folders `data/<id>/rows` and `data/<id>/changes` in it."""

    def __init__(self, url: str) -> None:
        if "://" in url:
            self._files, root = fs.FileSystem.from_uri(url)
        else:
            self._files, root = fs.LocalFileSystem(), os.path.abspath(url)
        self.root = root.rstrip("/")
        self.url = mask(url)
        self.is_local = isinstance(self._files, fs.LocalFileSystem)
        self._prefix = "" if self.is_local else url.split("://")[0] + "://"
        self._lasting: set[str] = set()
        """Folders inside the warehouse whose own entries are known to survive a power cut."""

    def create(self) -> None:
        """Make sure that the warehouse is there and can be written."""
        self._require_delta_can_open()
        made = self._missing_folders()
        probe = f"{self.root}/.probe-{uuid.uuid4().hex}"  # others may be opening it too
        try:
            self._files.create_dir(self.root, recursive=True)
            self._try_to_write(probe)
            for folder in made:
                _fsync(os.path.dirname(folder))
        except OSError as error:
            raise WarehouseError(
                f'the warehouse "{self.url}" cannot be written',
                detail=error.strerror or str(error),
                hint="Choose a folder that you own, or make this one writable.",
            ) from error

    def _try_to_write(self, probe: str) -> None:
        """Fail if nobody may write here. A full disk is no reason: VACUUM frees some of it, and has to be reached."""
        try:
            with self._files.open_output_stream(probe) as stream:
                stream.write(b"stepwell")
        except OSError as error:
            if error.errno not in _FULL or not self.has(probe):
                raise
        self._files.delete_file(probe)

    def _require_delta_can_open(self) -> None:
        # However such a path is spelt, delta-rs writes a log below it in one folder and reads it from another.
        found = re.search(r"%[0-9a-fA-F]{2}|\\", self.root) if self.is_local else None
        if found:
            raise WarehouseError(
                f'a warehouse cannot be at "{self.url}"',
                detail=f'Readers of Delta tables take "{found.group()}" in a path for another sign.',
                hint="Choose a folder without it in its path.",
            )

    def _missing_folders(self) -> list[str]:
        """The folders on the way to the warehouse, itself included, that are not there yet."""
        missing, path = [], self.root
        while self.is_local and path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        return missing

    def exists(self) -> bool:
        return bool(self._files.get_file_info(self.root).type == fs.FileType.Directory)

    def folder(self, relation: int, store: Store) -> str:
        """The folder of a relation's store, as this module's functions take it."""
        return f"{self.root}/data/{relation}/{store.value}"

    def path(self, relation: int, store: Store, path: str) -> str:
        return f"{self.folder(relation, store)}/{path}"

    def uri(self, path: str) -> str:
        """`path` as Spark takes it: a URL whose signs stay as they are. To read it, see `no_pattern`."""
        return f"file://{path}" if self.is_local else self._prefix + path

    def location(self, path: str) -> str:
        """`path` as Delta takes it."""
        return path if self.is_local else self._prefix + path

    def make_folder(self, path: str) -> None:
        self._files.create_dir(path, recursive=True)

    def open_input(self, path: str) -> pa.NativeFile:
        return self._files.open_input_file(path)

    def open_output(self, path: str) -> pa.NativeFile:
        return self._files.open_output_stream(path)

    def size(self, path: str) -> int:
        return int(self._files.get_file_info(path).size)

    def states(self, paths: Sequence[str]) -> list[FileState]:
        """What is known of some files, without a look into them."""
        found = self._files.get_file_info(list(paths))
        is_there = [info.type == fs.FileType.File for info in found]
        return [
            FileState(path, info.size if there else None, info.mtime_ns or 0)
            for path, info, there in zip(paths, found, is_there, strict=True)
        ]

    def has(self, path: str) -> bool:
        return bool(self._files.get_file_info(path).type != fs.FileType.NotFound)

    def sync(self, paths: Iterable[str]) -> None:
        """Make files and the folders that name them survive a power cut; object stores do that by themselves."""
        if not self.is_local:
            return
        folders = set()
        for path in paths:
            _fsync(path)
            folders.add(folder := os.path.dirname(path))
            # Folders made for it are named by the folders above: up to the first that is known to last.
            while folder.startswith(f"{self.root}/") and folder not in self._lasting:
                self._lasting.add(folder)
                folders.add(folder := os.path.dirname(folder))
        try:
            for folder in folders:
                _fsync(folder)
        except OSError:
            self._lasting -= folders
            raise

    def move(self, path: str, to: str) -> None:
        """Give a file another name, in the place of what had it; the folder that names it survives a power cut."""
        self._files.move(path, to)
        if self.is_local:
            _fsync(os.path.dirname(to))

    def delete(self, path: str) -> None:
        """Delete a file; one that is gone already is as good as deleted."""
        try:
            self._files.delete_file(path)
        except FileNotFoundError:
            return

    def delete_folder(self, path: str) -> None:
        self._lasting = {each for each in self._lasting if each != path and not each.startswith(f"{path}/")}
        if self.has(path):
            self._files.delete_dir(path)

    def list(self, folder: str) -> list[str]:
        """Every file below `folder`."""
        selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
        return [info.path for info in self._files.get_file_info(selector) if info.type == fs.FileType.File]

    def modified_at(self, path: str) -> int:
        """When a file was last written, in microseconds since 1970."""
        return int((self._files.get_file_info(path).mtime_ns or 0) // 1000)


def no_pattern(uri: str) -> str:
    """`uri` as Spark's reader takes it, which would read some signs as a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", uri)


def write_failed(path: str, error: OSError) -> WarehouseError:
    """The error for a file that could not be written."""
    full = error.errno in _FULL
    return WarehouseError(
        "the disk is full" if full else f'cannot write "{path}"',
        detail=f'While writing "{path}": {error.strerror or error}. Nothing of the statement was applied.',
        hint="Free some space and run it again; VACUUM removes files that nobody needs any more." if full else None,
        sqlstate="53100" if full else None,
    )


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

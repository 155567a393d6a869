"""Checksums: whether the files of a warehouse are as they were written.

Sizes are compared whenever files are listed for a read. A small file is then read whole and a large one from its tail,
once in a process and again when its size or its time is another; the pages of a large one are checked by whoever reads
them. An object store that is not this machine's checks its own bytes: there only sizes are compared.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from stepwell.model.errors import DataFileError
from stepwell.model.files import Checksum, DataFile
from stepwell.model.limits import Limits
from stepwell.storage.warehouse import FileState, Warehouse

VERIFIED = {"parquet.page.verify-checksum.enabled": "true"}
"""What makes Spark's reader compare the checksums of pages."""


def crc(source: pa.NativeFile, start: int = 0, end: int | None = None) -> int:
    """The CRC-32 of the bytes [start, end) of a file, or of all from `start` on."""
    value, at = 0, start
    end = source.size() if end is None else end
    most = Limits().copied_bytes
    while at < end:
        read = source.read_at(min(most, end - at), at)
        if not read:
            break
        value, at = zlib.crc32(read, value), at + len(read)
    return value


def checksum_of(source: pa.NativeFile, footer: pq.FileMetaData) -> Checksum:
    """The checksum of a Parquet file that was just written."""
    start = 0
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            offsets = (column.dictionary_page_offset, column.data_page_offset)
            begins = min(offset for offset in offsets if offset)
            start = max(start, begins + column.total_compressed_size)
    return Checksum(crc(source), start, crc(source, start))


def require_whole(warehouse: Warehouse, files: Sequence[DataFile]) -> None:
    """Fail if one of these files cannot be what the catalog says."""
    paths = [warehouse.path(file.relation, file.store, file.path) for file in files]
    for file, state in zip(files, warehouse.states(paths), strict=True):
        _require_size(file, state)
        if warehouse.is_local and file.statistics.checksum is not None:
            _require_checksum(warehouse, state, file.statistics.checksum)


def deep_damage(warehouse: Warehouse, file: DataFile) -> DataFileError | None:
    """What is wrong with a file, every byte of which is read; None if nothing is."""
    [state] = warehouse.states([warehouse.path(file.relation, file.store, file.path)])
    try:
        _require_size(file, state)
        with warehouse.open_input(state.path) as source:
            if file.statistics.checksum is None:
                _read_pages(source)
            elif crc(source) != file.statistics.checksum.whole:
                return damaged(state.path, _OTHER_BYTES)
    except DataFileError as error:
        return error
    except (pa.ArrowException, OSError) as error:
        return damaged(state.path, str(error).splitlines()[0])
    return None


_OTHER_BYTES = "Its bytes are not those that were written."


def damaged(path: str, detail: str) -> DataFileError:
    """The error for a file that is not as it was written."""
    error = DataFileError(f'the data file "{path}" is damaged', detail=detail, hint=_HINT)
    error.path = path
    return error


def missing(path: str) -> DataFileError:
    """The error for a file that the catalog knows and the disk does not."""
    detail = "The catalog names it as content; something other than stepwell has removed it."
    error = DataFileError(f'the data file "{path}" is missing', detail=detail, hint=_HINT)
    error.path = path
    return error


_HINT = "Restore it from a checkpoint or another copy, or read an epoch that does not need it."


def _require_size(file: DataFile, state: FileState) -> None:
    if state.size is None:
        raise missing(state.path)
    if state.size != file.statistics.bytes:
        raise damaged(state.path, f"It has {state.size} bytes, and was written with {file.statistics.bytes}.")


@lru_cache(maxsize=65_536)
def _require_checksum(warehouse: Warehouse, state: FileState, checksum: Checksum) -> None:
    """Fail if a file is another than the one that was written. What has passed, passes as long as nobody touches it."""
    is_small = state.size is not None and state.size <= Limits().checked_whole_bytes
    start, expected = (0, checksum.whole) if is_small else (checksum.tail_start, checksum.tail)
    try:
        with warehouse.open_input(state.path) as source:
            found = crc(source, start)
    except OSError as error:
        raise damaged(state.path, str(error).splitlines()[0]) from error
    if found != expected:
        raise damaged(state.path, _OTHER_BYTES)


def _read_pages(source: pa.NativeFile) -> None:
    """Read all that is in a file of a version that kept no checksums of files."""
    parquet = pq.ParquetFile(source, page_checksum_verification=True)
    for group in range(parquet.metadata.num_row_groups):
        parquet.read_row_group(group)


def all_damages(warehouse: Warehouse, files: Iterable[DataFile], *, deep: bool) -> list[DataFileError]:
    """What is wrong with some files: by their sizes and small files' bytes, or by every byte of all."""
    found: list[DataFileError] = []
    for file in files:
        if deep:
            error = deep_damage(warehouse, file)
            found.extend([error] if error is not None else [])
            continue
        try:
            require_whole(warehouse, [file])
        except DataFileError as error:
            found.append(error)
    return found

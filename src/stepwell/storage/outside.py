"""Files of others: found and looked at by the driver, never changed. Their rows are read by Spark."""

from __future__ import annotations

import csv
import fnmatch
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from stepwell.model.errors import DataFileError, UnsupportedError, mask
from stepwell.model.loads import LoadOptions, OutsideFile

_SIGNS = "*?["


def find_files(pattern: str) -> list[OutsideFile]:
    """The files that a path means: one file, all below a folder, or all that match; in the order of their names."""
    files, prefix, path = _opened(pattern)
    base = os.path.dirname(path[: min(path.find(sign) for sign in _SIGNS if sign in path)]) if _is_glob(path) else path
    try:
        info = files.get_file_info(base)
        if info.type == fs.FileType.File:
            found = [info]
        else:
            selector = fs.FileSelector(base, recursive=True, allow_not_found=True)
            found = [each for each in files.get_file_info(selector) if each.type == fs.FileType.File]
    except OSError as error:
        raise DataFileError(f'"{mask(pattern)}" cannot be read', detail=error.strerror or str(error)) from error
    if _is_glob(path):
        found = [each for each in found if _matches(each.path, path)]
    inside = {each.path: each.path[len(base) :].strip("/").split("/") for each in found}
    for each, parts in inside.items():
        if any("=" in part for part in parts[:-1]):
            raise UnsupportedError(
                f'"{mask(pattern)}" is a folder partitioned by values: "{each}"',
                hint="INSERT INTO … SELECT … FROM parquet.`path` reads the columns that are in the names of folders,"
                " after SET allow_external_code = true.",
            )
    visible = [each for each in found if not any(part.startswith(("_", ".")) for part in inside[each.path])]
    if not visible:
        raise DataFileError(f'there is no file at "{mask(pattern)}"', sqlstate="58P01")
    return [OutsideFile(prefix + each.path, each.size) for each in sorted(visible, key=lambda each: str(each.path))]


def parquet_schema(file: OutsideFile) -> tuple[pa.Schema, int]:
    """The columns of a Parquet file, and how many rows it says it has."""
    files, _, path = _opened(file.path)
    try:
        with files.open_input_file(path) as stream:
            footer = pq.ParquetFile(stream)
            return footer.schema_arrow.remove_metadata(), footer.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise DataFileError(f'"{file.path}" is no Parquet file', detail=str(error).splitlines()[0]) from error


def csv_fields(file: OutsideFile, options: LoadOptions, line: str | None = None) -> list[str]:
    """The fields of a line of CSV, by default of the file's first; none if the file is empty."""
    files, _, path = _opened(file.path)
    if line is None:
        try:
            with files.open_input_stream(path) as stream:  # unpacked by the name's ending, as Spark does
                head = stream.read(1 << 20) or b""
            line = head.split(b"\n", 1)[0].decode("utf-8-sig").rstrip("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise DataFileError(f'"{file.path}" cannot be read as CSV', detail=str(error)) from error
    try:
        return next(csv.reader([line], delimiter=options.delimiter, quotechar=options.quote), [])
    except csv.Error as error:
        raise DataFileError(f'"{file.path}" cannot be read as CSV', detail=str(error)) from error


def json_fields(file: OutsideFile) -> list[str]:
    """The names in the first object of a file of JSON, as it spells them; none if that cannot be told."""
    files, _, path = _opened(file.path)
    try:
        with files.open_input_stream(path) as stream:
            head = (stream.read(1 << 20) or b"").decode("utf-8-sig", "ignore").lstrip()
        first, _ = json.JSONDecoder().raw_decode(head)
    except (OSError, ValueError):
        return []  # Spark will say what is wrong with it
    first = first[0] if isinstance(first, list) and first else first
    return list(first) if isinstance(first, dict) else []


def _opened(url: str) -> tuple[fs.FileSystem, str, str]:
    """The file system behind a path or URL, what its paths need in front to be URLs, and the path in it."""
    if "://" not in url:
        return fs.LocalFileSystem(), "", os.path.abspath(os.path.expanduser(url))
    scheme, rest = url.split("://", 1)
    if scheme == "file":
        return fs.LocalFileSystem(), "", rest
    files, path = fs.FileSystem.from_uri(url)
    return files, f"{scheme}://", path


def _is_glob(path: str) -> bool:
    return any(sign in path for sign in _SIGNS)


def _matches(path: str, pattern: str) -> bool:
    """Whether a path matches, folder by folder: a star does not reach across a slash."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))

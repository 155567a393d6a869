"""COPY: a load as a write, once for each label."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stepwell.engine.runtime import Runtime
from stepwell.engine.write.labels import once
from stepwell.engine.write.loading import Loading
from stepwell.engine.write.transactions import Writer
from stepwell.model.loads import Format, LoadOptions
from stepwell.model.rows import Rows
from stepwell.sql.statements import Copy, Name, Slice


def copy_files(runtime: Runtime, writer: Writer, copy: Copy) -> Rows:
    """Load files; a load whose label is known is done already."""
    loading = Loading(runtime, copy)
    done = once(lambda: writer.write(loading), copy.options.label, writer.staged_labels)
    inserted, retracted, epoch = done.tuples()[0]
    notes = list(done.notes)
    if loading.skipped and not notes:
        lines = "1 line" if loading.skipped == 1 else f"{loading.skipped} lines"
        notes.append(f"left out {lines} that could not be read")
    columns = ["inserted", "retracted", "epoch", "files", "skipped"]
    return Rows(columns, [(inserted, retracted, epoch, len(loading.files), loading.skipped)], notes)


def copy_parquet(
    runtime: Runtime, writer: Writer, table: str, paths: Sequence[str | os.PathLike[str]], label: str | None
) -> Rows:
    """Load Parquet files, as a program asks for it."""
    name = Name((table.removeprefix("main."),), Slice(table, 0, len(table)))
    options = LoadOptions(format=Format.PARQUET, label=label)
    return copy_files(runtime, writer, Copy(name, None, tuple(os.fspath(path) for path in paths), options))

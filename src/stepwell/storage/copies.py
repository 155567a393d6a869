"""Copies: what pending changes come to, as plain rows for outside readers. No JVM.

Rows are picked by their identity and version alone, as a reader picks row groups; no value of the user's is looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION, DataFile, NewFile, Store
from stepwell.model.relations import Relation
from stepwell.plan import Content
from stepwell.storage.parquet import read_delta, write_batch
from stepwell.storage.warehouse import Warehouse

_Version = tuple[int, int]


def write_copy(warehouse: Warehouse, relation: Relation, content: Content, path: str) -> list[NewFile]:
    """The rows of a little content as one plain file with the user's columns and no others; nothing is none."""
    rows, row_versions, _ = _read(warehouse, relation, content.rows)
    changes, versions, signs = _read(warehouse, relation, content.changes)
    net: Counter[_Version] = Counter()
    for version, sign in zip(versions, signs, strict=True):
        net[version] += sign
    kept = [net[version] >= 0 for version in row_versions]
    came = []
    for version, sign in zip(versions, signs, strict=True):
        came.append(sign > 0 and net[version] > 0)
        if came[-1]:
            net[version] = 0  # the same row may have come, gone and come again
    whole = pa.concat_tables([_picked(rows, kept), _picked(changes, came)])
    whole = whole.select([column.name for column in relation.columns])
    return [write_batch(warehouse, relation, Store.ROWS, path, whole)] if whole.num_rows else []


def _read(
    warehouse: Warehouse, relation: Relation, files: Sequence[DataFile]
) -> tuple[pa.Table, list[_Version], list[int]]:
    """The rows of some files, with the version and the sign of each."""
    batch = read_delta(warehouse, relation, files)
    ids, numbers, signs = (batch.column(name).to_pylist() for name in (ROW_ID, ROW_VERSION, DIFF))
    # The first version of a row has the number of the row itself.
    versions = [(id_, id_ if number is None else number) for id_, number in zip(ids, numbers, strict=True)]
    return batch, versions, signs


def _picked(batch: pa.Table, mask: list[bool]) -> pa.Table:
    return batch.filter(pa.array(mask, pa.bool_()))

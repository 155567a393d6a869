"""Storage: DataFrames and finished batches to files and back, and Delta logs for everyone else.

A `Warehouse` is the place; `write_batch` and `inspect` make files and know them; `scan_content` and `scan_changes` read
them as the plan says, `small_frame` and `listed_frame` offer what is in memory; `DeltaLogs` publishes; `find_files` and
its neighbours look at files that others have written. What is content at which epoch, only the catalog knows.
"""

from stepwell.storage.checkpoints import CheckpointFolder, copy_file, write_whole
from stepwell.storage.checksums import all_damages, damaged, missing
from stepwell.storage.copies import write_copy
from stepwell.storage.delta import DeltaLogs, log_state
from stepwell.storage.links import PublishedLinks
from stepwell.storage.memory import listed_frame, small_frame
from stepwell.storage.outside import csv_fields, find_files, json_fields, parquet_schema
from stepwell.storage.parquet import (
    TimeReach,
    column_range,
    concatenate,
    inspect,
    leaves,
    read_batch,
    read_delta,
    time_reach,
    write_batch,
)
from stepwell.storage.scans import Narrowing, net_changes, scan_changes, scan_content, scan_delta, scan_files
from stepwell.storage.time_ranges import chunk_number, content_within, is_within, reach_of, touched_times
from stepwell.storage.warehouse import Warehouse, no_pattern, write_failed

__all__ = [
    "CheckpointFolder",
    "DeltaLogs",
    "Narrowing",
    "PublishedLinks",
    "TimeReach",
    "Warehouse",
    "all_damages",
    "chunk_number",
    "column_range",
    "concatenate",
    "content_within",
    "copy_file",
    "csv_fields",
    "damaged",
    "find_files",
    "inspect",
    "is_within",
    "json_fields",
    "leaves",
    "listed_frame",
    "log_state",
    "missing",
    "net_changes",
    "no_pattern",
    "parquet_schema",
    "reach_of",
    "read_batch",
    "read_delta",
    "scan_changes",
    "scan_content",
    "scan_delta",
    "scan_files",
    "small_frame",
    "time_reach",
    "touched_times",
    "write_batch",
    "write_copy",
    "write_failed",
    "write_whole",
]

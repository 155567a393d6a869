"""Loading: files of others into a table, read by Spark and numbered by the order of the files and of the rows in them.

Of a Parquet file the rows know their place, and the files before it are counted by their footers: that is their number.
Rows of text know the block they stand in: a file is read in order, and many files are put in the order of their blocks.
A line of text that cannot be read arrives whole beside the others, where it stops the load or is counted and left out.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import urllib.parse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from stepwell.engine.failures import translated
from stepwell.engine.read.snapshots import Snapshot
from stepwell.engine.runtime import Runtime
from stepwell.engine.write.assignment import arrange, named_columns
from stepwell.engine.write.labels import require_new
from stepwell.engine.write.staging import CountedRows
from stepwell.engine.write.statements import target
from stepwell.engine.write.upsert import stage_insert
from stepwell.model.errors import (
    BadLineError,
    DuplicateNameError,
    InvalidSettingError,
    StepwellError,
    TypeMismatchError,
)
from stepwell.model.files import total
from stepwell.model.loads import Format, OnError, OutsideFile, label_of
from stepwell.model.relations import Column, Relation
from stepwell.model.types import Array, Map, Struct, literal, quote
from stepwell.model.writes import RelationWrite
from stepwell.sql.statements import Copy
from stepwell.storage import csv_fields, find_files, json_fields, no_pattern, parquet_schema
from stepwell.storage.types import to_spark

BAD, FILE, PLACE = "_sw_bad", "_sw_file", "_sw_place"
_PATH = "_metadata.file_path AS _sw_path"
_MARK = "stepwell: line of file"
_SHOWN = 300

_ENDINGS = {
    ".parquet": Format.PARQUET, ".csv": Format.CSV, ".json": Format.JSON, ".jsonl": Format.JSON, ".ndjson": Format.JSON,
}  # fmt: skip


class Loading:
    """A load ready to be staged on a snapshot, and again on a later one if it comes to a conflict."""

    def __init__(self, runtime: Runtime, copy: Copy) -> None:
        self._runtime = runtime
        self._copy = copy
        self.files = [file for path in copy.paths for file in find_files(path)]
        for file, count in Counter(self.files).items():
            if count > 1:
                raise InvalidSettingError(f'"{file.path}" is named twice')
        self.format = copy.options.format or _format_by_names(self.files)
        self.skipped = 0
        """How many lines the last run could not read."""
        if self.format == Format.PARQUET and copy.options.on_error == OnError.SKIP:
            raise InvalidSettingError("on_error is for lines of text: a Parquet file can be read or it cannot")

    def __call__(self, snapshot: Snapshot) -> RelationWrite:
        relation = target(snapshot, self._copy.table)
        options = self._copy.options
        label = label_of(options.label, self.files) if options.label else None
        if label is not None:
            require_new(self._runtime, relation, label)
        columns = None if self._copy.columns is None else named_columns(relation, self._copy.columns)
        with self._runtime.doing(f"loading {len(self.files)} file{'' if len(self.files) == 1 else 's'}"):
            try:
                self._runtime.require_wanted()
                with translated():
                    if self.format == Format.PARQUET:
                        write = self._stage_parquet(snapshot, relation, columns)
                    else:
                        write = self._stage_text(snapshot, relation, columns)
            except StepwellError as error:
                raise self._named(error, relation, columns) from error
        if label is None:
            return write
        return dataclasses.replace(write, labels=(dataclasses.replace(label, rows=total(write.files).inserted),))

    def _stage_parquet(self, snapshot: Snapshot, relation: Relation, columns: list[Column] | None) -> RelationWrite:
        footers = [parquet_schema(file) for file in self.files]
        counts = [rows for _, rows in footers]
        if (statement := self._runtime.running.current) is not None:
            statement.rows = sum(counts)
        frames = []
        for group in _alike([schema.to_string() for schema, _ in footers]):
            first = self.files[group[0]]
            with _naming(first):
                filled = _matched(relation, footers[group[0]][0].names, columns)
            read = self._runtime.spark.session.read
            schema = read.parquet(_uri(first)).schema
            names = {name.lower(): name for name in schema.names}
            values = [quote(names[each.name.lower()]) for each in filled]
            frame = read.schema(schema).parquet(*(_uri(self.files[number]) for number in group))
            frame = self._placed(frame.selectExpr(*values, _PATH, "_metadata.row_index AS _sw_at"), group, counts)
            with _naming(first):
                frames.append(arrange(relation, frame.select(*values, PLACE), filled, beside=[PLACE]))
        numbers = CountedRows(sum(counts), PLACE)
        rows = functools.reduce(DataFrame.unionAll, frames)
        reads = max(self._bytes, sum(counts) * len(relation.columns) * 8)  # files may be packed many times over
        return stage_insert(self._runtime, snapshot, relation, rows, reads=reads, numbers=numbers)

    def _stage_text(self, snapshot: Snapshot, relation: Relation, columns: list[Column] | None) -> RelationWrite:
        full = [number for number, file in enumerate(self.files) if file.size]
        if not full:
            return RelationWrite(relation.id, ())
        shapes = []
        for number in full:
            with _naming(self.files[number]):
                shapes.append(self._text_schema(self.files[number], relation, columns))
        frames = []
        groups = _together([schema.json() for schema, _ in shapes], self._runtime.limits.files_one_by_one)
        for group in groups:
            schema, filled = shapes[group[0]]
            numbers = [full[index] for index in group]
            reader = self._runtime.spark.session.read.schema(schema).options(**self._text_options())
            uris = [_uri(self.files[number]) for number in numbers]
            frame = reader.csv(uris) if self.format == Format.CSV else reader.json(uris)
            values = [quote(each.name) for each in filled]
            block = "_metadata.file_block_start AS _sw_at"
            frame = frame.selectExpr(*values, f"substring({BAD}, 1, {_SHOWN}) AS {BAD}", _PATH, block)
            frame = self._placed(frame, numbers, [file.size for file in self.files])
            frame = frame.withColumn(BAD, F.concat(FILE, F.lit(" "), BAD)).select(*values, BAD, PLACE)
            frames.append(arrange(relation, frame, filled, beside=[BAD, PLACE]))
        rows = functools.reduce(DataFrame.unionAll, frames)
        if len(groups) < len(full):
            rows = self._in_order(rows)
        rows, watch = self._without_bad_lines(rows.drop(PLACE))
        write = stage_insert(self._runtime, snapshot, relation, rows, reads=self._bytes)
        self.skipped = int(watch.get["skipped"] or 0) if watch else 0
        return write

    @property
    def _bytes(self) -> int:
        return sum(file.size for file in self.files)

    def _placed(self, frame: DataFrame, group: Sequence[int], sizes: Sequence[int]) -> DataFrame:
        """Rows of some of the files with their file's number and their place among all; `sizes` are those of files."""
        before = list(itertools.accumulate(sizes, initial=0))
        if len(group) == 1:
            return frame.withColumns({FILE: F.lit(group[0]), PLACE: F.expr(f"{before[group[0]]}L + _sw_at")})
        numbers = {_plain(self.files[number].path): number for number in group}
        known = [
            (name, numbers[_plain(uri)], before[numbers[_plain(uri)]])
            for uri in map(str, frame.inputFiles())
            for name in {uri, re.sub("^file:/+", "file:/", uri)}  # which it is differs from place to place in Spark
        ]
        lost = "raise_error('a file came up that was not asked for: ' || _sw_path)"
        if (
            len(group) <= self._runtime.limits.files_one_by_one
        ):  # comparing numbers with a few is faster than looking up among many
            hashes = [(f"WHEN xxhash64({literal(path)}) THEN", number, first) for path, number, first in known]
            files = " ".join(f"{when} {number}" for when, number, _ in hashes)
            firsts = " ".join(f"{when} {first}L" for when, _, first in hashes)
            place = F.expr(f"_sw_at + CASE xxhash64(_sw_path) {firsts} ELSE {lost} END")
            return frame.withColumns({FILE: F.expr(f"CASE xxhash64(_sw_path) {files} END"), PLACE: place})
        shape = f"_sw_path STRING, {FILE} INT, _sw_before BIGINT"
        places = F.broadcast(self._runtime.spark.session.createDataFrame(known, shape))
        place = F.expr(f"_sw_at + coalesce(_sw_before, {lost})")
        return frame.join(places, "_sw_path", "left").withColumn(PLACE, place)

    def _in_order(self, rows: DataFrame) -> DataFrame:
        """Rows of several files of text, those of each part of the whole together and in order."""
        parallelism = int(self._runtime.spark.session.conf.get("spark.sql.shuffle.partitions") or 2)
        parts = max(parallelism, self._bytes // self._runtime.limits.load_part_bytes)
        part = F.expr(f"CAST({PLACE} * {parts} DIV {self._bytes} AS INT)")
        numbered = rows.withColumn("_sw_row", F.monotonically_increasing_id())
        return numbered.repartitionById(parts, part).sortWithinPartitions(PLACE, "_sw_row").drop("_sw_row")

    def _text_schema(
        self, file: OutsideFile, relation: Relation, columns: list[Column] | None
    ) -> tuple[StructType, list[Column]]:
        """What to read a file of text as, and which of the table's columns that fills."""
        options = self._copy.options
        if self.format == Format.JSON:
            filled = columns or list(relation.columns)
            spelt = {name.lower(): name for name in json_fields(file)}  # Spark takes them by the letter
            names = [spelt.get(each.name.lower(), each.name) for each in filled]
        elif options.header:
            names = csv_fields(file, options)
            filled = _matched(relation, names, columns)
        else:
            filled = columns or list(relation.columns)
            names = [each.name for each in filled]
        by_name = {each.name.lower(): each for each in filled}
        for each in filled if self.format == Format.CSV else ():
            if isinstance(each.type, Array | Map | Struct):
                raise TypeMismatchError(
                    f'CSV cannot hold column "{each.name}", which is {each.type}', hint="Load it from JSON or Parquet."
                )
        fields = []
        for name in names:
            column = by_name.get(name.lower())
            fields.append(StructField(name, to_spark(column.type) if column else StringType()))
        return StructType([*fields, StructField(BAD, StringType())]), filled

    def _text_options(self) -> dict[str, str]:
        options = self._copy.options
        common = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD, "multiLine": str(options.multiline).lower()}
        if self.format == Format.JSON:
            return common
        return common | {
            "header": str(options.header).lower(),
            "sep": options.delimiter,
            "quote": options.quote,
            "escape": options.quote,
            "nullValue": options.null,
        }

    def _without_bad_lines(self, rows: DataFrame) -> tuple[DataFrame, Observation | None]:
        """Stop at a line that cannot be read, or leave it out and let it be counted."""
        if BAD not in rows.columns:
            return rows, None
        if self._copy.options.on_error == OnError.SKIP:
            watch = Observation()
            rows = rows.observe(watch, F.count_if(F.col(BAD).isNotNull()).alias("skipped"))
            return rows.where(f"nvl2({BAD}, false, true)").drop(BAD), watch
        stop = f"IF({BAD} IS NULL, true, CAST(raise_error(concat('{_MARK} ', {BAD})) AS BOOLEAN))"
        return rows.where(stop).drop(BAD), None

    def _named(self, error: StepwellError, relation: Relation, columns: list[Column] | None) -> StepwellError:
        """An error of a line that could not be read, by its file and number; any other as it is."""
        found = re.search(rf"{_MARK} (\d+) (.*)", error.message, re.DOTALL)
        if found is None:
            return error
        file, text = self.files[int(found.group(1))], found.group(2)
        with translated():
            number = _line_number(self._runtime, file, text)
        why = "A value does not fit its column."
        if self.format == Format.JSON:
            why = "It is no JSON object whose values fit their columns."
        elif len(text) < _SHOWN and not self._copy.options.multiline:
            schema, _ = self._text_schema(file, relation, columns)
            values, expected = len(csv_fields(file, self._copy.options, text)), len(schema.fields) - 1
            if values != expected:
                why = f"It has {values} value{'' if values == 1 else 's'}, and there are {expected} columns."
        return BadLineError(
            f'line {number} of "{file.path}" cannot be read',
            detail=f"{text.split(chr(10), 1)[0]}\n{why} Nothing was loaded.",
            hint="Mend the file, or leave such lines out with (ON_ERROR skip).",
        )


def _together(shapes: Sequence[str], few: int) -> list[list[int]]:
    """Which files to read together: up to `few` one by one, in their order; of many, all those of one shape."""
    if len(shapes) <= few:
        return [[number] for number in range(len(shapes))]
    return _alike(shapes)


def _alike(shapes: Sequence[str]) -> list[list[int]]:
    """The numbers of those of one shape, shape by shape."""
    groups: dict[str, list[int]] = {}
    for number, shape in enumerate(shapes):
        groups.setdefault(shape, []).append(number)
    return list(groups.values())


def _matched(relation: Relation, names: Sequence[str], columns: list[Column] | None) -> list[Column]:
    """The table's columns that these names fill; of a list the user gave, all must be there and others may."""
    lowered = [name.lower() for name in names]
    for name in names:
        if lowered.count(name.lower()) > 1:
            raise DuplicateNameError(f'column "{name}" is there twice', sqlstate="42701")
    if columns is None:
        return [relation.column(name) for name in names]
    for column in columns:
        if column.name.lower() not in lowered:
            raise TypeMismatchError(f'there is no column "{column.name}"', sqlstate="42703")
    return [column for column in columns if column.name.lower() in lowered]


def _line_number(runtime: Runtime, file: OutsideFile, text: str) -> int:
    """Where a line stands in a file, counted from 1."""
    lines = runtime.spark.session.read.text(_uri(file)).withColumn("n", F.monotonically_increasing_id())
    first = text.split("\n", 1)[0]
    same = F.col("value") == first if len(text) < _SHOWN else F.col("value").startswith(first)
    at = lines.where(same).agg(F.min("n")).collect()[0][0]
    return 1 + (lines.where(F.col("n") < at).count() if at is not None else 0)


@contextmanager
def _naming(file: OutsideFile) -> Iterator[None]:
    """Let errors inside the block say which file they are about."""
    try:
        yield
    except StepwellError as error:
        error.detail = f'In "{file.path}".' + (f" {error.detail}" if error.detail else "")
        raise


def _format_by_names(files: Sequence[OutsideFile]) -> Format:
    formats = {_format_by_name(file): file for file in files}
    if len(formats) > 1:
        paths = " and ".join(f'"{file.path}"' for file in formats.values())
        raise InvalidSettingError("these files are of several formats", detail=paths, hint="Load one after the other.")
    return next(iter(formats))


def _format_by_name(file: OutsideFile) -> Format:
    name = PurePosixPath(file.path)
    ending = PurePosixPath(name.stem).suffix if name.suffix in (".gz", ".zst", ".bz2") else name.suffix
    if ending.lower() not in _ENDINGS:
        raise InvalidSettingError(
            f'the format of "{file.path}" is not told by its name', hint="Say it: (FORMAT csv), parquet or json."
        )
    return _ENDINGS[ending.lower()]


def _uri(file: OutsideFile) -> str:
    """A file as Spark's reader takes it."""
    return no_pattern(file.path if "://" in file.path else f"file://{file.path}")


def _plain(uri: str) -> str:
    """A path or URI as one writes it: Spark's have some signs as numbers, and its slashes in front vary."""
    if ":" not in uri.split("/", 1)[0]:
        return uri
    scheme, rest = urllib.parse.unquote(uri).split(":", 1)
    return f"/{rest.lstrip('/')}" if scheme == "file" else f"{scheme}:/{rest.lstrip('/')}"

"""Lineage: which columns a column's values are made of. What only decides whether a row is there is no part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from stepwell.model.views import placeholder
from stepwell.plan.blocks import Block, Group, Partitioned, Rows, Select, Source, UnionAll, Whole
from stepwell.sql.structure import structure_of

Origin = tuple[int, str]
"""A relation and one of its columns."""

Columns = Mapping[int, tuple[str, ...]]
"""The columns of each relation that a block reads."""


def origins(block: Block, name: str, columns: Columns) -> list[Origin]:
    """The columns of the relations a block reads that one of its outputs is made of, each once."""
    return list(dict.fromkeys(_of_block(block, name, columns)))


def _of_block(block: Block, name: str, columns: Columns) -> Iterator[Origin]:
    index = [each.lower() for each in block.names].index(name.lower())
    match block:
        case Select() | UnionAll():
            yield from _of_rows(block, index, columns)
        case Group():
            for column in _columns_in(block.items[index]):
                if column.name.startswith("_sw_r"):
                    aggregate = block.aggregates[int(column.name.removeprefix("_sw_r"))]
                    for argument in aggregate.arguments:
                        yield from _of_rows(block.rows, block.rows.names.index(argument), columns)
                else:
                    yield from _of_rows(block.rows, block.rows.names.index(column.name), columns)
        case Partitioned():
            for column in _columns_in(block.items[index]):
                if column.name in block.rows.names:
                    yield from _of_rows(block.rows, block.rows.names.index(column.name), columns)
        case Whole():
            yield from _of_text(block, index, columns)


def _of_rows(rows: Rows, index: int, columns: Columns) -> Iterator[Origin]:
    if isinstance(rows, UnionAll):
        for branch in rows.branches:
            yield from _of_rows(branch, index, columns)
        return
    for column in _columns_in(rows.items[index]):
        for source in rows.sources:
            if column.table and column.table.lower() != source.alias.lower():
                continue
            found = _of_source(source, column.name, columns)
            if found is not None:
                yield from found
                break
        else:
            yield from _of_lateral(rows, columns)


def _of_source(source: Source, name: str, columns: Columns) -> list[Origin] | None:
    """What a column of a source is made of, or None if it has no such column."""
    if isinstance(source.input, int):
        known = next((each for each in columns[source.input] if each.lower() == name.lower()), None)
        return [(source.input, known)] if known else None
    names = [each.lower() for each in source.input.names]
    return list(_of_rows(source.input, names.index(name.lower()), columns)) if name.lower() in names else None


def _of_lateral(rows: Select, columns: Columns) -> Iterator[Origin]:
    """A column that LATERAL VIEW makes: of whatever its function is given."""
    tree = structure_of(f"SELECT 1 FROM t {rows.laterals}")
    for lateral in tree.find_all(exp.Lateral):
        for column in lateral.this.find_all(exp.Column):
            for source in rows.sources:
                yield from _of_source(source, column.name, columns) or ()


def _of_text(block: Whole, index: int, columns: Columns) -> Iterator[Origin]:
    """A text without a plan: the columns that the output names, wherever a relation it reads has them."""
    try:
        tree = structure_of(block.text)
    except SqlglotError:
        return
    select = tree if isinstance(tree, exp.Select) else tree.find(exp.Select)
    read = {number: names for number, names in columns.items() if placeholder(number) in block.text}
    items = select.expressions if select is not None else []
    item = items[index] if len(items) == len(block.names) else tree
    for column in item.find_all(exp.Column):
        for number, names in read.items():
            yield from ((number, each) for each in names if each.lower() == column.name.lower())


def _columns_in(text: str) -> list[exp.Column]:
    return list(structure_of(text).find_all(exp.Column))

"""StoredRows: rows as they are stored, and what is left when rows that came and rows that went are added up.

    net(Δ)          each version once, with the sum of its signs, where that is not 0
    new − old       net(+new ∪ −old)

A version can come or go once: a sum beyond 1 is a fault of a rule, and stops the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepwell.algebra.expressions import (
    AggregateCall,
    Attribute,
    Expression,
    cast,
    checked,
    compare,
    either,
    fingerprint_of,
    negated,
    number,
)
from stepwell.algebra.nodes import Aggregate, Filter, Fresh, Item, Join, JoinKind, Node, Project, Union, passed
from stepwell.model.relations import Column
from stepwell.rules.blocks import RowBlock
from stepwell.rules.identity import Identified
from stepwell.rules.programs import StoredRows

MULTIPLE = "stepwell: a row has a multiplicity of more than one"


def versioned(columns: Sequence[Column], values: Sequence[Expression], rows: Identified, fresh: Fresh) -> StoredRows:
    """Rows in the types in which they are stored, each with its version."""
    items = [Item(fresh.column(str(c.type)), cast(v, str(c.type))) for c, v in zip(columns, values, strict=True)]
    shown = tuple(item.column for item in items)
    typed = Project((*items, *passed(rows.hidden)), rows.tree)
    version = fresh.column("BIGINT", nullable=False)
    tree = Project((*passed(typed.output), Item(version, fingerprint_of(shown, rows.id))), typed)
    return StoredRows(tree, shown, rows.id, version, rows.sign)


def signed(rows: StoredRows, sign: int, fresh: Fresh) -> StoredRows:
    """Rows that all come, or all go."""
    column = fresh.column("BIGINT", nullable=False)
    tree = Project((*passed(rows.all), Item(column, number(sign))), rows.tree)
    return StoredRows(tree, rows.columns, rows.id, rows.version, column)


def consolidated(change: StoredRows, fresh: Fresh) -> StoredRows:
    """net(Δ)."""
    assert change.sign is not None
    net = _net((change.id, change.version), change.columns, change.sign, change.tree, fresh)
    return StoredRows(net.tree, net.values, net.keys[0], net.keys[1], net.sign)


def difference(new: StoredRows, old: StoredRows, fresh: Fresh) -> StoredRows:
    """new − old."""
    both = signed(new, 1, fresh), signed(old, -1, fresh)
    columns = tuple(fresh.like(each) for each in both[0].all)
    children = tuple(Project(passed(each.all), each.tree) for each in both)
    *shown, id_, version, sign = columns
    return consolidated(StoredRows(Union(columns, children), tuple(shown), id_, version, sign), fresh)


def netted(rows: RowBlock, change: Identified, fresh: Fresh) -> Identified:
    """net(Δ) of rows that a block reads, which are told apart by their identity and by what they are."""
    assert change.sign is not None
    value = fresh.column("BIGINT", nullable=False)
    known = tuple(dict.fromkeys(rows.columns))
    tree = Project((*passed((*known, *change.hidden)), Item(value, fingerprint_of(rows.columns))), change.tree)
    net = _net((change.id, value), known, change.sign, tree, fresh)
    back = tuple(Item(own, made) for own, made in zip(known, net.values, strict=True))
    return Identified(Project((*back, *passed((net.keys[0], net.sign))), net.tree), net.keys[0], net.sign)


@dataclass(frozen=True, slots=True)
class _Net:
    tree: Node
    keys: tuple[Attribute, ...]
    values: tuple[Attribute, ...]
    sign: Attribute


def _net(keys: tuple[Attribute, ...], values: tuple[Attribute, ...], sign: Attribute, tree: Node, fresh: Fresh) -> _Net:
    """Signed rows by keys that say all of them; of equal rows, one stands for the others."""
    shown = [Item(fresh.like(each), each) for each in keys]
    held = [Item(fresh.like(each), AggregateCall("AnyValue", (each,), each.type)) for each in values]
    total = fresh.column("BIGINT")
    added = Aggregate(keys, (*shown, *held, Item(total, AggregateCall("Sum", (sign,), "BIGINT"))), tree)
    left = Filter(negated(compare("EqualTo", total, number(0))), added)
    wrong = either(compare("GreaterThan", total, number(1)), compare("LessThan", total, number(-1)))
    net = fresh.column("BIGINT", nullable=False)
    columns = (*(item.column for item in shown), *(item.column for item in held))
    made = Project((*passed(columns), Item(net, checked(total, wrong, MULTIPLE))), left)
    return _Net(made, columns[: len(keys)], columns[len(keys) :], net)


def among(rows: StoredRows, ids: Node, id_: Attribute) -> StoredRows:
    """Those rows whose identity is among some."""
    condition = compare("EqualTo", rows.id, id_)
    return StoredRows(Join(JoinKind.SEMI, rows.tree, ids, condition), rows.columns, rows.id, rows.version, rows.sign)


__all__ = ["among", "consolidated", "difference", "netted", "signed", "versioned"]

"""Lateness: changes that come too late for a view are kept in a ledger instead of being applied.

    Δ counts                σ(not late) Δ
    ledger.after            ledger.before + σ(late) Δ, signed
    rows count              rows − net(ledger): without those that came late, and with those that went late

Rows are judged where a view reads them, each by its window. A change and its opposite in the ledger are nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stepwell.algebra.expressions import (
    FALSE,
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Literal,
    and_all,
    cast,
    compare,
    equal,
    fingerprint_of,
    is_true,
    negated,
    number,
)
from stepwell.algebra.nodes import Aggregate, Filter, Fresh, Item, Join, JoinKind, Node, Project, Scan, Union, passed
from stepwell.model.files import ROW_ID, ROW_VERSION
from stepwell.model.relations import Column
from stepwell.model.types import BIGINT, DATE, INTEGERS, TIMESTAMP_NTZ, parse_type
from stepwell.model.watermarks import FOREVER, NEVER
from stepwell.rules.blocks import LEAF, RowBlock
from stepwell.rules.deltas import Deltas
from stepwell.rules.identity import Identified
from stepwell.rules.programs import LATE, LEDGER, Output, Program, Target

SOURCE, HASH, SIGN, AT = "_sw_source", "_sw_hash", "_sw_sign", "_sw_at"
"""Of an entry in a ledger: the row's identity, what it says, whether it came or went, and in which epoch."""

_DAY = 86_400_000_000

ENTRY = tuple(Column(name, BIGINT, nullable=False) for name in (SOURCE, HASH, SIGN, AT))


def is_before(column: Expression, mark: int) -> Expression:
    """Whether a value of event time lies before a moment."""
    if mark == NEVER:
        return FALSE
    if mark == FOREVER:
        return Call("IsNotNull", (column,), "BOOLEAN", nullable=False)
    type_ = parse_type(column.type)
    if type_ in INTEGERS:
        return compare("LessThan", column, number(mark))
    # whatever zone the session is in: a day and a time without a zone count as those of UTC
    text = f"timestamp_micros({mark}L)"
    if type_ == DATE:
        text = f"date_from_unix_date({-(-mark // _DAY)})"
    elif type_ == TIMESTAMP_NTZ:
        text = f"timestampadd(MICROSECOND, {mark}L, TIMESTAMP_NTZ '1970-01-01 00:00:00')"
    return compare("LessThan", column, Literal(text, column.type))


@dataclass(frozen=True, slots=True)
class Ledger:
    """What judges the rows of a view: late is what lies before `bound` in `column`, one of the rows that it reads.

    `has_old` says whether anything came late before this epoch, `has_new` whether anything does in it.
    """

    column: str
    bound: int
    has_old: bool
    has_new: bool

    def kept(self, rows: RowBlock, delta: Identified) -> Identified:
        """The rows of a change that count."""
        if not self.has_new:
            return delta
        late = is_true(is_before(_column(rows, self.column), self.bound))
        return replace(delta, tree=Filter(negated(late), delta.tree))

    def counted(self, rows: RowBlock, there: Identified, *, after: bool, fresh: Fresh) -> Identified:
        """Of all rows, before the epoch or after it, those that count."""
        names = [*([LEDGER] if self.has_old else []), *([LATE] if self.has_new and after else [])]
        if not names:
            return there
        columns = tuple(dict.fromkeys(rows.columns))
        own = [rows.names[rows.columns.index(each)] for each in columns]
        came, went = (_net(columns, own, names, fresh) for _ in range(2))
        time = _column(rows, self.column)
        theirs = came.values[columns.index(time)]
        condition = and_all([compare("EqualTo", there.id, came.source), equal(time, theirs)])
        first = Filter(compare("GreaterThan", came.sign, number(0)), came.tree)
        stay: Node = Join(JoinKind.ANTI, there.tree, first, condition)
        back = Filter(compare("LessThan", went.sign, number(0)), went.tree)
        id_ = fresh.column("BIGINT", nullable=False)
        united = Union(
            (*columns, id_),
            (Project(passed((*columns, there.id)), stay), Project(passed((*went.values, went.source)), back)),
        )
        return Identified(united, id_)


def entries(
    ledger: Sequence[Column], rows: RowBlock, widened: RowBlock, judge: Ledger, changed: frozenset[int], epoch: int
) -> Program:
    """What the ledger has to take up of a change. `widened` are the rows with the columns of what they come from."""
    fresh = Fresh(widened.tree)
    delta = Deltas(changed, fresh).of(widened.tree)
    assert delta is not None
    assert delta.sign is not None
    late = Filter(is_true(is_before(_column(widened, judge.column), judge.bound)), delta.tree)
    hash_ = fresh.column("BIGINT", nullable=False)
    known = tuple(dict.fromkeys(widened.columns))
    hashed = Project((*passed((*known, *delta.hidden)), Item(hash_, fingerprint_of(rows.columns))), late)
    keys = (delta.id, hash_)
    source, says = (Item(fresh.like(each), each) for each in keys)
    held = {name: Item(fresh.like(each), AggregateCall("AnyValue", (each,), each.type))
            for name, each in zip(widened.names, widened.columns, strict=True)}  # fmt: skip
    total = Item(fresh.column("BIGINT"), AggregateCall("Sum", (delta.sign,), "BIGINT"))
    net = Filter(
        negated(compare("EqualTo", total.column, number(0))),
        Aggregate(keys, (source, says, *held.values(), total), hashed),
    )
    at = Item(fresh.column("BIGINT", nullable=False), number(epoch))
    hidden = {SOURCE: source.column, HASH: says.column, SIGN: total.column, AT: at.column}
    tree = Project((*passed(net.output), at), net)
    values: dict[str, Expression] = {**{name: item.column for name, item in held.items()}, **hidden}
    outputs = [(cast(values[each.name], str(each.type)), each.name) for each in ledger]
    identity = fingerprint_of((), *hidden.values())
    return Program(tree, (Output(Target.LEDGER, (*outputs, (identity, ROW_ID), (identity, ROW_VERSION))),))


@dataclass(frozen=True, slots=True)
class _Net:
    tree: Node
    values: tuple[Attribute, ...]
    source: Attribute
    sign: Attribute


def _net(columns: Sequence[Attribute], names: Sequence[str], ledgers: Sequence[str], fresh: Fresh) -> _Net:
    """What came and went late, added up."""
    shown = tuple(fresh.like(each) for each in columns)
    source, hash_, sign = (fresh.column("BIGINT", nullable=False) for _ in range(3))
    all_ = (*shown, source, hash_, sign)
    scans: list[Node] = []
    for ledger in ledgers:
        own = tuple(fresh.like(each) for each in all_)
        scans.append(Scan(LEAF, own, (*names, SOURCE, HASH, SIGN), cut=ledger))
    keys = Item(fresh.like(source), source), Item(fresh.like(hash_), hash_)
    held = [Item(fresh.like(each), AggregateCall("AnyValue", (each,), each.type)) for each in shown]
    total = Item(fresh.column("BIGINT"), AggregateCall("Sum", (sign,), "BIGINT"))
    added = Aggregate((source, hash_), (*keys, *held, total), Union(all_, tuple(scans)))
    tree = Filter(negated(compare("EqualTo", total.column, number(0))), added)
    return _Net(tree, tuple(item.column for item in held), keys[0].column, total.column)


def _column(rows: RowBlock, name: str) -> Attribute:
    return rows.columns[rows.names.index(name)]

"""Programs: what a rule returns. A tree, and which of its rows are the changes of a view, its state and its ledger.

Beside the relations that a view reads, at their moments, a program reads what is stored of the view itself, and steps:
trees that are computed once, before it, and are read under their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from stepwell.algebra.aggregates import GroupResult
from stepwell.algebra.expressions import Attribute, Expression
from stepwell.algebra.nodes import Distinct, Fresh, Item, Join, Node, Project, Scan
from stepwell.algebra.states import StateParts
from stepwell.model.files import DIFF, ROW_ID, ROW_VERSION
from stepwell.model.relations import Column
from stepwell.rules.blocks import LEAF, GroupBlock, RowBlock, WindowBlock
from stepwell.rules.identity import Identified

OWN, STATE, LEDGER, LATE = "_sw_own", "_sw_kept", "_sw_ledger", "_sw_late"
"""What a view holds, its state and its ledger, all as they were before the epoch; and what came late in it."""

KEYS, PARTIAL, WHOLE = "_sw_touched", "_sw_partial", "_sw_whole"
"""Steps: the keys that a change touches, the partial states of its groups, the rows of a query computed as a whole."""


class Target(StrEnum):
    """What an output of a program changes."""

    ROWS = "rows"
    STATE = "state"
    LEDGER = "ledger"


@dataclass(frozen=True, slots=True)
class Output:
    """One change that a program makes: columns of its rows under their names, of those rows where `when` holds."""

    target: Target
    columns: tuple[tuple[Expression, str], ...]
    when: Attribute | None = None
    fresh: bool = False
    """Whether it is nothing but rows that never were there before."""


@dataclass(frozen=True, slots=True)
class Program:
    """The change of a block."""

    tree: Node
    outputs: tuple[Output, ...]

    def lowered(self, results: Sequence[GroupResult] = ()) -> Program:
        """The program with the states of aggregates as the columns in which they are stored."""
        parts = StateParts(results, self.tree)
        tree = parts.node(self.tree)
        outputs = tuple(replace(each, columns=parts.outputs(each.columns)) for each in self.outputs)
        return Program(tree, outputs)


@dataclass(frozen=True, slots=True)
class ComputedStep:
    """A tree that is computed once and read under a name."""

    name: str
    tree: Node
    names: tuple[str, ...]


class Cutting(Protocol):
    """What reads less of a tree where only rows that meet a small one can matter."""

    def partner(self, join: Join, side: Node, by: Identified, tree: Identified) -> Identified:
        """`tree`, rows of one side of a join, less those that cannot meet `by`, rows of the other side."""
        ...

    def meeting(self, tree: Node, pairs: Sequence[tuple[Attribute, Attribute]], by: Scan) -> Node:
        """A tree less rows that cannot have their columns among those of a step, NULLs being keys like any other."""
        ...

    def compute(self, step: ComputedStep) -> None:
        """Have a step computed before what follows."""
        ...


class NoCutting:
    """Reads everything; the steps are there to be taken."""

    def __init__(self) -> None:
        self.steps: list[ComputedStep] = []

    def partner(self, join: Join, side: Node, by: Identified, tree: Identified) -> Identified:
        return tree

    def meeting(self, tree: Node, pairs: Sequence[tuple[Attribute, Attribute]], by: Scan) -> Node:
        return tree

    def compute(self, step: ComputedStep) -> None:
        self.steps.append(step)


class Judging(Protocol):
    """What comes too late for a view and does not count: see `rules.lateness`."""

    def kept(self, rows: RowBlock, delta: Identified) -> Identified: ...

    def counted(self, rows: RowBlock, there: Identified, *, after: bool, fresh: Fresh) -> Identified: ...


@dataclass(frozen=True)
class Occasion:
    """What a rule is told of an epoch and of a view."""

    columns: tuple[Column, ...]
    """Those of the view, in the types in which they are stored."""
    changed: AbstractSet[int]
    fresh: Fresh
    cutting: Cutting = field(default_factory=NoCutting)
    late: Judging | None = None
    brings: bool = False
    """Whether the change is of sources, and takes none of their rows away."""
    looks_first: bool = False
    """Whether so much is stored of what is read that the touched keys are computed before it is read."""
    bounds_state: bool = False
    """Whether the state is so large that it is read by the keys of the partial states."""
    has_state: bool = True
    """Whether any state is stored yet."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows as they are stored: columns in their types, an identity, the fingerprint of what the row is, and a sign."""

    tree: Node
    columns: tuple[Attribute, ...]
    id: Attribute
    version: Attribute
    sign: Attribute | None = None

    @property
    def all(self) -> tuple[Attribute, ...]:
        return (*self.columns, self.id, self.version, *((self.sign,) if self.sign is not None else ()))

    def output(self, names: Sequence[str], *, fresh: bool = False) -> Output:
        """The rows as the change of a view."""
        assert self.sign is not None
        hidden = ((self.id, ROW_ID), (self.version, ROW_VERSION), (self.sign, DIFF))
        return Output(Target.ROWS, (*zip(self.columns, names, strict=True), *hidden), fresh=fresh)


def own_rows(columns: Sequence[Column], fresh: Fresh) -> StoredRows:
    """What is stored of a view."""
    shown = tuple(fresh.column(str(each.type)) for each in columns)
    id_, version = (fresh.column("BIGINT", nullable=False) for _ in range(2))
    names = (*(each.name for each in columns), ROW_VERSION)
    return StoredRows(Scan(LEAF, (*shown, version), names, identity=id_, cut=OWN), shown, id_, version)


def keys_of(block: GroupBlock | WindowBlock) -> tuple[Attribute, ...]:
    """The columns of a block's rows that tell its groups or partitions apart."""
    return block.rows.columns[: block.keys]


def key_names(block: GroupBlock | WindowBlock) -> tuple[str, ...]:
    return tuple(f"_sw_g{index}" for index in range(block.keys))


def touched_keys(block: GroupBlock | WindowBlock, delta: Identified, occasion: Occasion) -> Node:
    """The keys of a change, each once, under new numbers; a step of their own where much is read for them."""
    fresh = occasion.fresh
    keys = Distinct(Project(tuple(Item(fresh.like(each), each) for each in keys_of(block)), delta.tree))
    if not occasion.looks_first:
        return keys
    occasion.cutting.compute(ComputedStep(KEYS, keys, key_names(block)))
    return Scan(LEAF, tuple(fresh.like(each) for each in keys.output), key_names(block), cut=KEYS)

"""Programs: which of a block's rules makes the change, given the step that was chosen for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from stepwell.algebra.expressions import Expression
from stepwell.algebra.nodes import Filter, Node
from stepwell.algebra.printing import print_outputs
from stepwell.model.files import ROW_VERSION
from stepwell.plan.steps import Rule, Step
from stepwell.rules.blocks import Block, GroupBlock, RowBlock, WindowBlock
from stepwell.rules.fold import fold
from stepwell.rules.groups import has_states
from stepwell.rules.partitions import touched_partitions
from stepwell.rules.programs import Occasion, Output, Program, Target
from stepwell.rules.recompute import build, recompute
from stepwell.rules.row_changes import row_changes
from stepwell.rules.touched_groups import all_states, touched_groups, touched_states


def programs_for(block: Block, step: Step, occasion: Occasion, *, exact: bool = False) -> tuple[Program, ...]:
    """What to run for a step: one program, or two where rows and state are computed each by itself.

    One that is `exact` takes values that a fold cannot add, and computes what it touches anew.
    """
    if not isinstance(block, GroupBlock) or not has_states(block):
        return (_stateless(block, step.rule, occasion),)
    match step.rule:
        case Rule.FOLD if not exact:
            made = fold(block, occasion, loses=step.loses)
        case Rule.FOLD | Rule.TOUCHED_GROUPS:
            made = touched_states(block, occasion, exact=exact)
        case _:
            made = all_states(block, occasion, exact=exact)
    if not step.is_detached:
        return (made,)
    states = tuple(each for each in made.outputs if each.target == Target.STATE)
    return recompute(block, occasion), replace(made, outputs=states)


def _stateless(block: Block, rule: Rule, occasion: Occasion) -> Program:
    match rule:
        case Rule.BUILD:
            return build(block, occasion)
        case Rule.RECOMPUTE:
            return recompute(block, occasion)
        case Rule.APPLY | Rule.JOIN | Rule.TOUCHED_ROWS:
            assert isinstance(block, RowBlock)
            return row_changes(block, occasion)
        case Rule.TOUCHED_GROUPS | Rule.FOLD:
            assert isinstance(block, GroupBlock)
            return touched_groups(block, occasion)
        case Rule.TOUCHED_PARTITIONS:
            assert isinstance(block, WindowBlock)
            return touched_partitions(block, occasion)
        case Rule.EMIT:
            raise AssertionError("what is emitted has programs of its own")
        case _:
            assert_never(rule)


_OWN_OF_EACH = (ROW_VERSION,)
"""Columns that every output has for itself; identity and sign are the same for all of a program's."""

FLAG = "_sw_in_"
"""Before the name of a target: whether a row belongs to its change."""


def lowered(program: Program, block: Block) -> Program:
    """The program with the states of a block as the columns in which they are stored."""
    return program.lowered(block.results) if isinstance(block, GroupBlock) else program


def printed(program: Program) -> str:
    """The SQL of a lowered program: the columns of its outputs, and flags where it has several."""
    if len(program.outputs) == 1:
        (output,) = program.outputs
        return print_outputs(_where(program.tree, output), output.columns)
    named = {name: each for output in program.outputs for each, name in _columns(output)}
    flags = [(each.when, f"{FLAG}{each.target}") for each in program.outputs if each.when is not None]
    return print_outputs(program.tree, [*((each, name) for name, each in named.items()), *flags])


def _where(tree: Node, output: Output) -> Node:
    return tree if output.when is None else Filter(output.when, tree)


def stored_name(output: Output, name: str) -> str:
    """The name of an output's column in the text of a program, where several outputs have one of this name."""
    return f"_sw_{output.target}{name.removeprefix('_sw')}" if name in _OWN_OF_EACH else name


def _columns(output: Output) -> Sequence[tuple[Expression, str]]:
    return [(each, stored_name(output, name)) for each, name in output.columns]

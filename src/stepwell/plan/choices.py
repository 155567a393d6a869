"""Choices: the rules that may follow a change of a view, in the order in which they are tried, each with its condition.

Which of them it is depends on what has changed, and that may be the work of an earlier step of the same epoch; so the
choice is a value: EXPLAIN prints it, an epoch settles it as soon as all that decides is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from stepwell.algebra.nodes import relations_of
from stepwell.algebra.states import can_lose
from stepwell.model.limits import Limits
from stepwell.model.views import RefreshPolicy
from stepwell.plan.costs import UNKNOWN, Expected
from stepwell.plan.cuts import Change
from stepwell.plan.read_volume import NOTHING, Reading
from stepwell.plan.steps import Rule, Step, mergeable, stateless
from stepwell.rules.blocks import Block, GroupBlock, RowBlock, WholeBlock, WindowBlock, obstacle, rows_of
from stepwell.rules.deltas import joins, only_adds
from stepwell.rules.groups import has_states, is_invertible, states_of


class When(StrEnum):
    """What has to be so for an option to be taken, in the words of EXPLAIN."""

    ALWAYS = "always"
    MOST_CHANGED = "most of what it reads has changed"
    READS_MORE = "following the change would read more than computing everything"
    DEARER = "the last change took longer than computing everything"
    OTHERS_CHANGE = "rows of an outer, semi or anti join change with their partners"
    LOSES_MUCH = "rows go that cannot be undone, and no others come in their place"
    LOSES = "rows go that cannot be undone"


@dataclass(frozen=True, slots=True)
class Option:
    """A rule, the condition under which it is taken, and why it is not a better one."""

    rule: Rule
    when: When = When.ALWAYS
    reason: str | None = None
    loses: bool = False


Choice = tuple[Option, ...]
"""Options in the order in which they are tried; the last is always taken."""


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """What is known of a change when a choice is settled: how much of what, what it reads, what it is likely to cost.

    A view that `may_lose` folds rows that were taken back as long as others come: a bar that grows replaces itself.
    """

    changes: Mapping[int, Change]
    expected: Expected = UNKNOWN
    reading: Reading = NOTHING
    may_lose: bool = True
    limits: Limits = field(default_factory=Limits)


def choice_for(block: Block, policy: RefreshPolicy) -> Choice:
    """The rules that may follow a change of a view that is up to date."""
    if (reason := obstacle(block)) is not None:
        return (Option(Rule.RECOMPUTE, reason=reason),)
    if policy == RefreshPolicy.FULL:
        return (Option(Rule.RECOMPUTE, reason="refresh_policy is full"),)
    anew: Choice = ()
    if policy == RefreshPolicy.AUTO:
        anew = tuple(Option(Rule.RECOMPUTE, when) for when in (When.MOST_CHANGED, When.READS_MORE, When.DEARER))
    return (*anew, *_incremental(block))


def _incremental(block: Block) -> Choice:
    match block:
        case WindowBlock():
            return (Option(Rule.TOUCHED_PARTITIONS),)
        case RowBlock(tree):
            usual = Option(Rule.JOIN if joins(tree) else Rule.APPLY)
            everything = frozenset(rows_relations(block))
            return (usual,) if only_adds(tree, everything) else (Option(Rule.TOUCHED_ROWS, When.OTHERS_CHANGE), usual)
        case GroupBlock() if not has_states(block):
            return (Option(Rule.TOUCHED_GROUPS, reason=stateless(block)),)
        case GroupBlock() if is_invertible(block):
            return (Option(Rule.FOLD),)
        case GroupBlock():
            why = f"rows were taken back, and {mergeable(block)} cannot be undone"
            losing = (Option(Rule.FOLD, When.LOSES, loses=True),) if can_lose(states_of(block)) else ()
            when = When.LOSES_MUCH if losing else When.LOSES
            return (Option(Rule.TOUCHED_GROUPS, when, why), *losing, Option(Rule.FOLD))
        case WholeBlock():
            raise AssertionError("it is its own obstacle")


def rows_relations(block: Block) -> list[int]:
    """The relations that the rows of a block are read from."""
    return list(relations_of(rows_of(block).tree))


def settled(block: Block, choice: Choice, facts: ChangeFacts) -> Step:
    """The option that is taken, now that all is known."""
    option = next(each for each in choice if _holds(each.when, block, facts))
    return Step(option.rule, option.reason or _reason(option, facts), facts.expected, option.loses)


def _holds(when: When, block: Block, facts: ChangeFacts) -> bool:
    changed = sum(change.rows for change in facts.changes.values())
    limits = facts.limits
    match when:
        case When.ALWAYS:
            return True
        case When.MOST_CHANGED:
            there = sum(change.total for change in facts.changes.values())
            return changed > max(limits.recomputed_rows, limits.recomputed_share * there)
        case When.READS_MORE:
            return facts.reading.is_more(limits)
        case When.DEARER:
            return facts.expected.is_dearer(limits)
        case When.OTHERS_CHANGE:
            return not only_adds(rows_of(block).tree, frozenset(facts.changes))
        case When.LOSES | When.LOSES_MUCH:
            lost = sum(change.retracted for change in facts.changes.values())
            if not lost and only_adds(rows_of(block).tree, frozenset(facts.changes)):
                return False
            return when == When.LOSES or not facts.may_lose or 2 * lost > changed


def _reason(option: Option, facts: ChangeFacts) -> str | None:
    """What to say of an option that was taken although a better one exists."""
    match option.when:
        case When.MOST_CHANGED:
            changed = sum(change.rows for change in facts.changes.values())
            return f"{changed} rows of {sum(change.total for change in facts.changes.values())} have changed"
        case When.READS_MORE:
            return f"the change would read {facts.reading}"
        case When.DEARER:
            return str(When.DEARER)
        case _:
            return None

"""Steps: which rule brings a view up to date, and why that one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stepwell.algebra.expressions import TRUE, AggregateCall
from stepwell.algebra.nodes import Filter, Join, JoinKind, Node, Project, Scan, Union, Unnest, Values, children_of
from stepwell.model.views import RefreshPolicy
from stepwell.plan.aggregates import Kind, state_of
from stepwell.plan.blocks import Block, GroupBlock, GroupResult, RowBlock, WholeBlock, WindowBlock, obstacle
from stepwell.plan.costs import UNKNOWN, Expected
from stepwell.plan.cuts import Change
from stepwell.plan.groups import folding_of
from stepwell.plan.read_volume import NOTHING, Reading
from stepwell.rules.deltas import joins, only_adds


class Rule(StrEnum):
    """How a block follows a change, from the cheapest to the last resort."""

    APPLY = "apply to the delta"
    JOIN = "join the delta"
    TOUCHED_ROWS = "recompute the touched rows"
    FOLD = "fold into the touched groups"
    TOUCHED_GROUPS = "recompute the touched groups"
    TOUCHED_PARTITIONS = "recompute the touched partitions"
    RECOMPUTE = "recompute and diff"
    BUILD = "build"
    EMIT = "emit what is due"


ANEW = (Rule.BUILD, Rule.RECOMPUTE)
"""The rules that do not ask what has changed."""


@dataclass(frozen=True, slots=True)
class Step:
    """The rule for one view in one epoch, and the reason where a better one exists."""

    rule: Rule
    reason: str | None = None
    expected: Expected = field(default=UNKNOWN, compare=False)
    losing: bool = False
    """Whether rows were taken back of what cannot be undone, in the hope that none of them mattered."""
    apart: bool = False
    """Whether the rows of a group may be of another query than its state, so that the one does not tell the other."""

    def __str__(self) -> str:
        return f"{self.rule.value} ({self.reason})" if self.reason else self.rule.value


MOST = 0.5
FEW_ROWS = 10_000
"""A change of more than this share of an input, and of more rows than this, is cheaper to recompute."""


def plan_step(
    block: Block,
    policy: RefreshPolicy,
    changes: Mapping[int, Change],
    expected: Expected = UNKNOWN,
    reading: Reading = NOTHING,
    *,
    hopeful: bool = True,
) -> Step:
    """How a view that is up to date follows these changes of its inputs, given what both ways read and cost.

    One that is `hopeful` folds rows that were taken back as long as others come: a bar that grows replaces itself.
    """
    step = _step(block, policy, changes, expected, reading, hopeful=hopeful)
    return replace(step, expected=expected)


def _step(
    block: Block,
    policy: RefreshPolicy,
    changes: Mapping[int, Change],
    expected: Expected,
    reading: Reading,
    *,
    hopeful: bool,
) -> Step:
    if (reason := obstacle(block)) is not None:
        return Step(Rule.RECOMPUTE, reason)
    if policy == RefreshPolicy.FULL:
        return Step(Rule.RECOMPUTE, "refresh_policy is full")
    changed = sum(change.rows for change in changes.values())
    there = sum(change.total for change in changes.values())
    if policy == RefreshPolicy.AUTO and changed > max(FEW_ROWS, MOST * there):
        return Step(Rule.RECOMPUTE, f"{changed} rows of {there} have changed")
    if policy == RefreshPolicy.AUTO and reading.is_more:
        return Step(Rule.RECOMPUTE, f"the change would read {reading}")
    if policy == RefreshPolicy.AUTO and expected.is_dearer:
        return Step(Rule.RECOMPUTE, "the last change took longer than computing everything")
    if isinstance(block, WindowBlock):
        return Step(Rule.TOUCHED_PARTITIONS)
    assert not isinstance(block, WholeBlock), "it is its own obstacle"
    if not isinstance(block, GroupBlock):
        return _rows_step(block, frozenset(changes))
    folding = folding_of(block)
    if folding is None:
        return Step(Rule.TOUCHED_GROUPS, _stateless(block))
    if folding.is_invertible:
        return Step(Rule.FOLD)
    takes_back = any(change.retracted for change in changes.values())
    if takes_back or not only_adds(block.rows.tree, frozenset(changes)):
        lost = sum(change.retracted for change in changes.values())
        if hopeful and folding.can_lose and 2 * lost <= changed:
            return Step(Rule.FOLD, losing=True)
        return Step(Rule.TOUCHED_GROUPS, f"rows were taken back, and {_mergeable(block)} cannot be undone")
    return Step(Rule.FOLD)


def _rows_step(rows: RowBlock, changed: frozenset[int]) -> Step:
    if not only_adds(rows.tree, changed):
        return Step(Rule.TOUCHED_ROWS)
    return Step(Rule.JOIN if joins(rows.tree) else Rule.APPLY)


Explained = tuple[str, Rule, str | None]
"""What a part of a block is, its rule, and why not a better one."""


def usual_rules(block: Block) -> list[Explained]:
    """What EXPLAIN says of a block, part by part."""
    match block:
        case WholeBlock(reason=reason):
            return [("query", Rule.RECOMPUTE, reason)]
        case GroupBlock():
            return [*_row_rules(block.rows.tree, inside=True), _group_rule(block)]
        case WindowBlock():
            whys = [obstacle(block), "ties are ordered by row identity" if block.made_total else None]
            why = "; ".join(each for each in whys if each) or None
            rule = Rule.TOUCHED_PARTITIONS if block.keys else Rule.RECOMPUTE
            what = "window functions" if block.keys else "limit or window functions"
            return [*_row_rules(block.rows.tree, inside=True), (what, rule, why)]
        case RowBlock(tree):
            return _row_rules(tree, inside=False)


def _row_rules(tree: Node, *, inside: bool) -> list[Explained]:
    """The joins and unions of a tree of rows, and what is done with each row, inside a block only if that is much."""
    found: list[Explained] = []
    words: list[str] = []

    def look(node: Node) -> None:
        for child in children_of(node):
            look(child)
        match node:
            case Join(kind):
                found.append(_join_rule(kind))
            case Union() if ("union all", Rule.APPLY, None) not in found:
                found.append(("union all", Rule.APPLY, None))
            case Filter(condition) if condition != TRUE:
                words.append("filter")
            case Unnest():
                words.append("unnest")
            case Project() | Scan() | Values():
                pass

    look(tree)
    words = [word for word in ("filter", "unnest") if word in words]
    if words or not inside:
        found.append((", ".join([*words, "project"]), Rule.APPLY, None))
    return found


def _join_rule(kind: JoinKind) -> Explained:
    names = {JoinKind.SEMI: "left semi join", JoinKind.ANTI: "left anti join", JoinKind.MARK: "exists"}
    what = names.get(kind, f"{kind.value} join")
    if kind in (JoinKind.INNER, JoinKind.CROSS):
        return what, Rule.JOIN, None
    return what, Rule.TOUCHED_ROWS, "a row on its other side that comes or goes can change rows that stay"


def _group_rule(group: GroupBlock) -> Explained:
    what = "distinct" if group.distinct else "group by" if group.keys else "global aggregate"
    if group.having is not None:
        what += ", having"
    folding = folding_of(group)
    if folding is None:
        return what, Rule.TOUCHED_GROUPS, _stateless(group)
    if folding.is_invertible:
        return what, Rule.FOLD, None
    return what, Rule.FOLD, f"{_mergeable(group)} cannot be undone: groups that lose their best row are recomputed"


def _stateless(group: GroupBlock) -> str:
    names = [_called(each) for each in group.results if state_of(each).kind == Kind.NONE]
    return f"{', '.join(dict.fromkeys(names))} cannot be put together from parts"


def _called(result: GroupResult) -> str:
    call = result.call
    assert isinstance(call, AggregateCall)
    name = str(call.get("name") or call.function).lower()
    return f"{name}(DISTINCT)" if call.distinct else name


def _mergeable(group: GroupBlock) -> str:
    names = [_called(each) for each in group.results if state_of(each).kind == Kind.MERGEABLE]
    return ", ".join(dict.fromkeys(names))

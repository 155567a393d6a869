"""Steps: which rule brings a view up to date, and why that one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stepwell.model.views import RefreshPolicy
from stepwell.plan.aggregates import Kind, state_of
from stepwell.plan.blocks import Aggregate, Block, Group, Join, Partitioned, Rows, Select, UnionAll, Whole, obstacle
from stepwell.plan.costs import UNKNOWN, Expected
from stepwell.plan.cuts import Change
from stepwell.plan.groups import folding_of
from stepwell.plan.reading import NOTHING, Reading
from stepwell.plan.render import joins, only_adds


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
    if isinstance(block, Partitioned):
        return Step(Rule.TOUCHED_PARTITIONS)
    assert not isinstance(block, Whole), "it is its own obstacle"
    if not isinstance(block, Group):
        return _rows_step(block, frozenset(changes))
    folding = folding_of(block)
    if folding is None:
        return Step(Rule.TOUCHED_GROUPS, _stateless(block))
    if folding.is_invertible:
        return Step(Rule.FOLD)
    takes_back = any(change.retracted for change in changes.values())
    if takes_back or not only_adds(block.rows, frozenset(changes)):
        lost = sum(change.retracted for change in changes.values())
        if hopeful and folding.can_lose and 2 * lost <= changed:
            return Step(Rule.FOLD, losing=True)
        return Step(Rule.TOUCHED_GROUPS, f"rows were taken back, and {_mergeable(block)} cannot be undone")
    return Step(Rule.FOLD)


def _rows_step(rows: Rows, changed: frozenset[int]) -> Step:
    if not only_adds(rows, changed):
        return Step(Rule.TOUCHED_ROWS)
    return Step(Rule.JOIN if joins(rows) else Rule.APPLY)


def usual_rules(block: Block) -> list[tuple[str, Rule, str | None]]:
    """What EXPLAIN says of a block: what it is, its rule, and why not a better one."""
    match block:
        case Whole(_, _, reason):
            return [("query", Rule.RECOMPUTE, reason)]
        case Group():
            inner = usual_rules(block.rows) if _says_something(block.rows) else []
            return [*inner, _group_rule(block)]
        case Partitioned():
            inner = usual_rules(block.rows) if _says_something(block.rows) else []
            whys = [obstacle(block), "ties are ordered by row identity" if block.made_total else None]
            why = "; ".join(each for each in whys if each) or None
            rule = Rule.TOUCHED_PARTITIONS if block.keys else Rule.RECOMPUTE
            return [*inner, ("window functions" if block.keys else "limit or window functions", rule, why)]
        case UnionAll(branches):
            found: list[tuple[str, Rule, str | None]] = [("union all", Rule.APPLY, None)]
            for branch in branches:
                found = [*usual_rules(branch), *found] if _says_something(branch) else found
            return found
        case Select():
            inner = [
                rule
                for source in block.sources
                if not isinstance(source.input, int) and _says_something(source.input)
                for rule in usual_rules(source.input)
            ]
            return [*inner, *_select_rules(block)]


def _says_something(rows: Rows) -> bool:
    """Whether rows are more than a relation as it is."""
    return isinstance(rows, UnionAll) or bool(rows.where or rows.generates or len(rows.sources) > 1 or any(
        not isinstance(source.input, int) for source in rows.sources))  # fmt: skip


def _select_rules(select: Select) -> list[tuple[str, Rule, str | None]]:
    found: list[tuple[str, Rule, str | None]] = []
    for source in select.sources[1:]:
        what = source.join.value.lower()
        if source.join in (Join.INNER, Join.CROSS):
            found.append((what, Rule.JOIN, None))
        else:
            why = f"a row of {source.alias} that comes or goes can change rows that stay"
            found.append((what, Rule.TOUCHED_ROWS, why))
    words = ["filter"] * bool(select.where) + ["unnest"] * select.generates + ["project"]
    return [*found, (", ".join(words), Rule.APPLY, None)]


def _group_rule(group: Group) -> tuple[str, Rule, str | None]:
    what = "distinct" if group.distinct else "group by" if group.keys else "global aggregate"
    if group.having:
        what += ", having"
    folding = folding_of(group)
    if folding is None:
        return what, Rule.TOUCHED_GROUPS, _stateless(group)
    if folding.is_invertible:
        return what, Rule.FOLD, None
    return what, Rule.FOLD, f"{_mergeable(group)} cannot be undone: groups that lose their best row are recomputed"


def _stateless(group: Group) -> str:
    names = [_called(each) for each in group.aggregates if state_of(each).kind == Kind.NONE]
    return f"{', '.join(dict.fromkeys(names))} cannot be put together from parts"


def _called(aggregate: Aggregate) -> str:
    name = aggregate.direct.split("(")[0].lower()
    return f"{name}(DISTINCT)" if "(DISTINCT " in aggregate.direct else name


def _mergeable(group: Group) -> str:
    names = [_called(each) for each in group.aggregates if state_of(each).kind == Kind.MERGEABLE]
    return ", ".join(dict.fromkeys(names))

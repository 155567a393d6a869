"""Steps: which rule brings a view up to date, and why that one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stepwell.algebra.aggregates import GroupResult, Kind, state_of
from stepwell.algebra.expressions import TRUE, AggregateCall
from stepwell.algebra.nodes import Filter, Join, JoinKind, Node, Project, Scan, Union, Unnest, Values, children_of
from stepwell.plan.costs import UNKNOWN, Expected
from stepwell.rules.blocks import Block, GroupBlock, RowBlock, WholeBlock, WindowBlock, obstacle
from stepwell.rules.groups import has_states, is_invertible


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
    loses: bool = False
    """Whether rows went of aggregates that cannot be undone; the fold finds out whether they mattered."""
    is_detached: bool = False
    """Whether the rows of a group may be of another query than its state, so that each is computed by itself."""

    def __str__(self) -> str:
        return f"{self.rule.value} ({self.reason})" if self.reason else self.rule.value


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
    if not has_states(group):
        return what, Rule.TOUCHED_GROUPS, stateless(group)
    if is_invertible(group):
        return what, Rule.FOLD, None
    return what, Rule.FOLD, f"{mergeable(group)} cannot be undone: groups that lose their best row are recomputed"


def stateless(group: GroupBlock) -> str:
    """Which aggregates have no state, in words."""
    names = [_called(each) for each in group.results if state_of(each).kind == Kind.NONE]
    return f"{', '.join(dict.fromkeys(names))} cannot be put together from parts"


def _called(result: GroupResult) -> str:
    call = result.call
    assert isinstance(call, AggregateCall)
    name = str(call.get("name") or call.function).lower()
    return f"{name}(DISTINCT)" if call.distinct else name


def mergeable(group: GroupBlock) -> str:
    """Which aggregates cannot be undone, in words."""
    names = [_called(each) for each in group.results if state_of(each).kind == Kind.MERGEABLE]
    return ", ".join(dict.fromkeys(names))

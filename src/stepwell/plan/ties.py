"""Ties: columns of the sources of a SELECT that must be equal for their rows to meet.

They are not needed to know what a query means, for its conditions say that. They tell how much of a source has to be
read when the rows of another are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from stepwell.plan.blocks import Filter, Join, Origin, Select, Source, Tie
from stepwell.plan.grouping import sql_of
from stepwell.plan.subqueries import conjuncts


def ties_of(tree: exp.Select, sources: Sequence[Source], columns: Sequence[tuple[str, ...]]) -> tuple[Tie, ...]:
    """The equalities of plain columns in the conditions of the joins and in WHERE."""
    where = tree.args.get("where")
    conditions: list[tuple[int, exp.Expr]] = [(0, each) for each in conjuncts(where.this)] if where else []
    for index, join in enumerate(tree.args.get("joins") or (), 1):
        on = join.args.get("on")
        conditions += [(index, each) for each in conjuncts(on)] if on else []
    found: list[Tie] = []
    for index, each in conditions:
        each = each.unnest()
        if not isinstance(each, exp.EQ):
            continue
        left, right = (origin_of(side.unnest(), sources, columns) for side in (each.this, each.expression))
        if left is not None and right is not None and left.source != right.source:
            found.append(Tie(left, right, index))
    return tuple(found)


def free_sources(tree: exp.Select, sources: Sequence[Source], columns: Sequence[tuple[str, ...]]) -> int:
    """How many sources, from the first on, are joined by inner joins whose conditions mean the same behind all of them.

    A name that is plain where it stands may be that of two columns once more sources are in sight.
    """
    joins = tree.args.get("joins") or ()
    count = 0
    for index, source in enumerate(sources):
        on = joins[index - 1].args.get("on") if index and index <= len(joins) else None
        named = [] if on is None else list(on.find_all(exp.Column))
        if source.join not in (Join.FIRST, Join.INNER, Join.CROSS) or source.condition.startswith("USING"):
            break
        if any(origin_of(column, sources, columns) is None for column in named):
            break
        count += 1
    return count


def filters_of(
    tree: exp.Select, sources: Sequence[Source], columns: Sequence[tuple[str, ...]], free: int
) -> tuple[Filter, ...]:
    """The conditions in WHERE that speak of one relation only, of those that are joined by inner joins."""
    where = tree.args.get("where")
    found: list[Filter] = []
    for each in conjuncts(where.this) if where else ():
        named = list(each.find_all(exp.Column))
        origins = {origin_of(column, sources, columns) for column in named}
        indexes = {origin.source for origin in origins if origin is not None}
        if None in origins or len(indexes) != 1 or each.find(exp.Query) is not None:
            continue
        (index,) = indexes
        if index < free and isinstance(sources[index].input, int):
            found.append(Filter(index, sql_of(each.transform(_unqualified))))
    return tuple(found)


def _unqualified(node: exp.Expr) -> exp.Expr:
    return exp.column(node.this.copy()) if isinstance(node, exp.Column) else node


def reading_order(select: Select, start: int) -> list[int]:
    """The sources of a SELECT, from `start` on each behind one that it is tied to, as far as their order is free."""
    if start >= select.free:
        return list(range(len(select.sources)))
    order, rest = [start], [index for index in range(select.free) if index != start]
    while rest:
        tied = {
            end.source
            for tie in select.ties
            for end, other in ((tie.left, tie.right), (tie.right, tie.left))
            if other.source in order
        }
        following = next((index for index in rest if index in tied), rest[0])
        order.append(following)
        rest.remove(following)
    return [*order, *range(select.free, len(select.sources))]


def origin_of(node: exp.Expr, sources: Sequence[Source], columns: Sequence[tuple[str, ...]]) -> Origin | None:
    """The source that a plain column is of, if that is plain to see."""
    if not isinstance(node, exp.Column):
        return None
    name, table = node.name.lower(), node.table.lower()
    found = [
        Origin(index, own)
        for index, (source, names) in enumerate(zip(sources, columns, strict=True))
        if table in ("", source.alias.lower())
        for own in names
        if own.lower() == name
    ]
    return found[0] if len(found) == 1 else None


def leads(tie: Tie, sources: Sequence[Source], known: int, other: int) -> bool:
    """Whether rows of `other` that equal none of `known` cannot matter.

    What stands in WHERE, or in the condition of an inner join, holds for every row that comes out. The condition of any
    other join only decides which rows of its partner are met.
    """
    how = sources[tie.within].join if tie.within else Join.INNER
    if how in (Join.INNER, Join.CROSS, Join.FIRST):
        return True
    return how in (Join.LEFT, Join.SEMI, Join.ANTI) and other == tie.within and known < other

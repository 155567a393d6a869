"""Set operations and grouping sets, as groups and unions of them.

l EXCEPT r          the values that are in l and not in r: a group each, with how often it is in either
l EXCEPT ALL r      as many rows of a value as l has more than r
GROUPING SETS       a GROUP BY for each set, one behind the other
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from sqlglot import exp

from stepwell.model.types import quote
from stepwell.plan.blocks import Aggregate, Group, Rows, Select, Source, UnionAll
from stepwell.plan.grouping import Unsuited, with_parts

COUNT = "_sw_times"

_FORMS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def counted(left: Rows, right: Rows, names: tuple[str, ...], *, intersect: bool, keep_all: bool) -> Group:
    """A group for each value that comes out; with `keep_all`, how often is in `_sw_times`."""
    keys = tuple(f"_sw_g{index}" for index in range(len(names)))
    columns = (*keys, "_sw_x0", "_sw_x1")
    branches = tuple(
        Select((Source(rows, "_sw_b"),), (*(quote(name) for name in rows.names), *sides), columns)
        for rows, sides in ((left, ("1", "0")), (right, ("0", "1")))
    )
    aggregates = tuple(Aggregate("sum", f"sum(_sw_x{side})", (f"_sw_x{side}",)) for side in (0, 1))
    if keep_all:
        often = "least(_sw_r0, _sw_r1)" if intersect else "_sw_r0 - _sw_r1"
        return Group(
            UnionAll(branches, columns), len(keys), (), aggregates, (*keys, often), (*names, COUNT), f"{often} > 0"
        )
    having = "_sw_r0 > 0 AND _sw_r1 > 0" if intersect else "_sw_r0 > 0 AND _sw_r1 = 0"
    return Group(UnionAll(branches, columns), len(keys), (), aggregates, keys, names, having, distinct=True)


def repeated(counts: Source, names: tuple[str, ...]) -> Select:
    """Each value as many times as it is counted."""
    unnest = f"LATERAL VIEW explode(sequence(1L, {COUNT})) _sw_e AS _sw_i"
    return Select((counts,), tuple(quote(name) for name in names), names, laterals=unnest, generates=True)


def grouping_sets(tree: exp.Select) -> list[exp.Select] | None:
    """The same query as one for each grouping set, or None if it has none; the keys that a set lacks are NULL in it."""
    group = tree.args.get("group")
    if group is None:
        return None
    listed = [each for name in ("rollup", "cube", "grouping_sets") for each in group.args.get(name) or ()]
    parts = [_sets(each) for each in (*group.expressions, *listed)]
    if group.args.get("totals") or not any(isinstance(each, _FORMS) for each in (*group.expressions, *listed)):
        return None
    sets = [_unique(key for part in chosen for key in part) for chosen in itertools.product(*parts)]
    every = _unique(key for each in sets for key in each)
    return [_with_set(tree, each, every) for each in sets]


def _sets(form: exp.Expr) -> list[list[exp.Expr]]:
    """The sets that a part of a GROUP BY stands for; a plain key is in all of them."""
    if not isinstance(form, _FORMS):
        return [[form]]
    keys = [_key(each) for each in form.expressions]
    if not keys:
        raise Unsuited("GROUP BY … WITH ROLLUP has no rule: write ROLLUP (…)")
    if isinstance(form, exp.Rollup):
        return [list(itertools.chain(*keys[:count])) for count in range(len(keys), -1, -1)]
    if isinstance(form, exp.Cube):
        return [
            list(itertools.chain(*chosen))
            for count in range(len(keys), -1, -1)
            for chosen in itertools.combinations(keys, count)
        ]
    return keys


def _key(node: exp.Expr) -> list[exp.Expr]:
    """The keys that stand together in parentheses."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    if isinstance(node, _FORMS):
        raise Unsuited("grouping sets inside grouping sets have no rule")
    return [node.this if isinstance(node, exp.Paren) else node]


def _with_set(tree: exp.Select, keys: list[exp.Expr], every: list[exp.Expr]) -> exp.Select:
    missing = [key for key in every if key not in keys]

    def look(node: exp.Expr) -> exp.Expr:
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
        if name == "grouping":
            arguments = node.expressions
            return exp.Literal.number(0 if arguments and arguments[0] in keys else 1)
        if name in ("grouping_id", "groupingid"):
            wanted = node.expressions or every
            return exp.Literal.number(sum((key not in keys) << index for index, key in enumerate(reversed(wanted))))
        if isinstance(node, exp.AggFunc):
            return node  # over the rows, which have all their values
        if node in missing:
            return exp.null()
        return with_parts(node, look)

    new = tree.copy()
    new.set("expressions", [_named(look(item), item) for item in tree.expressions])
    having = tree.args.get("having")
    new.set("having", exp.Having(this=look(having.this)) if having else None)
    # no rows make no groups here, not even one of all: so that is a group with a key, too
    new.set("group", exp.Group(expressions=[key.copy() for key in keys] or [exp.Literal.string("all")]))
    return new


def _named(item: exp.Expr, before: exp.Expr) -> exp.Expr:
    name = before.alias_or_name
    return item if isinstance(item, exp.Alias) or not name else exp.alias_(item, name, quoted=True)


def _unique(keys: Iterable[exp.Expr]) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for key in keys:
        if key not in found:
            found.append(key)
    return found

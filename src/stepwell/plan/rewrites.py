"""Rewrites: a query as another one that means the same and has a rule.

WITH q AS (…)               each q written out where it is named
HAVING … (SELECT …)         a WHERE over the groups
OVER … with GROUP BY        windows over the groups
WINDOW w AS (…)             each OVER w written out
ORDER BY … LIMIT n          QUALIFY row_number() OVER (ORDER BY …) <= n
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from stepwell.plan.grouping import Unsuited, is_aggregate


def with_aliases(node: exp.Expr, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
    """A HAVING with the names of outputs replaced by what they stand for."""

    def look(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column) and not each.table and each.name.lower() in aliases:
            return aliases[each.name.lower()].copy()
        return each

    return node.copy().transform(look)


def having_outside(tree: exp.Select) -> exp.Select:
    """A GROUP BY whose HAVING has subqueries, as a WHERE over the groups: there they can be joined."""
    inner, outer = tree.copy(), tree.args["having"].this.copy()
    aliases = {item.alias.lower(): unaliased(item) for item in tree.expressions if isinstance(item, exp.Alias)}
    names = [item.alias_or_name for item in tree.expressions]
    if not all(names) or tree.args.get("distinct"):
        raise Unsuited("a subquery in HAVING needs outputs with names, and no DISTINCT")
    shown: list[tuple[exp.Expr, str]] = []

    def look(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in aliases:
            return look(aliases[node.name.lower()].copy())
        if isinstance(node, exp.Column) or is_aggregate(node):
            known = next((name for each, name in shown if each == node), None)
            if known is None:
                known = f"_sw_a{len(shown)}"
                shown.append((node.copy(), known))
            return exp.column(known, table="_sw_having")
        for name, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(name, look(value))
            elif isinstance(value, list):
                node.set(name, [look(each) if isinstance(each, exp.Expr) else each for each in value])
        return node

    condition = look(outer)
    inner.set("having", None)
    inner.set("expressions", [*inner.expressions, *(exp.alias_(node, name) for node, name in shown)])
    items = [exp.column(exp.to_identifier(name, quoted=True), table="_sw_having") for name in names]
    return exp.select(*items).from_(inner.subquery("_sw_having")).where(condition)


def without_ctes(tree: exp.Expr) -> exp.Expr:
    """A query with every WITH written out where it is named."""
    clause = tree.args.get("with_")
    if clause is None:
        return tree
    if clause.args.get("recursive"):
        raise Unsuited("WITH RECURSIVE has no rule")
    tree = tree.copy()
    clause = tree.args["with_"]
    tree.set("with_", None)
    defined: dict[str, tuple[exp.Expr, exp.TableAlias | None]] = {}
    for cte in clause.expressions:
        body = _with_defined(without_ctes(cte.this), defined)
        defined[cte.alias.lower()] = (body, cte.args.get("alias"))
    return _with_defined(tree, defined)


def _with_defined(tree: exp.Expr, defined: Mapping[str, tuple[exp.Expr, exp.TableAlias | None]]) -> exp.Expr:
    def look(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Table) and not node.db and node.name.lower() in defined:
            body, alias = defined[node.name.lower()]
            columns = [column.copy() for column in alias.columns] if alias else []
            name = exp.TableAlias(this=exp.to_identifier(node.alias or node.name, quoted=True), columns=columns)
            return exp.Subquery(this=body.copy(), alias=name)
        return node

    if any(node.args.get("with_") for node in tree.find_all(exp.Query)):
        raise Unsuited("WITH inside a subquery has no rule")
    return tree.transform(look)


def unwrapped(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Subquery) and not has_order(tree) and not tree.args.get("joins"):
        tree = tree.this
    return tree


def has_order(tree: exp.Expr) -> bool:
    return any(tree.args.get(part) for part in ("limit", "offset", "order", "sort", "cluster", "distribute"))


def unaliased(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item

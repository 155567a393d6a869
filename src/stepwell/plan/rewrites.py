"""Rewrites: a query as another one that means the same and has a rule.

WITH q AS (…)               each q written out where it is named
HAVING … (SELECT …)         a WHERE over the groups
OVER … with GROUP BY        windows over the groups
GROUP BY window(…)          by the start of the window
WINDOW w AS (…)             each OVER w written out
FROM t, LATERAL explode(x)  LATERAL VIEW explode(x)
ORDER BY … LIMIT n          QUALIFY row_number() OVER (ORDER BY …) <= n
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from stepwell.model.durations import parse_duration
from stepwell.model.errors import StepwellError
from stepwell.model.files import ROW_ID
from stepwell.plan.grouping import Unsuited, is_aggregate, with_parts


def with_aliases(node: exp.Expr, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
    """A HAVING with the names of outputs replaced by what they stand for."""

    def look(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column) and not each.table and each.name.lower() in aliases:
            return aliases[each.name.lower()].copy()
        return each

    return node.copy().transform(look)


class _Groups:
    """The groups of a GROUP BY as a source of their own; what is needed of them is shown under names."""

    def __init__(
        self, alias: str, keys: Sequence[exp.Expr] = (), aliases: Mapping[str, exp.Expr] | None = None
    ) -> None:
        """`aliases` are outputs that may be named, and what they stand for."""
        self._alias = alias
        self._keys = keys
        self._aliases = aliases or {}
        self._shown: list[tuple[exp.Expr, str]] = []

    def over(self, node: exp.Expr) -> exp.Expr:
        """An expression over the grouped rows, as one over the groups."""
        if isinstance(node, exp.Query):
            return node
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self._aliases:
            return self.over(self._aliases[node.name.lower()].copy())
        if isinstance(node, exp.Column) or is_aggregate(node) or node in self._keys:
            return self.column(node)
        if isinstance(node, exp.Window):
            function = node.this
            while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
                function = function.this
            self._replace_parts(function)
            for name in ("partition_by", "order"):
                self._replace_part(node, name)
            return node
        self._replace_parts(node)
        return node

    def _replace_parts(self, node: exp.Expr) -> None:
        for name in list(node.args):
            self._replace_part(node, name)

    def _replace_part(self, node: exp.Expr, name: str) -> None:
        value = node.args.get(name)
        if isinstance(value, exp.Expr):
            node.set(name, self.over(value))
        elif isinstance(value, list):
            node.set(name, [self.over(each) if isinstance(each, exp.Expr) else each for each in value])

    def column(self, node: exp.Expr) -> exp.Column:
        known = next((name for each, name in self._shown if each == node), None)
        if known is None:
            known = f"_sw_a{len(self._shown)}"
            self._shown.append((node.copy(), known))
        return column(self._alias, known)

    @property
    def items(self) -> list[exp.Expr]:
        """What the groups have to show."""
        return [exp.alias_(node, name) for node, name in self._shown]


def having_outside(tree: exp.Select) -> exp.Select:
    """A GROUP BY whose HAVING has subqueries, as a WHERE over the groups: there they can be joined."""
    names = [item.alias_or_name for item in tree.expressions]
    if not all(names) or tree.args.get("distinct"):
        raise Unsuited("a subquery in HAVING needs outputs with names, and no DISTINCT")
    groups = _Groups("_sw_having", aliases=aliases_of(tree.expressions))
    condition = groups.over(tree.args["having"].this.copy())
    inner = tree.copy()
    inner.set("having", None)
    inner.set("expressions", [*inner.expressions, *groups.items])
    items = [column("_sw_having", name) for name in names]
    return exp.select(*items).from_(inner.subquery("_sw_having")).where(condition)


def windows_outside(tree: exp.Select, keys: Sequence[exp.Expr]) -> exp.Select:
    """Window functions over the groups of a GROUP BY, as windows over a query that groups by `keys`."""
    groups = _Groups("_sw_groups", keys)
    outputs = aliases_of(tree.expressions)
    items = []
    for item in tree.expressions:
        name = item.alias_or_name
        new = groups.over(unaliased(item).copy())
        items.append(exp.alias_(new, name, quoted=True) if name else new)
    inner, qualify = tree.copy(), tree.args.get("qualify")
    condition = groups.over(with_aliases(qualify.this, outputs)) if qualify else None
    for part in ("qualify", "order", "limit", "offset", "distinct"):
        inner.set(part, None)
    inner.set("expressions", groups.items)
    inner.set("group", exp.Group(expressions=[key.copy() for key in keys]) if keys else None)
    outer = exp.select(*items).from_(inner.subquery("_sw_groups"))
    outer.set("qualify", exp.Qualify(this=condition) if condition is not None else None)
    outer.set("distinct", tree.args["distinct"].copy() if tree.args.get("distinct") else None)
    return outer


def windows_by_start(tree: exp.Select) -> exp.Select:
    """A GROUP BY window(…) as one by the window's start, from which its end follows: a key that is a plain value."""
    group = tree.args["group"]
    calls = [each for each in group.expressions if is_call(each, "window")]
    if len(calls) != 1 or not 2 <= len(calls[0].expressions) <= 3:
        return tree
    call, width = calls[0], calls[0].expressions[1]
    try:
        microseconds = parse_duration(width.this) if isinstance(width, exp.Literal) and width.is_string else 0
    except StepwellError:
        microseconds = 0
    if not microseconds:
        return tree
    start = exp.Dot(this=call.copy(), expression=exp.to_identifier("start"))
    length = interval(microseconds)
    end = exp.paren(exp.Add(this=start.copy(), expression=length))
    ends = [exp.alias_(start.copy(), "start", quoted=True), exp.alias_(end.copy(), "end", quoted=True)]
    whole = exp.Struct(expressions=ends)

    def look(node: exp.Expr) -> exp.Expr:
        is_part = isinstance(node, exp.Dot) and node.this == call
        if is_part or (isinstance(node, exp.Column) and node.table.lower() == "window"):
            name = (node.expression if is_part else node).name.lower()
            if name in ("start", "end"):
                return (start if name == "start" else end).copy()
        if node == call or (isinstance(node, exp.Column) and not node.table and node.name.lower() == "window"):
            return whole.copy()
        return with_parts(node, look)

    new = tree.copy()
    new.set("expressions", [look(item) for item in tree.expressions])
    for part in ("having", "qualify", "order"):
        if tree.args.get(part):
            new.set(part, look(tree.args[part]))
    keys = [start.copy() if each == call else each.copy() for each in group.expressions]
    new.set("group", exp.Group(expressions=keys))
    return new


def interval(microseconds: int) -> exp.Interval:
    """A length of time as Spark writes it."""
    seconds = f"{microseconds // 1_000_000}.{microseconds % 1_000_000:06}"
    return exp.Interval(this=exp.Literal.string(seconds), unit=exp.Var(this="SECOND"))


def is_call(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == name


def with_windows(tree: exp.Select) -> exp.Select:
    """A SELECT with every window of its WINDOW clause written out where it is named."""
    defined = {each.name.lower(): each for each in tree.args.get("windows") or ()}
    tree = tree.copy()
    tree.set("windows", None)
    for window in list(tree.find_all(exp.Window)):
        name = window.args.get("alias")
        if name is None:
            continue
        found = defined.get(name.name.lower())
        if found is None or found.args.get("alias"):
            raise Unsuited("a WINDOW on a WINDOW has no rule: write it out")
        window.set("alias", None)
        for part in ("partition_by", "order", "spec"):
            value = found.args.get(part)
            copied = [each.copy() for each in value] if isinstance(value, list) else value.copy() if value else None
            window.set(part, window.args.get(part) or copied)
    return tree


def with_lateral_views(tree: exp.Select) -> exp.Select:
    """A SELECT with its generators in FROM as LATERAL VIEWs."""
    joins = tree.args.get("joins") or []
    chosen = [join for join in joins if _unnests(join)]
    if not chosen:
        return tree
    if joins[-len(chosen) :] != chosen or any(join.side not in ("", "LEFT") for join in chosen):
        raise Unsuited("LATERAL before another join has no rule: put it last")
    tree = tree.copy()
    kept = tree.args["joins"][: -len(chosen)]
    views = []
    for join in chosen:
        lateral = join.this.copy()
        lateral.set("view", True)
        lateral.set("outer", join.side == "LEFT")
        views.append(lateral)
    tree.set("joins", kept)
    tree.set("laterals", [*(tree.args.get("laterals") or ()), *views])
    return tree


def _unnests(join: exp.Join) -> bool:
    on = join.args.get("on")
    return (
        isinstance(join.this, exp.Lateral)
        and not isinstance(join.this.this, exp.Subquery)
        and (on is None or on == exp.true())
    )


def limited(tree: exp.Query, names: tuple[str, ...]) -> exp.Select:
    """ORDER BY … LIMIT n OFFSET m, as the rows whose number in that order is in (m, m + n]."""
    count, skipped = _number(tree.args.get("limit"), "LIMIT"), _number(tree.args.get("offset"), "OFFSET")
    order = tree.args.get("order")
    inner = tree.copy()
    for part in ("order", "limit", "offset"):
        inner.set(part, None)
    ordered: list[exp.Expr] = []
    extra: list[exp.Expr] = []
    for each in order.expressions if order else ():
        key = _output(tree, each.this, names)
        if key is None:
            name = f"_sw_o{len(extra)}"
            extra.append(exp.alias_(with_aliases(each.this, aliases_of(tree.expressions)), name))
            key = column("_sw_limit", name)
        again = each.copy()
        again.set("this", key)
        ordered.append(again)
    if extra:
        inner.set("expressions", [*inner.expressions, *extra])
    columns = [exp.to_identifier(name, quoted=True) for name in (*names, *(each.alias for each in extra))]
    alias = exp.TableAlias(this=exp.to_identifier("_sw_limit", quoted=True), columns=columns)
    ordered.append(exp.Ordered(this=exp.column(ROW_ID), nulls_first=True))
    number = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=ordered), over="OVER")
    wanted: list[exp.Expr] = []
    if count is not None:
        wanted.append(exp.LTE(this=number.copy(), expression=exp.Literal.number(count + (skipped or 0))))
    if skipped:
        wanted.append(exp.GT(this=number.copy(), expression=exp.Literal.number(skipped)))
    outer = exp.select(*(column("_sw_limit", name) for name in names)).from_(exp.Subquery(this=inner, alias=alias))
    outer.set("qualify", exp.Qualify(this=exp.and_(*wanted, copy=False)))
    return outer


def _output(tree: exp.Query, key: exp.Expr, names: tuple[str, ...]) -> exp.Expr | None:
    """The output that a part of an ORDER BY means, or None if it is an expression that a SELECT can show as well."""
    if isinstance(key, exp.Literal) and not key.is_string:
        position = int(key.this)
        if not 1 <= position <= len(names):
            raise Unsuited(f"ORDER BY {position} is no column")
        return column("_sw_limit", names[position - 1])
    if isinstance(tree, exp.Select) and not tree.args.get("distinct"):
        return None
    first: exp.Expr = tree
    while not isinstance(first, exp.Select):
        first = first.this
    outputs = [item.alias_or_name.lower() for item in first.expressions]
    if len(outputs) != len(names) or key.name.lower() not in outputs:
        raise Unsuited("an ORDER BY … LIMIT of other than outputs has no rule here")
    return column("_sw_limit", names[outputs.index(key.name.lower())])


def _number(clause: exp.Expr | None, what: str) -> int | None:
    if clause is None:
        return None
    value = clause.expression
    if not isinstance(value, exp.Literal) or value.is_string or not str(value.this).isdigit():
        raise Unsuited(f"{what} of other than a number has no rule")
    return int(value.this)


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


def aliases_of(items: Iterable[exp.Expr]) -> dict[str, exp.Expr]:
    """Outputs by their names in small letters, and what they stand for."""
    return {item.alias.lower(): unaliased(item) for item in items if isinstance(item, exp.Alias)}


def column(table: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))

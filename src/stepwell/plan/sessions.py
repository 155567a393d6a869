"""Sessions: rows that follow each other closely, as groups.

How far a session reaches depends on its rows, so sessions merge and split as rows come and go. Window functions tell
where each begins, for the partitions that a change has touched; then they are groups like others.
"""

from __future__ import annotations

from sqlglot import exp

from stepwell.model.durations import parse_duration
from stepwell.plan.grouping import Unsuited, sql_of, with_parts
from stepwell.plan.rewrites import column, interval, is_call, unaliased
from stepwell.sql.structure import structure_of


def sessions_by_start(tree: exp.Select) -> exp.Select:
    """A GROUP BY session_window(…) as one by the session's start, found by window functions over the other keys.

    A row opens a session if none before it reaches to it; a session starts with the last row that has opened one.
    """
    group = tree.args["group"]
    calls = [each for each in group.expressions if is_call(each, "session_window")]
    if not calls:
        return tree
    call = calls[0]
    gap = call.expressions[-1]
    if len(calls) > 1 or len(call.expressions) != 2 or not isinstance(gap, exp.Literal) or not gap.is_string:
        raise Unsuited("a session whose gap is no constant has no rule")
    if tree.args.get("joins") or tree.args.get("laterals"):
        raise Unsuited("sessions over a join have no rule: join in a subquery")
    keys = [each for each in group.expressions if each != call]
    length = interval(parse_duration(gap.this))
    shown: list[tuple[exp.Expr, str]] = []

    def named(node: exp.Expr) -> exp.Expr:
        """A column of the rows under a name of its own."""
        name = next((name for each, name in shown if each == node), None)
        if name is None:
            name = f"_sw_c{len(shown)}"
            shown.append((node.copy(), name))
        return column("_sw_s", name)

    def look(node: exp.Expr) -> exp.Expr:
        is_part = isinstance(node, exp.Dot) and node.this == call
        of_name = isinstance(node, exp.Column) and node.table.lower() == "session_window"
        if is_part or of_name:
            name = (node.expression if is_part else node).name.lower()
            return column("_sw_s", "_sw_start") if name == "start" else end.copy()
        if node == call:
            raise Unsuited("a session as a value has no rule: take its start and its end")
        if isinstance(node, exp.Column):
            return named(node)
        return with_parts(node, look)

    time = exp.alias_(call.expressions[0].copy(), "_sw_t")
    end = exp.paren(exp.Add(this=exp.Max(this=column("_sw_s", "_sw_t")), expression=length.copy()))
    items = []
    for item in tree.expressions:
        new, name = look(unaliased(item)), item.alias_or_name
        items.append(exp.alias_(new, name, quoted=True) if name else new)
    having = look(tree.args["having"].this) if tree.args.get("having") else None
    grouped = [look(key) for key in keys]
    base = tree.copy()
    for part in ("group", "having", "qualify", "order", "limit", "offset", "distinct"):
        base.set(part, None)
    base.set("expressions", [*(exp.alias_(node, name) for node, name in shown), time])
    base = base.where(exp.Not(this=exp.Is(this=call.expressions[0].copy(), expression=exp.null())))
    partition = f"PARTITION BY {', '.join(_plain(key) for key in grouped)} " if grouped else ""
    over = f"OVER ({partition}ORDER BY _sw_t)"
    names = ", ".join([*(name for _, name in shown), "_sw_t"])
    opens = f"CASE WHEN lag(_sw_t) {over} + {sql_of(length)} > _sw_t THEN 0 ELSE 1 END AS _sw_opens"
    started = structure_of(
        f"SELECT {names}, max(CASE WHEN _sw_opens = 1 THEN _sw_t END) {over} AS _sw_start"
        f" FROM (SELECT {names}, {opens} FROM ({sql_of(base)}) AS _sw_b) AS _sw_f"
    )
    assert isinstance(started, exp.Select)
    outer = exp.select(*items).from_(started.subquery("_sw_s"))
    outer.set("group", exp.Group(expressions=[*grouped, column("_sw_s", "_sw_start")]))
    outer.set("having", exp.Having(this=having) if having is not None else None)
    for part in ("qualify", "distinct"):
        if tree.args.get(part):
            raise Unsuited(f"{part.upper()} with sessions has no rule: group in a subquery")
    return outer


def _plain(node: exp.Expr) -> str:
    """An expression over columns whose names are enough."""
    plain = node.copy().transform(lambda each: exp.column(each.name) if isinstance(each, exp.Column) else each)
    return sql_of(plain)

"""Decomposition: the text of a query to blocks.

sqlglot gives the structure; whether it has understood the text is for Spark to say, which analyzes both the text and
what sqlglot would write for it. What has no rule raises `Unsuited`, and the query, or the part of it, is a `Whole`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from sqlglot import exp
from sqlglot.errors import SqlglotError

from stepwell.model.types import quote
from stepwell.plan.blocks import Aggregate, Block, Group, Join, Partitioned, Plan, Rows, Select, Source, UnionAll, Whole
from stepwell.plan.grouping import Grouping, Unsuited, has_aggregate, sql_of
from stepwell.plan.rewrites import (
    aliases_of,
    column,
    has_order,
    having_outside,
    is_call,
    limited,
    unaliased,
    unwrapped,
    windows_by_start,
    windows_outside,
    with_aliases,
    with_lateral_views,
    with_windows,
    without_ctes,
)
from stepwell.plan.sessions import sessions_by_start
from stepwell.plan.sets import counted, grouping_sets, repeated
from stepwell.plan.subqueries import ALIAS, SubqueryJoins, has_subquery
from stepwell.plan.ties import filters_of, free_sources, origin_of, ties_of
from stepwell.plan.times import is_time, timing_of, transfers_of
from stepwell.plan.windows import Windows, has_window
from stepwell.sql.structure import structure_of

_GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack")


class Decomposer:
    """Takes one query apart. `columns` are those of the relations behind the placeholders in it."""

    def __init__(
        self,
        columns: Mapping[str, tuple[str, ...]],
        times: Mapping[int, str] | None = None,
        tables: AbstractSet[int] = frozenset(),
    ) -> None:
        """`times` are the time columns of the relations that have one, `tables` those whose rows are numbered."""
        self._tables = tables
        self._columns = {name.lower(): names for name, names in columns.items()}
        self._times = dict(times or {})
        self._hidden: list[Block] = []

    def plan(self, text: str, names: tuple[str, ...]) -> tuple[Plan, str]:
        """The plan of a query with these outputs, and the text that sqlglot would write for it."""
        try:
            tree = structure_of(text)
        except (SqlglotError, RecursionError) as error:
            return Plan(Whole(text, names, f"sqlglot cannot read it ({_first_line(error)})")), ""
        # for Spark itself sqlglot writes QUALIFY as a subquery, since older ones did not have it
        again = tree.sql("databricks", comments=False) if tree.find(exp.Qualify) else sql_of(tree)
        try:
            root = self._block(without_ctes(tree), names)
        except Unsuited as reason:
            return Plan(Whole(text, names, str(reason))), again
        return Plan(root, tuple(self._hidden)), again

    # -- a query as a block -------------------------------------------------------------------------------------------

    def _block(self, tree: exp.Expr, names: tuple[str, ...]) -> Block:
        tree = unwrapped(tree)
        _refuse_order(tree)
        if isinstance(tree, exp.Query) and _is_limited(tree):
            return self._block(limited(tree, names), names)
        if isinstance(tree, exp.Select) and tree.args.get("windows"):
            tree = with_windows(tree)
        if isinstance(tree, exp.Intersect | exp.Except):
            return self._set_operation(tree, names)
        if isinstance(tree, exp.Select) and tree.args.get("group"):
            tree = sessions_by_start(windows_by_start(tree))
        if isinstance(tree, exp.Select) and _is_grouped(tree) and has_window(tree):
            return self._block(windows_outside(tree, self._group_keys(tree)), names)
        if isinstance(tree, exp.Select) and (sets := grouping_sets(tree)) is not None:
            return self._grouping_sets(sets, names)
        if isinstance(tree, exp.Select) and has_subquery(tree.args.get("having")):
            return self._block(having_outside(tree), names)
        if isinstance(tree, exp.Select) and (_is_grouped(tree) or tree.args.get("distinct")):
            return self._group(tree, names)
        if isinstance(tree, exp.Select) and has_window(tree):
            return self._partitioned(tree, names)
        if type(tree) is exp.Union and tree.args.get("distinct"):
            rows = self._union(tree, names)
            return self._timed(_distinct(rows, names))
        if not isinstance(tree, exp.Select) and type(tree) is not exp.Union:
            raise Unsuited(f"{tree.key.upper()} has no rule")
        return self._rows(tree, names)

    def _rows(self, tree: exp.Expr, names: tuple[str, ...] | None) -> Rows:
        """A query as rows; a part that is not becomes a hidden block, and the rows are those of it."""
        tree = unwrapped(tree)
        _refuse_order(tree)
        if isinstance(tree, exp.Query) and _is_limited(tree):
            return self._read_hidden(tree, names)
        if type(tree) is exp.Union and not tree.args.get("distinct"):
            return self._union(tree, names)
        if isinstance(tree, exp.Select) and not (_is_grouped(tree) or tree.args.get("distinct") or has_window(tree)):
            return self._select(tree, names)
        if not isinstance(tree, exp.Query):
            raise Unsuited(f"{tree.key.upper()} has no rule")
        return self._read_hidden(tree, names)

    def _nested(self, tree: exp.Expr, names: tuple[str, ...] | None) -> Rows:
        """A query inside another one; what has no rule is kept as a part of its own, and the rest need not suffer."""
        known = len(self._hidden)
        try:
            return self._rows(tree, names)
        except Unsuited as reason:
            del self._hidden[known:]
            tree = unwrapped(tree)
            if not isinstance(tree, exp.Query):
                raise
            found = names or _names_of(tree, self._columns)
            return self._kept(Whole(sql_of(tree), found, str(reason)))

    def _read_hidden(self, tree: exp.Query, names: tuple[str, ...] | None) -> Select:
        found = names or _names_of(tree, self._columns)
        known = len(self._hidden)
        try:
            block = self._block(tree, found)
        except Unsuited as reason:
            del self._hidden[known:]
            block = Whole(sql_of(tree), found, str(reason))
        return self._kept(block)

    def _kept(self, block: Block) -> Select:
        """The rows of a hidden block; one that is there twice is kept once."""
        if block not in self._hidden:
            self._hidden.append(block)
            timing = timing_of(block, self._times)
            if timing is not None:
                self._times[-len(self._hidden)] = timing.column
        source = Source(-1 - self._hidden.index(block), "_sw_h")
        return Select((source,), tuple(quote(name) for name in block.names), block.names)

    def _union(self, tree: exp.Union, names: tuple[str, ...] | None) -> UnionAll:
        if tree.args.get("by_name"):
            raise Unsuited("UNION BY NAME has no rule")
        branches: list[Rows] = []
        for side in (tree.this, tree.expression):
            side = unwrapped(side)
            if type(side) is exp.Union and not side.args.get("distinct") and not has_order(side):
                branches.extend(self._union(side, names).branches)
            else:
                branches.append(self._nested(side, names))
        return UnionAll(tuple(branches), names or branches[0].names)

    def _set_operation(self, tree: exp.Intersect | exp.Except, names: tuple[str, ...]) -> Block:
        if tree.args.get("by_name"):
            raise Unsuited(f"{tree.key.upper()} BY NAME has no rule")
        keep_all = not tree.args.get("distinct")
        left, right = self._nested(tree.this, None), self._nested(tree.expression, None)
        if len(left.names) != len(names) or len(right.names) != len(names):
            raise Unsuited("its columns could not be counted")
        group = counted(left, right, names, intersect=isinstance(tree, exp.Intersect), keep_all=keep_all)
        if not keep_all:
            return group
        return repeated(self._kept(group).sources[0], names)

    def _grouping_sets(self, sets: list[exp.Select], names: tuple[str, ...]) -> UnionAll:
        """The groups of every set; an output that is NULL for a whole set is no output of its groups."""
        branches: list[Rows] = []
        for tree in sets:
            kept = [index for index, item in enumerate(tree.expressions) if not isinstance(unaliased(item), exp.Null)]
            if not kept:
                raise Unsuited("a grouping set without an output has no rule")
            inner = tree.copy()
            inner.set("expressions", [tree.expressions[index] for index in kept])
            rows = self._read_hidden(inner, tuple(names[index] for index in kept))
            items = tuple(quote(names[index]) if index in kept else "NULL" for index in range(len(names)))
            branches.append(Select(rows.sources, items, names))
        return UnionAll(tuple(branches), names)

    def _partitioned(self, tree: exp.Select, names: tuple[str, ...]) -> Partitioned:
        tree = SubqueryJoins(self._scope).applied(tree)
        _refuse_expressions(tree, windows=True)
        if tree.args.get("laterals"):
            raise Unsuited("OVER with LATERAL VIEW has no rule: unnest in a subquery")
        sources, columns = self._sources(tree)
        items = _expanded(tree, sources, columns)
        if len(items) != len(names):
            raise Unsuited("its columns could not be counted")
        qualify = tree.args.get("qualify")
        aliases = aliases_of(items)
        windows = Windows([unaliased(item) for item in items], with_aliases(qualify.this, aliases) if qualify else None)
        where = tree.args.get("where")
        rows = Select(
            tuple(sources),
            (*(sql_of(key) for key in windows.keys), *windows.arguments),
            (
                *(f"_sw_g{index}" for index in range(len(windows.keys))),
                *(f"_sw_x{index}" for index in range(len(windows.arguments))),
            ),
            sql_of(where.this) if where else None,
            ties=ties_of(tree, sources, columns),
            free=(free := free_sources(tree, sources, columns)),
            filters=filters_of(tree, sources, columns, free),
            origins=tuple(origin_of(node, sources, columns) for node in (*windows.keys, *windows.columns)),
        )
        return Partitioned(rows, len(windows.keys), windows.items, names, windows.qualify, windows.made_total)

    def _group_keys(self, tree: exp.Select) -> list[exp.Expr]:
        if grouping_sets(tree) is not None:
            raise Unsuited("OVER together with grouping sets has no rule: group in a subquery")
        return _keys(tree, tree.expressions, list(self._scope(tree).values()))

    def _scope(self, tree: exp.Query) -> dict[str, tuple[str, ...]]:
        """The sources of a SELECT by alias, each with its columns."""
        found: dict[str, tuple[str, ...]] = {}
        start = tree.args.get("from_")
        for item in [*([start.this] if start else []), *(join.this for join in tree.args.get("joins") or ())]:
            if isinstance(item, exp.Table) and item.name.lower() in self._columns:
                found[(item.alias or item.name).lower()] = self._columns[item.name.lower()]
            elif isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
                alias = item.args.get("alias")
                listed = tuple(column.name for column in alias.columns) if alias else ()
                found[item.alias.lower() or f"_sw_s{len(found)}"] = listed or _names_of(item.this, self._columns)
            else:
                raise Unsuited(f"{item.key.upper()} in FROM has no rule")
        return found

    # -- SELECT -------------------------------------------------------------------------------------------------------

    def _select(self, tree: exp.Select, names: tuple[str, ...] | None) -> Select:
        tree = SubqueryJoins(self._scope).applied(with_lateral_views(tree))
        _refuse_expressions(tree)
        sources, columns = self._sources(tree)
        items = _expanded(tree, sources, columns)
        found = names or _item_names(items)
        if len(found) != len(items):
            raise Unsuited("its columns could not be counted")
        laterals = " ".join(sql_of(each) for each in tree.args.get("laterals") or ())
        generates = bool(laterals) or any(_generates(item) for item in items)
        where = tree.args.get("where")
        texts = tuple(sql_of(unaliased(item)) for item in items)
        condition = sql_of(where.this) if where else None
        ties = ties_of(tree, sources, columns)
        origins = tuple(origin_of(unaliased(item), sources, columns) for item in items)
        free = free_sources(tree, sources, columns)
        filters = filters_of(tree, sources, columns, free)
        return Select(tuple(sources), texts, found, condition, laterals, generates, ties, origins, free, filters)

    def _sources(self, tree: exp.Select) -> tuple[list[Source], list[tuple[str, ...]]]:
        """What a SELECT reads, and the columns of each."""
        start = tree.args.get("from_")
        sources: list[Source] = []
        columns: list[tuple[str, ...]] = []
        for join in (*([None] if start else []), *(tree.args.get("joins") or ())):
            item = start.this if join is None and start else join.this
            source, names = self._source(item, len(sources))
            if join is not None and sources:  # without a FROM, a subquery that became a join is the first
                source = _joined(source, join, sources)
            sources.append(source)
            columns.append(names)
        return sources, columns

    def _source(self, item: exp.Expr, number: int) -> tuple[Source, tuple[str, ...]]:
        if item.args.get("joins"):
            raise Unsuited("a join in parentheses has no rule")
        if item.args.get("sample"):
            raise Unsuited("TABLESAMPLE has no rule")
        if item.args.get("pivots"):
            raise Unsuited("PIVOT has no rule")
        if isinstance(item, exp.Table) and item.name.lower() in self._columns:
            placeholder = item.name.lower()
            alias = item.args.get("alias")
            if alias and alias.columns:
                raise Unsuited("an alias with columns has no rule")
            relation = int(placeholder.removeprefix("_sw_rel"))
            return Source(relation, item.alias or item.name), self._columns[placeholder]
        if isinstance(item, exp.Subquery):
            alias = item.args.get("alias")
            listed = tuple(column.name for column in alias.columns) if alias else ()
            rows = self._nested(item.this, listed or None)
            plain = _plain_relation(rows)
            return Source(rows if plain is None else plain, item.alias or f"_sw_s{number}"), rows.names
        if isinstance(item, exp.Values):
            rows = _values(item)
            return Source(rows, item.alias or f"_sw_s{number}"), rows.names
        raise Unsuited(f"{item.key.upper()} in FROM has no rule")

    # -- GROUP BY -----------------------------------------------------------------------------------------------------

    def _group(self, tree: exp.Select, names: tuple[str, ...]) -> Group:
        if tree.args.get("distinct"):
            if tree.args["distinct"].args.get("on"):
                raise Unsuited("DISTINCT ON has no rule")
            inner = tree.copy()
            inner.set("distinct", None)
            return self._timed(_distinct(self._rows(inner, names), names))
        tree = SubqueryJoins(self._scope).applied(tree)
        _refuse_expressions(tree)
        sources, columns = self._sources(tree)
        if tree.args.get("laterals"):
            raise Unsuited("GROUP BY over LATERAL VIEW has no rule: unnest in a subquery")
        items = _expanded(tree, sources, columns)
        keys = _keys(tree, items, columns)
        if any(each.name.lower() == "session_window" for key in keys for each in key.find_all(exp.Anonymous)):
            raise Unsuited("session_window() depends on other rows, and has no rule here")
        time = self._time(sources, columns)
        grouping = Grouping(keys, time)
        outputs = tuple(sql_of(grouping.replaced(unaliased(item))) for item in items)
        having = tree.args.get("having")
        aliases = aliases_of(items)
        condition = sql_of(grouping.replaced(with_aliases(having.this, aliases))) if having else None
        where = tree.args.get("where")
        rows = Select(
            tuple(sources),
            (*(sql_of(key) for key in keys), *grouping.arguments),
            (*(f"_sw_g{index}" for index in range(len(keys))), *(f"_sw_x{i}" for i in range(len(grouping.arguments)))),
            sql_of(where.this) if where else None,
            ties=ties_of(tree, sources, columns),
            free=(free := free_sources(tree, sources, columns)),
            filters=filters_of(tree, sources, columns, free),
            origins=tuple(origin_of(key, sources, columns) for key in keys),
        )
        if len(outputs) != len(names):
            raise Unsuited("its columns could not be counted")
        return self._timed(Group(rows, len(keys), (), tuple(grouping.aggregates), outputs, names, condition))

    def _timed(self, group: Group) -> Group:
        """A group that knows which of its keys is event time, or a bucket of it."""
        transfers = transfers_of(group.rows, self._times)[: group.keys]
        key = next((index for index, transfer in enumerate(transfers) if transfer is not None), None)
        window = transfers[key] if key is not None else None
        if window is None or not window.every or window.zone or window.shift or not self._is_numbered(group.rows):
            return dataclasses.replace(group, time_key=key)
        bits = 63 - window.size.bit_length()
        aggregates = group.aggregates
        if bits >= _BITS:
            aggregates = tuple(
                dataclasses.replace(each, since=f"_sw_g{key}", bits=bits) if _is_by_time(each) else each
                for each in aggregates
            )
        return dataclasses.replace(group, time_key=key, aggregates=aggregates)

    def _is_numbered(self, rows: Rows) -> bool:
        """Whether the identities of rows are the numbers of a table's rows."""
        if not isinstance(rows, Select) or rows.generates or len(rows.sources) != 1:
            return False
        relation = rows.sources[0].input
        return relation in self._tables if isinstance(relation, int) else self._is_numbered(relation)

    def _time(self, sources: list[Source], columns: list[tuple[str, ...]]) -> exp.Column | None:
        """The time column of the first source that has one."""
        probe = Select(tuple(sources), (), ())
        for index, names in enumerate(columns):
            for name in names:
                if is_time(probe, index, name, self._times):
                    return column(sources[index].alias, name)
        return None


def _plain_relation(rows: Rows) -> int | None:
    """The relation that some rows are, if they are one as it is."""
    if isinstance(rows, UnionAll) or len(rows.sources) != 1 or rows.where or rows.generates:
        return None
    is_plain = rows.items == tuple(quote(name) for name in rows.names)
    relation = rows.sources[0].input
    return relation if is_plain and isinstance(relation, int) and relation < 0 else None


def _values(item: exp.Values) -> UnionAll:
    """Rows that are written out: each is a SELECT that reads nothing."""
    alias = item.args.get("alias")
    rows = [each.expressions if isinstance(each, exp.Tuple) else [each] for each in item.expressions]
    names = tuple(column.name for column in alias.columns) if alias else ()
    names = names or tuple(f"col{number + 1}" for number in range(len(rows[0])))
    if any(len(each) != len(names) for each in rows):
        raise Unsuited("VALUES of rows of several lengths have no rule")
    return UnionAll(tuple(Select((), tuple(map(sql_of, each)), names) for each in rows), names)


def _distinct(rows: Rows, names: tuple[str, ...]) -> Group:
    """Each row once: a group for all of its columns."""
    outputs = tuple(f"_sw_g{index}" for index in range(len(names)))
    if isinstance(rows, Select):
        keyed = dataclasses.replace(rows, names=outputs)
    else:
        keyed = Select((Source(rows, "_sw_d"),), tuple(quote(name) for name in rows.names), outputs)
    return Group(keyed, len(names), (), (), outputs, names, distinct=True)


def _keys(tree: exp.Select, items: list[exp.Expr], columns: list[tuple[str, ...]]) -> list[exp.Expr]:
    """The expressions of GROUP BY, with positions and names of outputs resolved."""
    group = tree.args.get("group")
    if group is None:
        return []
    for form in ("rollup", "cube", "grouping_sets", "totals"):
        if group.args.get(form):
            raise Unsuited(f"{form.replace('_', ' ').upper()} has no rule")
    if group.args.get("all"):
        return [unaliased(item) for item in items if not has_aggregate(item)]
    known = {name.lower() for names in columns for name in names}
    aliases = aliases_of(items)
    keys: list[exp.Expr] = []
    for expression in group.expressions:
        if isinstance(expression, exp.Rollup | exp.Cube | exp.GroupingSets):
            raise Unsuited(f"{expression.key.upper()} has no rule")
        if isinstance(expression, exp.Literal) and not expression.is_string:
            position = int(expression.this)
            if not 1 <= position <= len(items):
                raise Unsuited(f"GROUP BY {position} is no column")
            expression = unaliased(items[position - 1])
        elif isinstance(expression, exp.Column) and not expression.table:
            name = expression.name.lower()
            if name not in known and name in aliases:
                expression = aliases[name]
        if expression not in keys:
            keys.append(expression)
    if not keys:
        raise Unsuited("GROUP BY without keys has no rule")
    return keys


def _joined(source: Source, join: exp.Join, before: list[Source]) -> Source:
    side, kind, method = join.side.upper(), join.kind.upper(), (join.method or "").upper()
    if method:
        raise Unsuited(f"{method} JOIN has no rule")
    if isinstance(join.this, exp.Lateral):
        raise Unsuited("LATERAL has no rule")
    on, using = join.args.get("on"), join.args.get("using")
    if kind in ("SEMI", "ANTI"):
        how = Join.SEMI if kind == "SEMI" else Join.ANTI
    elif side in ("LEFT", "RIGHT", "FULL"):
        how = {"LEFT": Join.LEFT, "RIGHT": Join.RIGHT, "FULL": Join.FULL}[side]
    else:
        how = Join.INNER if on or using else Join.CROSS
    if how in (Join.RIGHT, Join.FULL) and len(before) > 1:
        raise Unsuited(f"{how.value} behind another join has no rule")
    if using:
        if how != Join.INNER:
            raise Unsuited(f"{how.value} with USING has no rule: write ON")
        condition = f"USING ({', '.join(sql_of(each) for each in using)})"
    else:
        condition = f"ON {sql_of(on)}" if on else ""
    return Source(source.input, source.alias, how, condition)


def _expanded(tree: exp.Select, sources: list[Source], columns: list[tuple[str, ...]]) -> list[exp.Expr]:
    """The items of a SELECT, each star as the columns it stands for."""
    items: list[exp.Expr] = []
    for item in tree.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if not isinstance(star, exp.Star):
            items.append(item)
            continue
        if any(star.args.get(part) for part in ("except_", "replace", "rename")):
            raise Unsuited("a star with EXCEPT has no rule")
        if any(source.condition.startswith("USING") for source in sources) and not isinstance(item, exp.Column):
            raise Unsuited("* over a join with USING has no rule: name the columns")
        if tree.args.get("laterals"):
            raise Unsuited("* with LATERAL VIEW has no rule: name the columns")
        wanted = item.table.lower() if isinstance(item, exp.Column) else None
        found = [
            exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(source.alias, quoted=True))
            for source, names in zip(sources, columns, strict=True)
            if source.is_kept and wanted in (None, source.alias.lower()) and not source.alias.startswith(ALIAS)
            for name in names
        ]
        if not found:
            raise Unsuited(f"{sql_of(item)} is no source")
        items.extend(found)
    return items


def _item_names(items: list[exp.Expr]) -> tuple[str, ...]:
    names = tuple(item.alias_or_name for item in items)
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise Unsuited("a column of a subquery has no name of its own")
    return names


def _names_of(tree: exp.Query, columns: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The outputs of a query that becomes a hidden block."""
    first: exp.Expr = tree
    while not isinstance(first, exp.Select):
        if not isinstance(first, exp.Union | exp.Except | exp.Intersect | exp.Subquery):
            raise Unsuited(f"{first.key.upper()} has no rule")
        first = first.this
    items = first.expressions
    if any(
        isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
        for item in items
    ):
        decomposer = Decomposer(columns)
        sources, found = decomposer._sources(first)
        items = _expanded(first, sources, found)
    return _item_names(items)


def _refuse_order(tree: exp.Expr) -> None:
    """What puts rows in an order of their own; an ORDER BY alone says nothing about the rows that are there."""
    for part, name in (("sort", "SORT BY"),
                       ("cluster", "CLUSTER BY"), ("distribute", "DISTRIBUTE BY")):  # fmt: skip
        if tree.args.get(part):
            raise Unsuited(f"{name} has no rule")


_BITS = 37
"""A window that leaves fewer bits for the numbers of rows, one of more than a minute, is not worth the risk."""


def _is_by_time(aggregate: Aggregate) -> bool:
    return aggregate.function in ("first", "first_value", "last", "last_value") and len(aggregate.arguments) == 2


def _is_limited(tree: exp.Query) -> bool:
    return bool(tree.args.get("limit") or tree.args.get("offset"))


def _refuse_expressions(tree: exp.Select, *, windows: bool = False) -> None:
    """What may stand in any expression and makes a row depend on others."""
    parts = [*tree.expressions, tree.args.get("where"), tree.args.get("having"), tree.args.get("group")]
    for join in tree.args.get("joins") or ():
        parts.append(join.args.get("on"))
    for part in parts:
        if part is None:
            continue
        if part.find(exp.Window) and not windows:
            raise Unsuited("OVER together with GROUP BY has no rule: group in a subquery")
        if has_subquery(part):
            raise Unsuited("a subquery in such an expression has no rule")


def _is_grouped(tree: exp.Select) -> bool:
    return bool(tree.args.get("group") or tree.args.get("having") or any(map(has_aggregate, tree.expressions)))


def _generates(item: exp.Expr) -> bool:
    return any(
        isinstance(node, exp.Explode | exp.Posexplode | exp.Inline) or
        (is_call(node, "window") and len(node.expressions) > 2) or
        (isinstance(node, exp.Anonymous) and node.name.lower() in _GENERATORS)
        for node in item.walk()
    )  # fmt: skip


def _first_line(error: BaseException) -> str:
    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()
    return lines[0] if lines else type(error).__name__


__all__ = ["Decomposer", "Unsuited"]

"""Inspection: what can be told of relations without changing anything; SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

from stepwell.catalog import control, files, relations, views
from stepwell.engine.define.analysis import Analyzed, analyze
from stepwell.engine.define.creation import require_policy, view_called
from stepwell.engine.definitions import Definitions, load
from stepwell.engine.inspect.verify import Verdict
from stepwell.engine.maintain.workspace import Workspace
from stepwell.engine.read.lineage import paths
from stepwell.engine.read.naming import is_system, relation_called
from stepwell.engine.read.system import SYSTEM_TABLES, read_system_table
from stepwell.engine.runtime import Runtime
from stepwell.graph import DrawnRelation
from stepwell.model.create_statement import create_statement
from stepwell.model.epochs import Epoch
from stepwell.model.errors import StepwellError
from stepwell.model.relations import Relation, RelationKind
from stepwell.model.rows import Rows
from stepwell.model.types import quote
from stepwell.model.views import RelationId, ViewState
from stepwell.plan.blocks import Block, inputs_of
from stepwell.plan.steps import Rule, plan_step, usual_rules
from stepwell.sql import Composition, find_references
from stepwell.sql.statements import (
    Describe,
    ExplainCreate,
    ExplainRefresh,
    Inspection,
    Name,
    ShowCreate,
    ShowDependencies,
    ShowLineage,
    ShowTables,
    ShowViews,
    ShowWatermarks,
    Slice,
)


def answer_inspection(runtime: Runtime, body: Inspection) -> Rows:
    """The answer to a question about relations."""
    match body:
        case ShowTables():
            return _show_tables(runtime)
        case ShowCreate(name):
            with runtime.catalog.read() as tx:
                relation = relation_called(tx, name)
            return Rows(["name", "statement"], [(name.last, create_text(runtime, relation))])
        case Describe(name):
            return _describe(runtime, name)
        case ShowViews():
            return _show_views(runtime)
        case ShowWatermarks():
            table = SYSTEM_TABLES["watermarks"]
            with runtime.catalog.read() as tx:
                return Rows([column.name for column in table.columns], table.read(tx, runtime))
        case ShowDependencies(name):
            with runtime.catalog.read() as tx:
                relation = relation_called(tx, name)
            known = load(runtime)
            paths = [" -> ".join(map(known.name, path)) for path in known.graph.paths(relation.id)]
            return Rows(["path"], [(path,) for path in paths])
        case ShowLineage(name, column):
            with runtime.catalog.read() as tx:
                relation = relation_called(tx, name)
            return _show_lineage(load(runtime), relation, column)
        case ExplainCreate(view):
            analyzed = analyze(runtime, view)
            require_policy(view, analyzed.plan)
            known = load(runtime)
            numbers = {-index - 1: f"part {index + 1}" for index in range(len(analyzed.plan.hidden))}
            names = {**{int(id_): each.name for id_, each in known.by_id.items()}, **numbers}
            rows = []
            for index, block in enumerate((*analyzed.plan.hidden, analyzed.plan.root)):
                title = f"part {index + 1}" if index < len(analyzed.plan.hidden) else view.name.last
                rows.extend(_explained(title, block, names))
            rows.extend(_explained_times(view.name.last, analyzed))
            return Rows(["part", "block", "rule", "why", "reads"], rows)
        case ExplainRefresh(name):
            with runtime.catalog.read() as tx:
                relation = view_called(tx, name)
            return _explain_refresh(runtime, relation)


def differences(view: Relation, verdict: Verdict) -> list[str]:
    """A sample of what VERIFY has found, a line a row."""
    names = [column.name for column in view.columns]
    return [
        f"{'missing' if row[0] == 1 else 'unexpected'}: "
        + ", ".join(
            f"{name} = {'NULL' if value is None else value}" for name, value in zip(names, row[1:], strict=True)
        )
        for row in verdict.sample
    ]


def graph_nodes(runtime: Runtime) -> list[DrawnRelation]:
    """The relations that users made, parents before children, to be drawn."""
    known = load(runtime)
    with runtime.catalog.read() as tx:
        records = views.get_all(tx)
    nodes = []
    for id_ in known.graph.order():
        relation = known.by_id[id_]
        state = f", {records[id_].state.value}" if id_ in records else ""
        parents = tuple(known.name(parent) for parent in known.graph.parents(id_))
        nodes.append(DrawnRelation(relation.name, f"{relation.kind.value}{state}", parents))
    return nodes


def create_text(runtime: Runtime, relation: Relation) -> str:
    """The statement that would create a relation as it is now, with the names that its parents have today."""
    if relation.definition.view is None:
        return create_statement(relation)
    known = load(runtime)
    text = relation.view.text
    where = Slice(text, 0, len(text))
    numbers: dict[str, RelationId] = {}
    parents = iter(relation.view.parents)
    replacements: dict[Slice, str] = {}
    for reference in find_references(where):
        name = reference.name.last.lower()
        if name not in numbers:
            numbers[name] = next(parents)
        today = known.name(numbers[name])
        if today.lower() != name:
            alias = "" if reference.aliased else f" AS {quote(reference.name.last)}"
            replacements[reference.slice] = f"{quote(today)}{alias}"
    return create_statement(relation, Composition().add_slice(where, replacements).text)


def _show_lineage(known: Definitions, relation: Relation, column: Slice | None) -> Rows:
    try:
        wanted = relation.columns if column is None else (relation.column(column.unquoted),)
    except StepwellError as error:
        raise error.at(column.place if column else None) from None
    rows = []
    for each in wanted:
        for path in paths(known, relation, each.name):
            source, name = path[-1]
            steps = [f"{known.name(id_)}.{step}" for id_, step in path]
            rows.append((each.name, known.name(source), name, " <- ".join(steps)))
    return Rows(["column", "source", "source_column", "path"], rows)


def _show_tables(runtime: Runtime) -> Rows:
    with runtime.catalog.read() as tx:
        found = [relation for relation in relations.get_all(tx) if not relation.is_hidden]
    return Rows(["name", "kind", "columns"], [(each.name, each.kind.value, len(each.columns)) for each in found])


def _describe(runtime: Runtime, name: Name) -> Rows:
    key: tuple[str, ...] = ()
    if is_system(name):
        columns = read_system_table(runtime, name)[0].columns
    else:
        with runtime.catalog.read() as tx:
            relation = relation_called(tx, name)
        columns, key = relation.columns, relation.key
    return Rows(
        ["name", "type", "nullable", "key"],
        [(each.name, str(each.type), each.nullable, each.name in key) for each in columns],
    )


def _show_views(runtime: Runtime) -> Rows:
    with runtime.catalog.read() as tx:
        records = views.get_all(tx)
    rows = []
    for relation in load(runtime).by_id.values():
        if relation.kind == RelationKind.MATERIALIZED:
            record = records[relation.id]
            rows.append(
                (relation.name, record.state.value, record.reflects if record.reflects >= 0 else None, record.reason)
            )
    return Rows(["name", "state", "reflects", "reason"], rows)


def _explained(title: str, block: Block, names: dict[int, str]) -> list[tuple[str, str, str, str | None, str]]:
    inputs = ", ".join(names[id_] for id_ in dict.fromkeys(inputs_of(block)))
    return [(title, what, rule.value, why, f"{_READS[rule]} {inputs}") for what, rule, why in usual_rules(block)]


def _explained_times(title: str, analyzed: Analyzed) -> list[tuple[str, str, str, str | None, str]]:
    """What a view does with event time: the rows that it judges, and what it shows of what is known."""
    found: list[tuple[str, str, str, str | None, str]] = []
    emission, timing = analyzed.emission, analyzed.timings[-1]
    if analyzed.judged is not None:
        why = "changes of windows that are final go to the late ledger"
        found.append((title, "allow lateness", "judge the delta", why, "delta of its rows"))
    if emission.is_gated:
        by = f"windows by {timing.column}" if timing else None
        found.append((title, f"emit {emission.mode.value.lower()}", Rule.EMIT.value, by, "all that is known of it"))
    return found


_READS = {
    Rule.APPLY: "delta of",
    Rule.JOIN: "delta and scan of",
    Rule.FOLD: "state, delta of",
    Rule.TOUCHED_ROWS: "delta and scan of",
    Rule.TOUCHED_GROUPS: "delta and scan of",
    Rule.TOUCHED_PARTITIONS: "delta and scan of",
    Rule.RECOMPUTE: "scan of",
}
"""What each rule looks at; a scan is of all that a relation holds, whatever has changed."""


def _explain_refresh(runtime: Runtime, view: Relation) -> Rows:
    """The steps that the next barrier would take, and what the last ones cost."""
    known = load(runtime)
    rows = []
    with runtime.catalog.read() as tx:
        records = views.get_all(tx)
    pending = _pending(runtime, known)
    affected = set(known.order.downstream([id_ for id_ in pending.moved if id_ in known.order]))
    upstream = {*known.order.upstream([view.id]), view.id}
    for id_ in known.order.in_order(upstream):
        each = known.by_id[id_]
        if not each.is_maintained:
            continue
        owner = next(
            (other.name for other in known.by_id.values() if other.definition.view and id_ in other.view.blocks), None
        )
        if records[id_].state != ViewState.RUNNING:
            step, reason = "none", f"it is in state {records[id_].state.value}"
        elif records[id_].reflects < 0:
            step, reason = "recompute and diff", "it was stopped or replaced"
        elif id_ not in affected:
            step, reason = "none", "nothing that it reads has changed"
        else:
            changes = {
                int(i.relation): pending.change(i.relation) for i in each.view.inputs if pending.delta(i.relation)
            }
            if not changes and not any(i.relation in affected for i in each.view.inputs):
                step, reason = "none", "nothing that it reads has changed"
            else:
                planned = plan_step(known.blocks[id_], each.view.policy, changes)
                step, reason = planned.rule.value, planned.reason or ""
        if step == "none" and each.view.live is not None and records[id_].state == ViewState.RUNNING:
            step, reason = Rule.EMIT.value, "if a window closes, or its interval is over"
        with runtime.catalog.read() as tx:
            last = views.last_refresh(tx, RelationId(id_))
        cost = (
            f"{last.microseconds / 1000:.0f} ms, {last.jobs} job{'s' * (last.jobs != 1)}, {last.bytes_read} bytes"
            if last
            else None
        )
        rows.append((owner or each.name, owner is not None, step, reason or None, cost))
    return Rows(["name", "is_part", "step", "why", "last_time"], rows)


class _Pending(Workspace):
    """The workspace that the next barrier would have, were it now."""

    @property
    def moved(self) -> list[RelationId]:
        return list(self._deltas)


def _pending(runtime: Runtime, known: Definitions) -> _Pending:
    with runtime.catalog.read() as tx:
        at = control.look(tx)
        written = files.written_in(tx, at.open_epoch)
    return _Pending(runtime, known.by_id, Epoch(at.open_epoch - 1), written)

"""Inspection: what can be told of relations without changing anything; SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

from stepwell.catalog import control, files, lives, relations, views
from stepwell.engine.define.analysis import Analyzed, analyze
from stepwell.engine.define.creation import require_policy, view_called
from stepwell.engine.definitions import Definitions, load, load_in
from stepwell.engine.inspect.staleness import explain_staleness
from stepwell.engine.inspect.verify import Verdict
from stepwell.engine.maintain.planning import prepare
from stepwell.engine.read.lineage import paths
from stepwell.engine.read.naming import is_system, relation_called
from stepwell.engine.read.rewriting import create_text
from stepwell.engine.read.system import SYSTEM_TABLES, read_system_table
from stepwell.engine.runtime import Runtime
from stepwell.graph import DrawnRelation
from stepwell.model.errors import StepwellError
from stepwell.model.lifecycle import reflected, runs, state_of, why_stopped
from stepwell.model.relations import Relation, RelationKind
from stepwell.model.rows import Rows
from stepwell.plan.epoch_plan import said_of_task
from stepwell.plan.steps import Rule, usual_rules
from stepwell.rules.blocks import Block, inputs_of
from stepwell.sql.statements import (
    Describe,
    ExplainCreate,
    ExplainRefresh,
    ExplainStaleness,
    Inspection,
    Name,
    ShowCreate,
    ShowDependencies,
    ShowJobs,
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
            return Rows(["name", "statement"], [(name.last, create_text(load(runtime), relation))])
        case Describe(name):
            return _describe(runtime, name)
        case ShowViews():
            return _show_views(runtime)
        case ShowWatermarks() | ShowJobs():
            table = SYSTEM_TABLES["watermarks" if isinstance(body, ShowWatermarks) else "jobs"]
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
            known = load(runtime)
            analyzed = analyze(runtime, known, view)
            require_policy(view, analyzed.plan)
            numbers = {-index - 1: f"part {index + 1}" for index in range(len(analyzed.plan.hidden))}
            names = {**{int(id_): each.name for id_, each in known.by_id.items()}, **numbers}
            rows = []
            for index, block in enumerate((*analyzed.plan.hidden, analyzed.plan.root)):
                title = f"part {index + 1}" if index < len(analyzed.plan.hidden) else view.name.last
                rows.extend(_explained(title, block, names))
            rows.extend(_explained_times(view.name.last, analyzed))
            return Rows(["part", "block", "rule", "why", "reads"], rows)
        case ExplainStaleness(name):
            return explain_staleness(runtime, name)
        case ExplainRefresh(name):
            with runtime.catalog.read() as tx:
                relation = view_called(tx, name)
            return _explain_refresh(runtime, relation)


def differences(view: Relation, verdict: Verdict) -> list[str]:
    """A sample of what VERIFY has found, a line a row or a group."""
    names = [column.name for column in view.columns]
    rows = [
        f"{'missing' if row[0] == 1 else 'unexpected'}: "
        + ", ".join(
            f"{name} = {'NULL' if value is None else value}" for name, value in zip(names, row[1:], strict=True)
        )
        for row in verdict.sample
    ]
    return [*rows, *verdict.said]


def graph_nodes(runtime: Runtime) -> list[DrawnRelation]:
    """The relations that users made, parents before children, to be drawn."""
    known = load(runtime)
    with runtime.catalog.read() as tx:
        all_lives = lives.get_all(tx)
    nodes = []
    for id_ in known.graph.order():
        relation = known.by_id[id_]
        state = f", {state_of(all_lives[id_])}" if id_ in all_lives else ""
        parents = tuple(known.name(parent) for parent in known.graph.parents(id_))
        nodes.append(DrawnRelation(relation.name, f"{relation.kind.value}{state}", parents))
    return nodes


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
        known, all_lives = load_in(runtime, tx), lives.get_all(tx)
    rows = []
    for relation in known.by_id.values():
        if relation.kind == RelationKind.MATERIALIZED:
            life = all_lives[relation.id]
            rows.append((relation.name, state_of(life).value, reflected(life), why_stopped(life, known.name)))
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
    """The plan that the next barrier would run for a view and all that it reads, and what the last ones cost."""
    with runtime.catalog.read() as tx:
        epoch = control.look(tx).open_epoch
        written = files.written_in(tx, epoch)
    ready = prepare(runtime, epoch, written)
    known = ready.definitions
    wanted = {*known.order.upstream([view.id]), view.id}
    rows = []
    for task in ready.plan.tasks:
        if task.view not in wanted:
            continue
        each = known.by_id[task.view]
        owner = next(
            (other.name for other in known.by_id.values() if other.definition.view and each.id in other.view.blocks),
            None,
        )
        with runtime.catalog.read() as tx:
            last = views.last_refresh(tx, each.id)
        cost = (
            f"{last.microseconds / 1000:.0f} ms, {last.jobs} job{'s' * (last.jobs != 1)}, {last.bytes_read} bytes"
            if last
            else None
        )
        step, why = said_of_task(task, emits=each.view.live is not None and runs(ready.lives[each.id]))
        rows.append((owner or each.name, owner is not None, step, why, cost))
    return Rows(["name", "is_part", "step", "why", "last_time"], rows)

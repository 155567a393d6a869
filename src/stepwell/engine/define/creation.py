"""Creation: views come, are replaced and go, in one transaction each; the next barrier builds what is new."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException

from stepwell.algebra.expressions import Attribute, Named
from stepwell.algebra.nodes import Scan
from stepwell.catalog import Transaction, control, deferrals, jobs, lives, relations, watermarks, writes
from stepwell.engine.define.analysis import Analyzed, analyze, output_types
from stepwell.engine.define.deferral import ONLY_DEFERRED, grouped_in, with_options
from stepwell.engine.definitions import Definitions, load, load_in
from stepwell.engine.failures import translate
from stepwell.engine.read.queries import plain_name, try_out
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import (
    ConflictError,
    DependentsError,
    InvalidDefinitionError,
    StepwellError,
    UndefinedTableError,
    UnsupportedError,
    nearest,
    warn,
)
from stepwell.model.functions import Versions
from stepwell.model.jobs import OPEN, BuildRequest, JobId, JobState
from stepwell.model.lifecycle import (
    Building,
    Life,
    Serving,
    ViewState,
    paused,
    replaced,
    resumed,
    runs,
    state_of,
    waits_for_parent,
    why_stopped,
)
from stepwell.model.relations import Column, Definition, Relation, RelationKind
from stepwell.model.views import Deferral, Input, Judge, RefreshPolicy, RelationId, ViewDefinition, ViewOptions
from stepwell.model.watermarks import Transfer
from stepwell.rules.blocks import Block, GroupBlock, RowBlock, ViewPlan, inputs_of, obstacle, renumbered, stored
from stepwell.rules.chunks import by_chunk
from stepwell.rules.groups import has_states, state_columns
from stepwell.rules.programs import key_names
from stepwell.sql import called_functions
from stepwell.sql.statements import AlterView, CreateView, DropRelations, Name, ViewAction


def analyze_view(runtime: Runtime, known: Definitions, statement: CreateView) -> Analyzed:
    """What a CREATE comes to, once it is sure that such a view can be built and kept as is asked for."""
    analyzed = analyze(runtime, known, statement)
    _require_running(runtime, known, analyzed)
    require_policy(statement, analyzed.plan)
    return analyzed


def replace_view(runtime: Runtime, statement: CreateView) -> Epoch:
    """Give a view that is there another query; the epoch that computes it."""
    name = plain_name(statement.name)
    for _ in range(runtime.limits.conflict_tries):
        known = load(runtime)
        existing = known.called(name)
        if existing is None:
            break  # dropped meanwhile
        analyzed = analyze_view(runtime, known, statement)
        if analyzed.deferral is not None or existing.deferral is not None:
            raise UnsupportedError(
                f'deferred view "{existing.name}" cannot be replaced',
                place=statement.name.slice.place,
                hint="DROP it, and CREATE the other one.",
            )
        check_replacement(runtime, known, existing, statement, analyzed)
        if statement.materialized:
            try_out(runtime, statement.query)
        with runtime.catalog.write() as tx:
            if control.lock(tx).generation != known.generation:
                continue  # something was defined or dropped meanwhile: look again
            replace_in(tx, runtime, known, existing, statement, analyzed)
            epoch = control.look(tx).open_epoch
            writes.request_barrier(tx, epoch, runtime.clock.now())
        for said in doubts(known, name, analyzed):
            warn(said)
        return epoch
    raise ConflictError(f'definitions keep changing; "{name}" was not replaced', hint="Try again.")


def _require_running(runtime: Runtime, known: Definitions, analyzed: Analyzed) -> None:
    """Refuse to build on a view that does not follow its own parents."""
    with runtime.catalog.read() as tx:
        all_lives = lives.get_all(tx)
    for each in analyzed.inputs:
        life = all_lives.get(each.relation)
        if isinstance(life, Building) and life.failed is None:
            continue  # its build comes first
        if life is not None and not runs(life):
            raise StepwellError(
                f'materialized view "{known.name(each.relation)}" does not run, so nothing can be built on it',
                detail=why_stopped(life, known.name),
                hint=f"ALTER MATERIALIZED VIEW {known.name(each.relation)} RESUME.",
                sqlstate="55000",
            )


def require_resumed(runtime: Runtime, name: Name) -> None:
    """After the barrier that follows RESUME: say so if the view has failed again."""
    with runtime.catalog.read() as tx:
        relation = view_called(tx, name)
        life = lives.get_all(tx)[relation.id]
        why = why_stopped(life, load_in(runtime, tx).name)
    if not runs(life):
        raise StepwellError(f'{relation.kind} "{relation.name}" has failed again', detail=why, sqlstate="22000")


def require_built(runtime: Runtime, names: Sequence[str]) -> None:
    """After their first barrier: take views that could not be built away again, with what reads them, and say why."""
    with runtime.catalog.write() as tx:
        control.lock(tx)
        known, all_lives = load_in(runtime, tx), lives.get_all(tx)
        found = [each for name in names if (each := known.called(name)) is not None and each.is_maintained]
        failed = [(each, why) for each in found if (why := _never_built(all_lives[each.id])) is not None]
        ids = [each.id for each, _ in failed]
        readers = [known.by_id[id_] for id_ in known.graph.downstream(ids) if id_ not in ids]
        for id_ in reversed(known.graph.in_order({*ids, *(each.id for each in readers)})):
            _drop_one(tx, known, known.by_id[id_], runtime.clock.now())
    if not failed:
        return
    (first, why), *others = failed
    said = [why, *(f'Nor could {each.kind} "{each.name}": {reason}' for each, reason in others)]
    if readers:
        missing = _listed([f'"{each.name}"' for each in readers])
        said.append(f"So there is no {missing} either.")
    raise StepwellError(
        f'{first.kind} "{first.name}" could not be built', detail=" ".join(filter(None, said)) or None, sqlstate="22000"
    )


def _never_built(life: Life) -> str | None:
    """Why a view could not be built, if that is so."""
    return life.failed if isinstance(life, Building) else None


def drop_relations(runtime: Runtime, tx: Transaction, statement: DropRelations) -> None:
    """Drop what is named; with CASCADE also all that reads it, children first."""
    known = load_in(runtime, tx)
    chosen: list[Relation] = []
    for name in statement.names:
        relation = relations.find(tx, plain_name(name))
        if relation is None:
            if statement.if_exists:
                continue
            names = [each.name for each in known.by_id.values() if each.kind == statement.kind]
            raise UndefinedTableError(
                f'{statement.kind} "{name}" does not exist', place=name.slice.place, hint=nearest(name.last, names)
            )
        if relation.kind != statement.kind:
            raise InvalidDefinitionError(
                f'"{relation.name}" is a {relation.kind}',
                place=name.slice.place,
                hint=f"Write DROP {relation.kind.value.upper()} {relation.name}.",
                sqlstate="42809",
            )
        chosen.append(relation)
    ids = [each.id for each in chosen]
    downstream = [id_ for id_ in known.graph.downstream(ids) if id_ not in ids]
    if downstream and not statement.cascade:
        readers = [f'{known.by_id[id_].kind} "{known.name(id_)}"' for id_ in downstream]
        raise DependentsError(
            f'{chosen[0].kind} "{chosen[0].name}" cannot be dropped',
            detail=f"{_listed(readers)} depend{'s' * (len(readers) == 1)} on it.",
            place=statement.names[0].slice.place,
            hint="Drop them first, or use CASCADE.",
        )
    for id_ in reversed(known.graph.in_order({*ids, *downstream})):
        _drop_one(tx, known, known.by_id[id_], runtime.clock.now())


def alter_view(runtime: Runtime, tx: Transaction, statement: AlterView) -> None:
    if statement.action == ViewAction.RENAME:
        assert statement.new_name is not None
        relations.rename(tx, _any_view(tx, statement.name).id, plain_name(statement.new_name))
        return
    relation = view_called(tx, statement.name)
    match statement.action:
        case ViewAction.SET:
            plans = [load_in(runtime, tx).blocks[id_] for id_ in (*relation.view.blocks, relation.id)]
            options = statement.options
            policy = options.policy or relation.view.policy
            priority = relation.view.priority if options.priority is None else options.priority
            _require_incremental(relation.name, policy, plans)
            deferral = _altered(relation, options, statement)
            if deferral is not None and options.schedule is not None and not deferral.paused:
                jobs.start_schedule(tx, relation.id, deferral.schedule, runtime.clock.now())
            for each in (relation, *(load_in(runtime, tx).by_id[id_] for id_ in relation.view.blocks)):
                view = dataclasses.replace(each.view, policy=policy, priority=priority, deferral=deferral)
                relations.redefine(tx, each.id, dataclasses.replace(each.definition, view=view))
        case ViewAction.PAUSE | ViewAction.RESUME:
            if relation.deferral is not None:
                _pause_schedule(runtime, tx, relation, statement)
                return
            known = load_in(runtime, tx)
            all_lives = lives.get_all(tx)
            chosen = [relation.id, *relation.view.blocks]
            resumes = statement.action == ViewAction.RESUME
            if resumes:
                chosen += _waiting(known, all_lives, chosen)
            already = _RUNS if resumes else _STANDS
            state = state_of(all_lives[relation.id])
            _require_no_build(relation, all_lives[relation.id], statement)
            if state in already:
                raise StepwellError(
                    f'{relation.kind} "{relation.name}" is {state.value} already',
                    place=statement.name.slice.place,
                    sqlstate="55000",
                )
            for id_ in chosen:
                life = all_lives[id_]
                if state_of(life) not in already:
                    lives.put(tx, id_, resumed(life) if resumes else paused(life))


def _require_no_build(relation: Relation, life: Life, statement: AlterView) -> None:
    """A view that a job builds stands still and goes on with that job."""
    if isinstance(life, Building) and life.job is not None:
        verb = statement.action.value
        raise StepwellError(
            f'{relation.kind} "{relation.name}" is being built by job {life.job}',
            place=statement.name.slice.place,
            hint=f"{verb} JOB {life.job} is what there is." if life.failed is None else "DROP it, and CREATE it again.",
            sqlstate="55000",
        )


def _altered(relation: Relation, options: ViewOptions, statement: AlterView) -> Deferral | None:
    """The deferral of a view after SET."""
    deferral = relation.deferral
    says = [getattr(options, name) for name in ONLY_DEFERRED]
    if options.deferred is not None and options.deferred != (deferral is not None):
        raise UnsupportedError(
            "a view is deferred or continuous from its creation on", place=statement.name.slice.place
        )
    if deferral is None and any(each is not None for each in says):
        raise InvalidDefinitionError(
            f'{relation.kind} "{relation.name}" is not deferred', place=statement.name.slice.place
        )
    return None if deferral is None else with_options(deferral, options)


def _pause_schedule(runtime: Runtime, tx: Transaction, relation: Relation, statement: AlterView) -> None:
    """Let the schedule of a deferred view stand still, or go on at once."""
    deferral, pauses = relation.deferral, statement.action == ViewAction.PAUSE
    assert deferral is not None
    if not deferral.schedule:
        raise StepwellError(
            f'view "{relation.name}" has no schedule: it is refreshed when somebody says REFRESH',
            place=statement.name.slice.place,
            hint=f"ALTER MATERIALIZED VIEW {relation.name} SET (schedule = INTERVAL 1 HOUR) gives it one.",
            sqlstate="55000",
        )
    if deferral.paused == pauses:
        raise StepwellError(
            f'{relation.kind} "{relation.name}" is {"paused" if pauses else "running"} already',
            place=statement.name.slice.place,
            sqlstate="55000",
        )
    view = dataclasses.replace(relation.view, deferral=dataclasses.replace(deferral, paused=pauses))
    relations.redefine(tx, relation.id, dataclasses.replace(relation.definition, view=view))
    if pauses:
        jobs.schedule(tx, relation.id, None)
    else:
        jobs.start_schedule(tx, relation.id, deferral.schedule, runtime.clock.now())


_RUNS = (ViewState.RUNNING, ViewState.CREATING)
_STANDS = (ViewState.PAUSED, ViewState.UNPOPULATED)


def _waiting(known: Definitions, all_lives: Mapping[RelationId, Life], ids: Sequence[RelationId]) -> list[RelationId]:
    """The views downstream that are paused because one of these did not run."""
    return [id_ for id_ in known.order.downstream(ids) if waits_for_parent(all_lives[id_])]


def _any_view(tx: Transaction, name: Name) -> Relation:
    """The view of this name, of whatever kind."""
    found = relations.find(tx, plain_name(name))
    return found if found is not None and found.kind == RelationKind.VIEW else view_called(tx, name)


def view_called(tx: Transaction, name: Name) -> Relation:
    """The materialized view of this name, or an error that says what it is instead."""
    try:
        relation = relations.get(tx, plain_name(name))
    except StepwellError as error:
        raise error.at(name.slice.place) from None
    if relation.kind != RelationKind.MATERIALIZED:
        raise InvalidDefinitionError(
            f'"{relation.name}" is a {relation.kind}, not a materialized view', place=name.slice.place, sqlstate="42809"
        )
    return relation


# -- registering ------------------------------------------------------------------------------------------------------


def register_view(tx: Transaction, runtime: Runtime, name: str, statement: CreateView, analyzed: Analyzed) -> Relation:
    if not statement.materialized:
        view = _plain(statement, analyzed)
        return relations.create(tx, name, Definition(RelationKind.VIEW, view=view), analyzed.columns)
    if analyzed.deferral is not None:
        return _register_deferred(tx, runtime, name, statement, analyzed, analyzed.deferral)
    definition = _definition(tx, runtime, statement, analyzed)
    relation = relations.create(tx, name, definition, analyzed.columns)
    lives.put(tx, relation.id, Building())
    return relation


def _register_deferred(
    tx: Transaction, runtime: Runtime, name: str, statement: CreateView, analyzed: Analyzed, deferral: Deferral
) -> Relation:
    """A view that no barrier maintains: nothing of it is stored yet, and its log says so."""
    group = grouped_in(analyzed.plan)
    assert group is not None
    columns = {source.relation: source.columns for source in analyzed.inputs}
    split = by_chunk(group, int(deferral.source)) if deferral.chunk else None
    plan = stored(analyzed.plan.root)
    if analyzed.plan.hidden:
        plan |= {"grouped": stored(group), "types": [str(each.type) for each in analyzed.hidden[0]]}
    view = ViewDefinition(
        statement.query.text,
        analyzed.bound,
        analyzed.parents,
        _inputs(group, columns),
        plan=plan,
        state=_create_chunk_state(tx, runtime, split, deferral.label) if split is not None else None,
        functions=_functions(runtime, statement),
        time_column=deferral.label,
        transfer=deferral.transfer,
        deferral=deferral,
    )
    relation = relations.create(tx, name, Definition(RelationKind.MATERIALIZED, view=view), analyzed.columns)
    lives.put(tx, relation.id, Serving(Epoch(control.look(tx).open_epoch - 1)))
    deferrals.register(tx, relation.id, deferral)
    if deferral.schedule:
        jobs.start_schedule(tx, relation.id, deferral.schedule, runtime.clock.now())
    return relation


def _create_chunk_state(tx: Transaction, runtime: Runtime, group: GroupBlock, label: str) -> RelationId:
    """Where the partial results of a deferred view are kept, sorted by bucket and chunk."""
    bucket = next(item.name for item, name in zip(group.items, group.names, strict=True)
                  if name == label and isinstance(item, Named))  # fmt: skip
    *keys, chunk = key_names(group)
    definition = Definition(RelationKind.STATE, key=(bucket, chunk, *(key for key in keys if key != bucket)))
    return relations.create(tx, f"_sw_{runtime.attempt()}", definition, state_columns(group)).id


def _functions(runtime: Runtime, statement: CreateView) -> Versions:
    """The functions in Python that a query calls, with their versions."""
    called = called_functions(statement.query)
    return tuple((each.key, each.version) for each in runtime.spark.functions if each.key in called)


def _plain(statement: CreateView, analyzed: Analyzed) -> ViewDefinition:
    """The definition of a view that stores nothing: of its plan only what its columns are made of."""
    plan = {"lineage": analyzed.lineage}
    return ViewDefinition(statement.query.text, analyzed.bound, analyzed.parents, analyzed.inputs, plan=plan)


def _definition(tx: Transaction, runtime: Runtime, statement: CreateView, analyzed: Analyzed) -> Definition:
    """The definition of a materialized view; its hidden blocks and its state are created on the way."""
    numbers: dict[int, int] = {}
    columns = {source.relation: source.columns for source in analyzed.inputs}
    blocks: list[RelationId] = []
    policy, priority = statement.options.policy or RefreshPolicy.AUTO, statement.options.priority or 0
    functions = _functions(runtime, statement)
    plan, hidden = analyzed.plan, analyzed.hidden
    if analyzed.emission.is_gated:  # all that is known is one more block, and the view shows a part of it
        hidden = (*hidden, analyzed.columns)
        plan = ViewPlan(_all_of(-len(hidden), analyzed.columns), (*plan.hidden, plan.root))
    for index, (block, found) in enumerate(zip(plan.hidden, hidden, strict=True)):
        numbered: Block = renumbered(block, numbers)
        state = _create_state(tx, runtime, numbered)
        timing = analyzed.timings[index]
        view = ViewDefinition(
            "",
            "",
            (),
            _inputs(numbered, columns),
            policy,
            stored(numbered),
            state,
            priority=priority,
            functions=functions,
            time_column=timing.column if timing else None,
            transfer=timing.transfer if timing else None,
            judge=_create_judge(tx, runtime, analyzed, index),
            settings=analyzed.settings,
        )
        relation = relations.create(tx, f"_sw_{runtime.attempt()}", Definition(RelationKind.BLOCK, view=view), found)
        lives.put(tx, relation.id, Building())
        blocks.append(relation.id)
        numbers[-index - 1] = relation.id
        columns[relation.id] = tuple(column.name for column in found)
    root: Block = renumbered(plan.root, numbers)
    timing = analyzed.timings[-1]
    transfer = timing.transfer if timing else None
    view = ViewDefinition(
        statement.query.text,
        analyzed.bound,
        analyzed.parents,
        _inputs(root, columns),
        policy,
        stored(root),
        _create_state(tx, runtime, root),
        tuple(blocks),
        priority=priority,
        functions=functions,
        time_column=timing.column if timing else statement.options.time_column,
        transfer=Transfer() if transfer and analyzed.emission.is_gated else transfer,
        emission=analyzed.emission,
        judge=_create_judge(tx, runtime, analyzed, len(plan.hidden)),
        live=blocks[-1] if analyzed.emission.is_gated else None,
        time_chosen=statement.options.time_column is not None,
        settings=analyzed.settings,
    )
    return Definition(RelationKind.MATERIALIZED, view=view)


def _all_of(number: int, columns: tuple[Column, ...]) -> RowBlock:
    """The rows of a block as they are."""
    names = tuple(column.name for column in columns)
    found = tuple(Attribute(index + 1, str(column.type)) for index, column in enumerate(columns))
    return RowBlock(Scan(number, found, names), found, names)


def _create_judge(tx: Transaction, runtime: Runtime, analyzed: Analyzed, index: int) -> Judge | None:
    """What judges the rows of a block, if this is the one whose rows are judged; its ledger is created on the way."""
    judged, tolerance = analyzed.judged, analyzed.emission.tolerance
    if judged is None or judged.index != index or tolerance is None:
        return None
    ledger = relations.create(tx, f"_sw_{runtime.attempt()}", Definition(RelationKind.LEDGER), analyzed.ledger)
    return Judge(judged.timing.column, judged.timing.transfer, tolerance, ledger.id)


def doubts(known: Definitions, name: str, analyzed: Analyzed) -> list[str]:
    """What a user may not have meant by the times of a view."""
    found = []
    own = analyzed.timings[-1]
    for each in analyzed.inputs:
        parent = known.by_id[each.relation]
        if not parent.is_maintained:
            continue
        allows, tolerance = parent.view.emission.lateness, analyzed.emission.tolerance
        if allows is not None and tolerance is not None and tolerance < allows:
            found.append(
                f'"{name}" allows less lateness than "{parent.name}": corrections that come later reach "{parent.name}"'
                f' alone, and are kept in "{name}$late"'
            )
        inner = parent.view.transfer if parent.view.live is None else known.by_id[parent.view.live].view.transfer
        if own is not None and inner is not None and inner.is_window and not inner.nests(own.transfer):
            found.append(
                f'the windows of "{name}" do not nest in those of "{parent.name}": a window of "{parent.name}" that'
                f" reaches into two of them counts whole in the one that it starts in"
            )
    return found


def _create_state(tx: Transaction, runtime: Runtime, block: Block) -> RelationId | None:
    if not isinstance(block, GroupBlock) or not has_states(block):
        return None
    keys, time = list(key_names(block)), block.time_key
    if time is not None:  # changes are close to each other in time, so that is what a state is sorted by first
        keys.insert(0, keys.pop(time))
    definition = Definition(RelationKind.STATE, key=tuple(keys))
    return relations.create(tx, f"_sw_{runtime.attempt()}", definition, state_columns(block)).id


def _inputs(block: Block, columns: dict[RelationId, tuple[str, ...]]) -> tuple[Input, ...]:
    return tuple(Input(RelationId(id_), columns[RelationId(id_)]) for id_ in dict.fromkeys(inputs_of(block)))


def _drop_one(tx: Transaction, known: Definitions, relation: Relation, now: int) -> None:
    parts = known.parts_of(relation) if relation.is_maintained else []
    _drop_all(tx, (relation, *parts), now)


def _drop_all(tx: Transaction, chosen: Sequence[Relation], now: int) -> None:
    ids = [each.id for each in chosen]
    _stop_builds(tx, ids, now)
    for each in chosen:
        relations.drop(tx, each.id, now)
    lives.end(tx, ids)
    watermarks.end(tx, ids)
    if any(each.deferral is not None for each in chosen):
        deferrals.forget(tx, ids)
        jobs.unschedule(tx, ids)


def _stop_builds(tx: Transaction, ids: Sequence[RelationId], now: int) -> None:
    """Let the jobs stop that build nothing else than what is dropped."""
    all_lives = lives.get_all(tx)
    numbers = {life.job for id_ in ids if isinstance(life := all_lives.get(id_), Building) and life.job is not None}
    for number in numbers:
        job = jobs.find(tx, JobId(number))
        if job is None or job.state not in OPEN or not isinstance(job.request, BuildRequest):
            continue
        left = [id_ for id_ in job.request.views if id_ not in ids and relations.by_id(tx, id_) is not None]
        if not left:
            jobs.want(tx, job, JobState.CANCELLED, now)


def abandon_builds(runtime: Runtime, number: JobId) -> None:
    """Take away the views that a job was to build, and what waits for them."""
    with runtime.catalog.write() as tx:
        control.lock(tx)
        known, all_lives = load_in(runtime, tx), lives.get_all(tx)
        ids = {
            id_
            for id_, life in all_lives.items()
            if isinstance(life, Building) and life.job == number and id_ in known.graph
        }
        for id_ in reversed(known.graph.in_order({*ids, *known.graph.downstream(list(ids))})):
            _drop_one(tx, known, known.by_id[id_], runtime.clock.now())


def require_policy(statement: CreateView, plan: ViewPlan) -> None:
    try:
        _require_incremental(statement.name.last, statement.options.policy, [*plan.hidden, plan.root])
    except StepwellError as error:
        raise error.at(statement.name.slice.place) from None


def _require_incremental(name: str, policy: RefreshPolicy | None, blocks: Sequence[Block]) -> None:
    reasons = [reason for block in blocks if (reason := obstacle(block)) is not None]
    if policy == RefreshPolicy.INCREMENTAL and reasons:
        raise UnsupportedError(
            f'view "{name}" cannot be maintained incrementally',
            detail=f"{reasons[0][0].upper()}{reasons[0][1:]}.",
            hint="Leave refresh_policy at 'auto', and it is recomputed and compared instead.",
        )


# -- replacing --------------------------------------------------------------------------------------------------------


def check_replacement(
    runtime: Runtime, known: Definitions, existing: Relation, statement: CreateView, analyzed: Analyzed
) -> None:
    """Refuse a replacement that closes a cycle or takes away what a child needs."""
    wanted = RelationKind.MATERIALIZED if statement.materialized else RelationKind.VIEW
    if existing.kind != wanted:
        raise InvalidDefinitionError(
            f'"{existing.name}" is a {existing.kind}', place=statement.name.slice.place, sqlstate="42809"
        )
    cycle = known.graph.cycle(existing.id, analyzed.parents)
    if cycle is not None:
        path = " -> ".join(known.name(id_) for id_ in cycle)
        raise InvalidDefinitionError(
            f'{existing.kind} "{existing.name}" would read from itself',
            place=statement.name.slice.place,
            detail=f"The cycle is {path}.",
            hint="Define one of these views over other relations.",
            sqlstate="42P19",
        )
    children = known.graph.children(existing.id)
    if children and existing.kind == RelationKind.VIEW:
        names = _listed([f'"{known.name(id_)}"' for id_ in children])
        raise DependentsError(
            f'view "{existing.name}" cannot be replaced: {names} read{"s" * (len(children) == 1)} it',
            place=statement.name.slice.place,
            hint="A plain view is written out in the views that read it; drop those first.",
        )
    for child in known.by_id.values():
        if child.is_maintained and any(source.relation == existing.id for source in child.view.inputs):
            _check_child(runtime, known, existing, child, analyzed.columns)


def _check_child(
    runtime: Runtime, known: Definitions, existing: Relation, child: Relation, columns: tuple[Column, ...]
) -> None:
    reader = next(
        (each for each in known.by_id.values() if each.definition.view and child.id in each.view.blocks), child
    )
    problem = None
    try:
        found = output_types(runtime, known, child, {existing.id: columns})
        if [each.type for each in found] != [each.type for each in child.columns]:
            problem = "a column of it would have another type"
    except PySparkException as error:
        problem = translate(error).message
    used = {name.lower() for source in child.view.inputs if source.relation == existing.id for name in source.columns}
    old = {column.name.lower(): column.type for column in existing.columns}
    changed = [each.name for each in columns if each.name.lower() in used and old.get(each.name.lower()) != each.type]
    if changed and problem is None:
        problem = f'column "{changed[0]}" would have another type'
    if problem is not None:
        raise DependentsError(
            f'{existing.kind} "{existing.name}" cannot be replaced: "{reader.name}" depends on it as it is',
            detail=problem,
            hint=f'Replace or drop "{reader.name}" first.',
        )


def replace_in(
    tx: Transaction, runtime: Runtime, known: Definitions, existing: Relation, statement: CreateView, analyzed: Analyzed
) -> None:
    """Give a view another query. Its rows stay until the barrier, which finds out what has changed."""
    now = runtime.clock.now()
    if not statement.materialized:
        view = _plain(statement, analyzed)
        relations.redefine(tx, existing.id, Definition(RelationKind.VIEW, view=view))
        relations.set_columns(tx, existing.id, analyzed.columns)
        return
    old = {column.name.lower(): column.type for column in existing.columns}
    retyped = any(old.get(column.name.lower(), column.type) != column.type for column in analyzed.columns)
    if retyped:  # nobody reads it: what is stored in other types is of no use
        _drop_one(tx, known, existing, now)
        register_view(tx, runtime, existing.name, statement, analyzed)
        return
    _drop_all(tx, known.parts_of(existing), now)
    relations.redefine(tx, existing.id, _definition(tx, runtime, statement, analyzed))
    relations.set_columns(tx, existing.id, analyzed.columns)
    watermarks.end(tx, [existing.id])
    watermarks.forget_late(tx, [existing.id])
    all_lives = lives.get_all(tx)
    for id_ in (existing.id, *_waiting(known, all_lives, [existing.id])):
        lives.put(tx, id_, replaced(all_lives[id_]))
    kept = {column.name.lower() for column in analyzed.columns}
    for child in known.by_id.values():
        if child.is_maintained and any(source.relation == existing.id for source in child.view.inputs):
            inputs = tuple(
                Input(source.relation, tuple(name for name in source.columns if name.lower() in kept))
                if source.relation == existing.id else source
                for source in child.view.inputs
            )  # fmt: skip
            view = dataclasses.replace(child.view, inputs=inputs)
            relations.redefine(tx, child.id, dataclasses.replace(child.definition, view=view))


def _listed(names: Sequence[str]) -> str:
    return re.sub(r", ([^,]*)$", r" and \1", ", ".join(names))

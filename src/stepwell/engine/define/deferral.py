"""Continuous aggregates at their creation: which bucket a query groups by, and why it cannot be deferred if so."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.algebra.expressions import Named
from stepwell.algebra.nodes import Join, JoinKind, Node, Scan, children_of, scans_of
from stepwell.model.durations import parse_duration
from stepwell.model.errors import InvalidDefinitionError, StepwellError, UnsupportedError
from stepwell.model.relations import Relation, can_be_time, is_integer_time
from stepwell.model.views import Deferral, Settings, ViewOptions, Width
from stepwell.model.watermarks import Transfer
from stepwell.plan.times import transfers_of
from stepwell.rules.blocks import Block, GroupBlock, ViewPlan, WindowBlock
from stepwell.rules.chunks import by_chunk
from stepwell.rules.groups import has_states
from stepwell.sql.statements import CreateView, EmitClause

ONLY_DEFERRED = (
    "lag", "from_now", "max_future", "batch", "materialized_only", "schedule", "start_offset", "end_offset",
)  # fmt: skip
"""The options that say something of deferred views only."""


def deferral_of(
    statement: CreateView, plan: ViewPlan, inputs: Sequence[Relation], settings: Settings
) -> Deferral | None:
    """What defers a view, if its statement says so and its query allows it."""
    options = statement.options
    if not options.deferred:
        said = next((name for name in ONLY_DEFERRED if getattr(options, name) is not None), None)
        if said is not None:
            said = "lag_from" if said == "from_now" else said
            raise InvalidDefinitionError(
                f"{said} is an option of deferred views",
                place=statement.name.slice.place,
                hint="WITH (refresh = 'deferred', …) makes one.",
            )
        return None
    try:
        return _deferral(statement, plan, inputs, settings)
    except StepwellError as error:
        raise error.at(statement.name.slice.place) from None


def _deferral(statement: CreateView, plan: ViewPlan, inputs: Sequence[Relation], settings: Settings) -> Deferral:
    options, name = statement.options, statement.name.last
    if statement.emit != EmitClause():
        raise InvalidDefinitionError(
            "a deferred view has no EMIT and no lateness",
            detail="It is refreshed range by range, and a read computes what is not refreshed yet.",
        )
    if settings:
        raise UnsupportedError(f"a deferred view is created under Spark's usual settings, and {settings[0][0]} is not")
    root = grouped_in(plan)
    if root is None or not root.keys or root.distinct:
        raise UnsupportedError(
            f'view "{name}" cannot be deferred: its query is not one GROUP BY over relations',
            hint="Group by a bucket of time, such as time_bucket(INTERVAL 1 DAY, ts); what else is done with its rows"
            " goes into a view on it.",
        )
    source, column, key, transfer = _bucket(name, root, inputs)
    labels = [shown for shown, item in zip(root.names, root.items, strict=True) if item_is(item, f"_sw_g{key}")]
    if isinstance(plan.root, WindowBlock):
        labels = _windowed(name, plan.root, labels)
    if not labels:
        raise UnsupportedError(f'view "{name}" cannot be deferred: it does not show the bucket that it groups by')
    scans = [scan.relation for scan in scans_of(root.rows.tree)]
    if scans.count(int(source.id)) > 1:
        raise UnsupportedError(f'view "{name}" cannot be deferred: it joins "{source.name}" with itself')
    if not _keeps(root.rows.tree, int(source.id)):
        raise UnsupportedError(
            f'view "{name}" cannot be deferred: an outer join makes rows without one of "{source.name}"',
            hint=f'Let "{source.name}" be on the side of the join that keeps its rows.',
        )
    others = [each for each in inputs if each.id != source.id]
    deferred = next((each for each in others if each.deferral is not None), None)
    if deferred is not None:
        raise UnsupportedError(f'deferred view "{deferred.name}" can only be read by its buckets, not as a dimension')
    integer = is_integer_time(source.column(column).type)
    if source.deferral is not None:
        _require_nested(name, source, column, transfer)
    dimensions = tuple(each.id for each in others)
    chunk = _chunk(root, source, column, transfer) if root is plan.root else 0
    return with_options(Deferral(source.id, column, labels[0], transfer, integer, dimensions, chunk=chunk), options)


def grouped_in(plan: ViewPlan) -> GroupBlock | None:
    """The one GROUP BY of a query, under nothing but window functions; None if it is another query."""
    match plan:
        case ViewPlan(GroupBlock() as root, ()):
            return root
        case ViewPlan(WindowBlock(), (GroupBlock() as group,)):
            return group
        case _:
            return None


def _windowed(name: str, windows: WindowBlock, labels: Sequence[str]) -> list[str]:
    """The columns in which window functions over groups show the bucket of these; each must stay inside a bucket."""

    def are_labels(block: Block) -> list[bool]:
        found = [transfers_of(block, {_GROUPED: label}) for label in labels]
        return [Transfer() in each for each in zip(*found, strict=True)]

    if not any(are_labels(windows.rows)[: windows.keys]):
        raise UnsupportedError(
            f'view "{name}" cannot be deferred: a window function looks beyond its bucket',
            hint="Let the bucket be in every PARTITION BY, or put the window functions into a view on this one.",
        )
    return [column for column, is_label in zip(windows.names, are_labels(windows), strict=True) if is_label]


_GROUPED = -1
"""The number by which window functions know the GROUP BY that they are over."""


def _chunk(root: GroupBlock, source: Relation, column: str, transfer: Transfer) -> int:
    """How wide the chunks of a bucket are, if partial results are kept for each of them; else 0.

    That is of use where a bucket can have several, and the aggregates can be put together from parts. Local buckets
    of a time zone are computed as a whole: their labels are not the times that a chunk goes by.
    """
    chunking = source.chunking
    if chunking is None or chunking.column.lower() != column.lower() or transfer.zone:
        return 0
    is_wider = bool(transfer.months) or transfer.every > chunking.width
    return chunking.width if is_wider and has_states(root) and by_chunk(root, int(source.id)) is not None else 0


def _keeps(node: Node, relation: int) -> bool:
    """Whether every row of a tree is made of a row of a relation: no outer join puts NULLs in its place."""
    if isinstance(node, Scan):
        return node.relation == relation
    if isinstance(node, Join) and node.kind not in (JoinKind.INNER, JoinKind.CROSS):
        kept = node.right if node.kind == JoinKind.RIGHT else node.left
        return node.kind != JoinKind.FULL and _keeps(kept, relation)
    return any(_keeps(each, relation) for each in children_of(node))


def with_options(deferral: Deferral, options: ViewOptions) -> Deferral:
    """A deferral with what WITH or SET says of it."""
    changes: dict[str, object] = {
        name: value
        for name in ("from_now", "max_future", "batch", "materialized_only", "schedule")
        if (value := getattr(options, name)) is not None
    }
    for name in ("lag", "start_offset", "end_offset"):
        said = getattr(options, name)
        if said is not None:
            changes[name] = _width(deferral, name, said)
    if deferral.integer and (options.from_now or options.max_future is not None):
        raise InvalidDefinitionError("a clock says nothing about times that are numbers")
    found = Deferral(**{name: changes.get(name, getattr(deferral, name)) for name in Deferral.__dataclass_fields__})  # type: ignore[arg-type]  # each under its own name
    ends = found.lag if found.end_offset is None else max(found.lag, found.end_offset)
    if found.start_offset is not None and found.start_offset <= ends:
        said = "end_offset" if ends != found.lag else "lag"
        raise InvalidDefinitionError(
            f"start_offset lies inside the {said}: nothing is left to refresh",
            hint="A refresh goes from start_offset back up to lag, or end_offset if that is more, back.",
        )
    return found


def _width(deferral: Deferral, option: str, said: Width) -> int:
    """A stretch of the view's event time, in its own unit."""
    number, duration = said
    if (number is None) == deferral.integer and number != 0:
        wanted = "a whole number" if deferral.integer else "an INTERVAL"
        is_a = "a number" if deferral.integer else "a time"
        raise InvalidDefinitionError(f'"{deferral.column}" is {is_a}, so {option} is {wanted}')
    return number if number is not None else parse_duration(duration or "")


def item_is(item: object, name: str) -> bool:
    return isinstance(item, Named) and item.name == name


def _bucket(name: str, root: GroupBlock, inputs: Sequence[Relation]) -> tuple[Relation, str, int, Transfer]:
    """The one bucket that a query groups by: the relation and the column it is over, and which of the keys it is."""
    found: list[tuple[Relation, str, int, Transfer]] = []
    for relation in inputs:
        for column in relation.columns:
            if can_be_time(column.type):
                known = transfers_of(root.rows, {int(relation.id): column.name})
                found += [
                    (relation, column.name, key, transfer)
                    for key, transfer in enumerate(known[: root.keys])
                    if transfer is not None and transfer.is_window
                ]
    if not found:
        raise UnsupportedError(
            f'view "{name}" cannot be deferred: it groups by no bucket of time',
            detail="A bucket is over a time column of one source, which no outer join fills with NULL.",
            hint="Group by time_bucket(INTERVAL 1 DAY, ts), or by a part of the time such as date_trunc('DAY', ts).",
        )
    if len(found) > 1:
        raise UnsupportedError(f'view "{name}" cannot be deferred: it groups by {len(found)} buckets of time')
    relation, column_name, key, transfer = found[0]
    if transfer.shift or (transfer.every and transfer.size != transfer.every):
        raise UnsupportedError(f'view "{name}" cannot be deferred: its windows overlap, or do not show their start')
    return relation, column_name, key, transfer


def _require_nested(name: str, source: Relation, column: str, transfer: Transfer) -> None:
    assert source.deferral is not None
    if column.lower() != source.deferral.label.lower():
        raise UnsupportedError(f'view "{name}" cannot be deferred: it does not go by the buckets of "{source.name}"')
    if not source.deferral.transfer.nests(transfer):
        raise UnsupportedError(
            f'view "{name}" cannot be deferred: buckets of "{source.name}" reach into two of its own',
            hint=f'Buckets of "{name}" must be made of whole ones of "{source.name}".',
        )

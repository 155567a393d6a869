"""Definitions: a relation back to the statement that would create it."""

from __future__ import annotations

import re

from stepwell.model.durations import format_duration
from stepwell.model.relations import Column, Relation, is_integer_time
from stepwell.model.types import quote
from stepwell.model.views import Deferral, EmitMode, RefreshPolicy


def create_statement(relation: Relation, query: str = "") -> str:
    """The CREATE of a relation, as it is now; `query` is that of a view."""
    if relation.definition.view is not None:
        columns = ", ".join(_name(each.name) for each in relation.columns)
        policy, priority = relation.view.policy, relation.view.priority
        said = [f"refresh_policy = '{policy.value}'"] if policy != RefreshPolicy.AUTO else []
        said += [f"priority = {priority}"] if priority else []
        said += [f"time_column = {_name(relation.view.time_column or '')}"] if relation.view.time_chosen else []
        said += _deferral(relation.deferral) if relation.deferral is not None else []
        options = f" WITH ({', '.join(said)})" if said else ""
        text = f"CREATE {relation.kind.value.upper()} {_name(relation.name)} ({columns}){options} AS\n{query}"
        return text + _emission(relation)
    lines = [f"{_name(each.name)} {each.type}{'' if each.nullable else ' NOT NULL'}" for each in relation.columns]
    if relation.key:
        lines.append(f"PRIMARY KEY ({', '.join(_name(name) for name in relation.key)})")
    rule = relation.definition.watermark
    if rule:
        column = relation.column(rule.column)
        lines.append(f"WATERMARK FOR {_name(column.name)} AS {_name(column.name)} - {_length(column, rule.delay)}")
    text = f"CREATE TABLE {_name(relation.name)} (\n  " + ",\n  ".join(lines) + "\n)"
    if rule:
        limits = [("idle_timeout", rule.idle_timeout), ("max_future", rule.max_future)]
        said = [f"{name} = {_interval(limit)}" for name, limit in limits if limit is not None]
        text += f" WITH ({', '.join(said)})" if said else ""
    if relation.chunking:
        column = relation.column(relation.chunking.column)
        text += f" CHUNK BY {_name(column.name)} EVERY {_length(column, relation.chunking.width)}"
    return text


def _deferral(deferral: Deferral) -> list[str]:
    """The options of a deferred view that are not as usual."""
    usual = Deferral(deferral.source, deferral.column, deferral.label, deferral.transfer)
    said = ["refresh = 'deferred'"]
    said += [f"schedule = {_interval(deferral.schedule)}"] if deferral.schedule else []
    widths = (
        ("lag", deferral.lag or None),
        ("start_offset", deferral.start_offset),
        ("end_offset", deferral.end_offset),
    )
    for name, width in widths:
        if width is not None:
            sign, size = ("-" if width < 0 else ""), abs(width)
            said.append(f"{name} = {sign}{size if deferral.integer else _interval(size)}")
    said += ["lag_from = 'now'"] if deferral.from_now else []
    said += [f"max_future = {_interval(deferral.max_future)}"] if deferral.max_future else []
    said += [f"batch = {deferral.batch}"] if deferral.batch != usual.batch else []
    return said + (["materialized_only = true"] if deferral.materialized_only else [])


def _emission(relation: Relation) -> str:
    emission = relation.view.emission
    text = ""
    if emission.is_gated:
        text += f"\nEMIT {emission.mode.value}"
        text += f" {_interval(emission.every)}" if emission.mode == EmitMode.PERIODICALLY else ""
    if emission.lateness is not None:
        time = relation.view.time_column
        is_number = time is not None and is_integer_time(relation.column(time).type)
        text += f"\nALLOW LATENESS {emission.lateness if is_number else _interval(emission.lateness)}"
    return text


def _interval(microseconds: int) -> str:
    return f"INTERVAL '{format_duration(microseconds)}'"


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quote(name)


def _length(column: Column, length: int) -> str:
    return str(length) if is_integer_time(column.type) else _interval(length)

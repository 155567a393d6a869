"""Definitions: a relation back to the statement that would create it."""

from __future__ import annotations

import re

from stepwell.model.durations import format_duration
from stepwell.model.relations import Column, Relation, is_integer_time
from stepwell.model.types import quote
from stepwell.model.views import EmitMode, RefreshPolicy


def create_statement(relation: Relation, query: str = "") -> str:
    """The CREATE of a relation, as it is now; `query` is that of a view."""
    if relation.definition.view is not None:
        columns = ", ".join(_name(each.name) for each in relation.columns)
        policy, priority = relation.view.policy, relation.view.priority
        said = [f"refresh_policy = '{policy.value}'"] if policy != RefreshPolicy.AUTO else []
        said += [f"priority = {priority}"] if priority else []
        said += [f"time_column = {_name(relation.view.time_column or '')}"] if relation.view.time_chosen else []
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

"""Definitions: a relation back to the statement that would create it."""

from __future__ import annotations

import re

from stepwell.durations import format_duration
from stepwell.relations import Column, Relation, is_integer_time
from stepwell.types import quote
from stepwell.views import RefreshPolicy


def create_statement(relation: Relation, query: str = "") -> str:
    """The CREATE of a relation, as it is now; `query` is that of a view."""
    if relation.definition.view is not None:
        columns = ", ".join(_name(each.name) for each in relation.columns)
        policy, priority = relation.view.policy, relation.view.priority
        said = [f"refresh_policy = '{policy.value}'"] if policy != RefreshPolicy.AUTO else []
        said += [f"priority = {priority}"] if priority else []
        options = f" WITH ({', '.join(said)})" if said else ""
        return f"CREATE {relation.kind.value.upper()} {_name(relation.name)} ({columns}){options} AS\n{query}"
    lines = [f"{_name(each.name)} {each.type}{'' if each.nullable else ' NOT NULL'}" for each in relation.columns]
    if relation.key:
        lines.append(f"PRIMARY KEY ({', '.join(_name(name) for name in relation.key)})")
    rule = relation.definition.watermark
    if rule:
        column = relation.column(rule.column)
        lines.append(f"WATERMARK FOR {_name(column.name)} AS {_name(column.name)} - {_length(column, rule.delay)}")
    text = f"CREATE TABLE {_name(relation.name)} (\n  " + ",\n  ".join(lines) + "\n)"
    if relation.chunking:
        column = relation.column(relation.chunking.column)
        text += f" CHUNK BY {_name(column.name)} EVERY {_length(column, relation.chunking.width)}"
    return text


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quote(name)


def _length(column: Column, length: int) -> str:
    return str(length) if is_integer_time(column.type) else f"INTERVAL '{format_duration(length)}'"

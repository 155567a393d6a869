"""Settings of a database: durations, kept in its catalog, so that every process that opens it has the same."""

from __future__ import annotations

from stepwell.catalog import settings
from stepwell.engine.runtime import Runtime
from stepwell.model.durations import format_duration, parse_duration
from stepwell.model.errors import InvalidSettingError, nearest

DATABASE_SETTINGS = {"barrier_interval": "0 seconds", "retention": "7 days"}
"""The settings there are, and what they are until somebody sets them."""


def read_setting(runtime: Runtime, name: str) -> int:
    """A setting of the database, in microseconds, as whoever set it last has it."""
    with runtime.catalog.read() as tx:
        return parse_duration(settings.get(tx, name) or DATABASE_SETTINGS[name])


def change_setting(runtime: Runtime, name: str, value: str) -> None:
    """Set it for all processes from now on."""
    if name not in DATABASE_SETTINGS:
        raise InvalidSettingError(
            f'there is no setting "{name}"',
            hint=nearest(name, DATABASE_SETTINGS) or f"There are {', '.join(DATABASE_SETTINGS)}.",
        )
    if value.strip().isdigit() and int(value) == 0:
        value = "0 seconds"
    duration = parse_duration(value)
    if duration < 0:
        raise InvalidSettingError(f"{name} cannot be negative")
    with runtime.catalog.write() as tx:
        settings.put(tx, name, format_duration(duration))

"""Settings: of a database durations, kept in its catalog for every process; of a session switches."""

from __future__ import annotations

from stepwell.catalog import settings
from stepwell.engine.runtime import BACKGROUND, EXTERNAL_CODE, Runtime
from stepwell.model.durations import format_duration, parse_duration
from stepwell.model.errors import InvalidSettingError, nearest
from stepwell.model.types import whole_number

DATABASE_SETTINGS = {"barrier_interval": "0 seconds", "publish_lag": "10 seconds", "retention": "7 days"}
"""The settings there are, and what they are until somebody sets them."""

SESSION_SETTINGS = {EXTERNAL_CODE: "false", BACKGROUND: "false"}
_SWITCHES = {"true": True, "on": True, "false": False, "off": False}


def read_setting(runtime: Runtime, name: str) -> int:
    """A setting of the database, in microseconds, as whoever set it last has it."""
    with runtime.catalog.read() as tx:
        return parse_duration(settings.get(tx, name) or DATABASE_SETTINGS[name])


def change_setting(runtime: Runtime, name: str, value: str) -> None:
    """Set it: one of the database for all processes from now on, one of the session for this one."""
    known = DATABASE_SETTINGS | SESSION_SETTINGS
    if name not in known:
        raise InvalidSettingError(
            f'there is no setting "{name}"', hint=nearest(name, known) or f"There are {', '.join(known)}."
        )
    if name in SESSION_SETTINGS:
        if value.lower() not in _SWITCHES:
            raise InvalidSettingError(f"{name} is true or false")
        setattr(runtime.switches, "background" if name == BACKGROUND else "external_code", _SWITCHES[value.lower()])
        return
    if whole_number(value.strip()) == 0:
        value = "0 seconds"
    duration = parse_duration(value)
    if duration < 0:
        raise InvalidSettingError(f"{name} cannot be negative")
    with runtime.catalog.write() as tx:
        settings.put(tx, name, format_duration(duration))

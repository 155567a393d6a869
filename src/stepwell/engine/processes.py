"""Processes of this machine: how one is named, and whether it is still running."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def this_process() -> str:
    """A name for this process that no other has, on any machine."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started_at(os.getpid())}"


def is_alive(name: str) -> bool:
    """Whether a process may still be running; one on another machine may."""
    host, pid, started = [*name.rsplit(":", 2), "", ""][:3]
    if not pid.isdigit():
        return False  # no process of ours has such a name
    if host != socket.gethostname() or not Path("/proc/self").exists():
        return True
    return _started_at(int(pid)) == started


def _started_at(pid: int) -> str:
    """When a process of this machine was started, so that its number used again is not taken for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return ""

"""A test process that is killed leaves no process behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil

import guardian

CODE = """
import subprocess, sys, time
import guardian
guardian.start()
marked = subprocess.Popen(["sleep", "600"])
named = subprocess.Popen(["sleep", "600"], env={})
guardian.guard(named.pid)
print(marked.pid, named.pid, flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_has_started_ends(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", CODE], cwd=Path(guardian.__file__).parent, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    left = [psutil.Process(int(pid)) for pid in started.stdout.readline().split()]
    assert len(left) == 2
    started.kill()
    started.communicate()
    deadline = time.monotonic() + 60
    while any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in left):
        assert time.monotonic() < deadline
        time.sleep(0.1)

"""Measuring: repeated runs, medians for us and the best of three for what we are compared with, memory, bytes read."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from stepwell.database import Database
from stepwell.engine.session import SETTINGS
from stepwell.model.rows import Rows


@dataclass
class BenchReport:
    """What a benchmark saw: a line a figure, with what it should reach and whether it does."""

    say: Callable[[str], None]
    short: list[str] = field(default_factory=list)

    def figure(self, what: str, value: str, *, reach: str = "", good: bool = True) -> None:
        verdict = "" if not reach else f"   reach {reach}: {'yes' if good else 'NO'}"
        self.say(f"{what:<58} {value:>14}{verdict}")
        if not good:
            self.short.append(what)


def stock_session(session: SparkSession) -> SparkSession:
    """A session on the same Spark with the settings it comes with: what a user without stepwell would have."""
    return session.newSession()


def null_job(session: SparkSession) -> float:
    """Seconds for Spark to do as good as nothing, once warm: the unit of small things."""
    for _ in range(10):
        session.range(1000).groupBy().count().collect()
    return median(lambda: session.range(1000).groupBy().count().collect(), 15)


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def median(action: Callable[[], object], times: int) -> float:
    return statistics.median(seconds(action) for _ in range(times))


def best_of_three(action: Callable[[], object]) -> float:
    return min(seconds(action) for _ in range(3))


def epoch_cost(db: Database) -> float:
    """Seconds that the newest epoch has taken for all of its views."""
    result = db.sql("SELECT epoch, microseconds FROM stepwell.refreshes")
    assert isinstance(result, Rows)
    rows = result.tuples()
    return float(sum(took for epoch, took in rows if epoch == rows[-1][0])) / 1e6


def jvm_pid() -> int | None:
    """The Java process that this one has started."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name == "java" and int(rest.split()[1]) == os.getpid():
            return int(folder.name)
    return None


def bytes_read() -> int:
    """Bytes that Java has read from files so far, or 0 where that cannot be known."""
    pid = jvm_pid()
    if pid is None:
        return 0
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["rchar"])


def memory() -> int:
    """Bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_memory() -> int:
    """The most bytes of memory that this process and its Java have held so far."""
    found = 0
    for pid in (os.getpid(), jvm_pid()):
        if pid is not None:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            found += next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return found


def megabytes(count: int) -> str:
    return f"{count / 2**20:.1f} MB"


def own_settings() -> str:
    """What the session that is measured is set to, in one line."""
    return ", ".join(f"{key}={value}" for key, value in SETTINGS.items())

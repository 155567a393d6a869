"""The runtime: everything the engine acts on, in one value that is handed around."""

from __future__ import annotations

import itertools
import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from stepwell.catalog import Catalog
from stepwell.engine.running import RunningStatements
from stepwell.engine.session import Spark
from stepwell.model.clock import Clock
from stepwell.storage import DeltaLogs, Warehouse

WORKERS = max(2, min(4, os.cpu_count() or 2))
"""How many views are maintained at once; the driver plans each of them, so a wide graph must not start all."""


EXTERNAL_CODE = "allow_external_code"
"""The setting of a session that lets its queries run commands and Java code, and read files."""


@dataclass
class Permissions:
    """What a session allows its queries. No view is ever allowed it."""

    external_code: bool = False


@dataclass(frozen=True)
class Runtime:
    """A warehouse, its catalog, a clock, and Spark at need."""

    catalog: Catalog
    warehouse: Warehouse
    clock: Clock
    spark: Spark
    logs: DeltaLogs
    publishing: threading.RLock = field(default_factory=threading.RLock)
    analyzing: threading.RLock = field(default_factory=threading.RLock)
    stopping: threading.Event = field(default_factory=threading.Event)
    running: RunningStatements = field(init=False)
    permissions: Permissions = field(default_factory=Permissions)
    cache: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        object.__setattr__(self, "running", RunningStatements(self.spark))

    def close(self) -> None:
        if "workers" in self.cache:
            self.workers.shutdown()
        self.catalog.close()

    def attempt(self) -> str:
        """A name for files that no other attempt has: a crash and its retry never meet."""
        return uuid.uuid4().hex[:20]

    @property
    def workers(self) -> ThreadPoolExecutor:
        """Threads for what may run beside each other; started at need, and kept, since each has its line to Spark."""
        if "workers" not in self.cache:
            self.cache["workers"] = ThreadPoolExecutor(WORKERS, thread_name_prefix="stepwell-worker")
        pool: ThreadPoolExecutor = self.cache["workers"]
        return pool

    def require_wanted(self) -> None:
        """Stop here if this thread's statement was cancelled."""
        self.running.require_wanted()

    def doing(self, what: str) -> AbstractContextManager[None]:
        """Say what goes on inside the block, to whoever asks."""
        return self.running.doing(what)

    def temporary_name(self) -> str:
        """A name for a temporary view, new in this process."""
        return f"_sw_{next(self._numbers)}"

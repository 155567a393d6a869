"""The runtime: everything the engine acts on, in one value that is handed around."""

from __future__ import annotations

import itertools
import os
import threading
import uuid
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from stepwell.catalog import Catalog
from stepwell.engine.backoff import RefoldBackOff
from stepwell.engine.costs import ViewCosts
from stepwell.engine.generations import LatestDefinitions
from stepwell.engine.running import RunningStatements
from stepwell.engine.session import Spark
from stepwell.engine.workers import WorkerPool
from stepwell.model.clock import Clock
from stepwell.model.limits import Limits
from stepwell.storage import DeltaLogs, PublishedLinks, Warehouse

EXTERNAL_CODE = "allow_external_code"
"""The setting of a session that lets its queries run commands and Java code, and read files."""


BACKGROUND = "background_ddl"
"""The setting of a session that lets statements which start a job return at once."""


@dataclass
class SessionSwitches:
    """What a session has switched on: its queries may run code of others, as no view ever may; its jobs go on alone."""

    external_code: bool = False
    background: bool = False


@dataclass(frozen=True)
class Runtime:
    """A warehouse, its catalog, a clock, Spark at need, and the limits by which they are used."""

    catalog: Catalog
    warehouse: Warehouse
    clock: Clock
    spark: Spark
    logs: DeltaLogs
    limits: Limits = field(default_factory=Limits)
    publishing: threading.RLock = field(default_factory=threading.RLock)
    analyzing: threading.RLock = field(default_factory=threading.RLock)
    stopping: threading.Event = field(default_factory=threading.Event)
    links: PublishedLinks = field(init=False)
    running: RunningStatements = field(init=False)
    switches: SessionSwitches = field(default_factory=SessionSwitches)
    definitions: LatestDefinitions = field(default_factory=LatestDefinitions)
    costs: ViewCosts = field(init=False)
    refolding: RefoldBackOff = field(default_factory=RefoldBackOff)
    workers: WorkerPool = field(init=False)
    notes: list[str] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", PublishedLinks(self.warehouse))
        object.__setattr__(self, "running", RunningStatements(self.spark, self.limits.interrupt_seconds))
        object.__setattr__(self, "costs", ViewCosts(self.catalog))
        object.__setattr__(self, "workers", WorkerPool(max(2, min(self.limits.workers, os.cpu_count() or 2))))

    def close(self) -> None:
        self.workers.close()
        self.catalog.close()

    def attempt(self) -> str:
        """A name for files that no other attempt has: a crash and its retry never meet."""
        return uuid.uuid4().hex[:20]

    def require_wanted(self) -> None:
        """Stop here if this thread's statement was cancelled."""
        self.running.require_wanted()

    def doing(self, what: str) -> AbstractContextManager[None]:
        """Say what goes on inside the block, to whoever asks."""
        return self.running.doing(what)

    def temporary_name(self) -> str:
        """A name for a temporary view, new in this process."""
        return f"_sw_{next(self._numbers)}"

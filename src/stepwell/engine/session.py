"""Spark: found, started once for the process, quiet, and used through a session of our own.

A session that the user hands in lends us its cluster; its settings, temporary views and state stay untouched.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from stepwell.engine.java import find_java, java_home_for_spark
from stepwell.engine.jvm import PlanReader, remember_classes
from stepwell.engine.meanings import recorded, usual
from stepwell.engine.private import private_folder
from stepwell.model.errors import InvalidDefinitionError, ReservedNameError, StepwellError
from stepwell.model.functions import Function
from stepwell.model.limits import Limits
from stepwell.model.views import Settings

_FILES = "spark.sql.runSQLOnFiles"

SETTINGS = {
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # An IN becomes a chain of ORs up to this length, and a range beyond it; a chain of a thousand overflows the stack.
    "spark.sql.parquet.pushdown.inFilterThreshold": "128",
    "spark.sql.optimizer.inSetConversionThreshold": "10",
    # A filter on a nested FLOAT or DOUBLE would choose row groups by statistics that know neither NaN nor −0.0.
    "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources": "",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.files.openCostInBytes": "65536",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A larger table of the driver's is not copied into the plan, where every comparison of plans compares its rows.
    "spark.sql.legacy.createHiveTableByDefault": "false",
    _FILES: "false",
}
"""What our own session is set to, whatever the one it came from says; besides what decides the meaning of queries."""


class Pace(Enum):
    """How to go about a text, by how much it reads."""

    FEW = "no compiling, no replanning: done before either would pay"
    SOME = "compiled, but planned once: whatever is joined is small enough to be sent around"
    MANY = "compiled, and planned again when sizes are known"


_EAGER = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
"""The rule by which Spark computes on small tables while it plans: also what nobody asks for, and what may fail."""

_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""What a thread's job group is made of."""

_PLACE = {"callSite.short": "stepwell", "callSite.long": ""}
"""Where Spark takes a job to come from. Without it, it walks the stack for every step of every plan, to find ours."""

_PARTITIONS = "spark.sql.shuffle.partitions"

IN_PLAN = "spark.sql.execution.arrow.localRelationThreshold"
"""Spark's setting for how many bytes of a table in memory are part of a plan."""

_PACES: dict[Pace, dict[str, str | None]] = {
    Pace.FEW: {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
    Pace.SOME: {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": None,
        "spark.sql.codegen.factoryMode": None,
    },
    Pace.MANY: {
        "spark.sql.adaptive.enabled": None,
        "spark.sql.codegen.wholeStage": None,
        "spark.sql.codegen.factoryMode": None,
    },
}
"""The settings of each pace; None is what Spark comes with."""

_QUIET = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}
logger.executor.name = org.apache.spark.executor
logger.executor.level = off
logger.scheduler.name = org.apache.spark.scheduler
logger.scheduler.level = off
logger.allocator.name = org.apache.arrow.memory
logger.allocator.level = off
logger.task.name = org.apache.spark.TaskContextImpl
logger.task.level = off
logger.codegen.name = org.apache.spark.sql.catalyst.expressions.codegen
logger.codegen.level = off
logger.datasources.name = org.apache.spark.sql.execution.datasources
logger.datasources.level = off
logger.shutdown.name = org.apache.spark.util.ShutdownHookManager
logger.shutdown.level = off
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = off
"""

_starting = threading.Lock()


class Spark:
    """Where Spark comes from; `session` starts it if that has not happened yet."""

    def __init__(self, origin: SparkSession | str | None, limits: Limits) -> None:
        self._origin = origin
        self._limits = limits
        self._session: SparkSession | None = None
        self._maintenance: list[SparkSession] = []
        self._workers: dict[tuple[int, Settings], SparkSession] = {}
        self._apart: dict[Settings, SparkSession] = {}
        self._paces: dict[int, Pace] = {}
        self._functions: dict[str, Function] = {}
        self._plans: PlanReader | None = None
        self._lock = threading.RLock()
        self._starting = False
        self._reads_files = False
        self._of_thread = threading.local()

    @property
    def is_started(self) -> bool:
        return self._session is not None

    @property
    def is_starting(self) -> bool:
        return self._starting

    @property
    def session(self) -> SparkSession:
        """Our own session. Spark is started here, at the first statement that needs it."""
        with self._lock:
            if self._is_gone():
                self._session, self._plans, self._reads_files = None, None, False
                self._maintenance.clear()
                self._workers.clear()
                self._apart.clear()
                self._paces.clear()
            if self._session is None:
                self._starting = True
                try:
                    base = self._origin if isinstance(self._origin, SparkSession) else start_spark(self._origin)
                    self._session = self._made(base)
                finally:
                    self._starting = False
            session = self._session
        self._enter_group(session)
        return session

    def _is_gone(self) -> bool:
        """Whether there was a Spark of our own, and its Java has died."""
        return self._session is not None and not isinstance(self._origin, SparkSession) and _is_java_gone()

    def maintenance(self, worker: int = 0, settings: Settings = ()) -> SparkSession:
        """A session for a worker of the barrier loop, under the settings of a view: its temporary views are its own."""
        with self._lock:
            base = self.session  # first: if Java has died, all others go with it
            if (worker, settings) not in self._workers:
                session = self._made(base, settings)
                session.conf.set("spark.sql.optimizer.excludedRules", _EAGER)
                self._workers[worker, settings] = session
                self._maintenance.append(session)
            return self._workers[worker, settings]

    def release(self, worker: int) -> None:
        """Let go of the sessions of a worker that has ended."""
        with self._lock:
            for key in [key for key in self._workers if key[0] == worker]:
                session = self._workers.pop(key)
                self._maintenance.remove(session)
                self._paces.pop(id(session), None)

    def under(self, settings: Settings) -> SparkSession:
        """A session in which queries mean what they mean under some settings: the user's own, if it has these."""
        with self._lock:
            if recorded(self.session) == settings:
                return self.session
            if settings not in self._apart:
                self._apart[settings] = self._made(self.session, settings)
            return self._apart[settings]

    @property
    def plans(self) -> PlanReader:
        """What reads the plans of this Spark."""
        if self._plans is None:
            self._plans = PlanReader(self.session)
        return self._plans

    def keep_pace(self, session: SparkSession, pace: Pace) -> None:
        """Tell a worker's session how to go about what comes next."""
        if session not in self._maintenance or self._paces.get(id(session)) == pace:
            return
        for name, value in _PACES[pace].items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
        if not _is_local(session):  # where nobody plans again, nobody joins small partitions either
            session.conf.set(
                _PARTITIONS, "8" if pace != Pace.MANY else self.session.conf.get(_PARTITIONS, None) or "200"
            )
        self._paces[id(session)] = pace

    def let_read_files(self, allowed: bool) -> None:
        """Say whether a path may stand for a table in the user's own session; in those of the barrier loop never."""
        with self._lock:
            if allowed != self._reads_files:
                self.session.conf.set(_FILES, str(allowed).lower())
                self._reads_files = allowed

    @property
    def functions(self) -> list[Function]:
        """The functions in Python that a query may call here."""
        return list(self._functions.values())

    def register(self, function: Function) -> None:
        """Let queries call a function, in every session of ours."""
        with self._lock:
            sessions = [self._session] if self._session else []
            for session in [*sessions, *self._maintenance, *self._apart.values()]:
                _let_call(session, function, again=function.key in self._functions)
            self._functions[function.key] = function

    def _made(self, base: SparkSession, settings: Settings = ()) -> SparkSession:
        session = _ours(base)
        session.conf.set(IN_PLAN, str(self._limits.in_plan_bytes))
        for name, value in settings:
            session.conf.set(name, value)
        for function in self._functions.values():
            _let_call(session, function, again=False)
        return session

    @contextmanager
    def grouped(self, group: str) -> Iterator[None]:
        """Let the jobs that this thread starts inside the block belong to a group, also if Spark starts only there."""
        self._of_thread.group, self._of_thread.before = group, None
        if self._session is not None and not self._is_gone():
            self._enter_group(self._session)
        try:
            yield
        finally:
            self._of_thread.group = None
            context = self._context()
            if context is not None and self._of_thread.before is not None and not self._is_gone():
                for name, value in self._of_thread.before.items():
                    context.setLocalProperty(name, value)

    def _enter_group(self, session: SparkSession) -> None:
        group = getattr(self._of_thread, "group", None)
        if group is None or self._of_thread.before is not None:
            return
        context = getattr(session, "sparkContext", None)
        self._of_thread.before = {}
        if context is not None:
            self._of_thread.before = {name: context.getLocalProperty(name) for name in _GROUP}
            context.setJobGroup(group, "stepwell")

    def interrupt(self, group: str) -> None:
        """Stop the jobs of a group that run now, or all of ours where there are no groups."""
        context = self._context()
        if context is not None:
            context.cancelJobGroup(group)
        elif self._session is not None:
            self._session.interruptAll()

    def tasks_of(self, group: str) -> tuple[int, int]:
        """How many tasks of a group's jobs in flight are done, of how many; 0 of 0 where nobody can tell."""
        context = self._context()
        return (0, 0) if context is None else _tasks(context, set(context.statusTracker().getJobIdsForGroup(group)))

    def tasks_beside(self, groups: Sequence[str]) -> tuple[int, int]:
        """The same for all jobs that belong to none of these groups."""
        context = self._context()
        if context is None:
            return 0, 0
        tracker = context.statusTracker()
        theirs = {job for group in groups for job in tracker.getJobIdsForGroup(group)}
        return _tasks(context, set(tracker.getActiveJobsIds()) - theirs)

    def _context(self) -> SparkContext | None:
        return getattr(self._session, "sparkContext", None)

    def begin_group(self, group: str, description: str) -> Callable[[], int]:
        """Let the jobs of this thread be counted under a name; what comes back says how many there were."""
        context = getattr(self.session, "sparkContext", None)
        if context is None:
            return lambda: 0
        context.setJobGroup(group, description)
        for name, value in _PLACE.items():
            context.setLocalProperty(name, value)
        return lambda: len(context.statusTracker().getJobIdsForGroup(group))


def _tasks(context: SparkContext, jobs: set[int]) -> tuple[int, int]:
    """How many tasks of the stages that run for these jobs are done, of how many."""
    tracker = context.statusTracker()
    active = set(tracker.getActiveStageIds())
    known = [job for number in jobs if (job := tracker.getJobInfo(number)) is not None]
    numbers = {int(stage) for job in known for stage in job.stageIds} & active
    stages = [stage for number in numbers if (stage := tracker.getStageInfo(number)) is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def _ours(base: SparkSession) -> SparkSession:
    """A new session with our settings."""
    session = base.newSession()
    for name, value in (usual() | SETTINGS).items():
        session.conf.set(name, value)
    if _is_local(session):
        session.conf.set(_PARTITIONS, str(_local_cores(session)))
    return session


def start_spark(master: str | None) -> SparkSession:
    """The process's Spark: the one that runs already, or a new one, local unless `master` or STEPWELL_SPARK differ."""
    with _starting:
        if _is_java_gone():
            _forget_java()
        running = SparkSession.getActiveSession()
        if running is not None:
            if master not in (None, running.conf.get("spark.master", None)):
                raise StepwellError(
                    f"Spark runs already in this process, with master {running.conf.get('spark.master', None)}",
                    hint="Hand in the session instead of the URL, or stop Spark first.",
                    sqlstate="55000",
                )
            return running
        logging.getLogger("SQLQueryContextLogger").disabled = True
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        java = find_java(os.environ)
        before = os.environ.get("JAVA_HOME")
        os.environ["JAVA_HOME"] = java_home_for_spark(java)
        try:
            session = _builder(master or os.environ.get("STEPWELL_SPARK")).getOrCreate()
            remember_classes(session)
            return session
        except (PySparkException, RuntimeError, OSError) as error:
            raise StepwellError(
                "Spark does not start", detail=str(error).splitlines()[0], hint="stepwell doctor says what was found.",
                sqlstate="58000",
            ) from error  # fmt: skip
        finally:
            if before is None:
                del os.environ["JAVA_HOME"]
            else:
                os.environ["JAVA_HOME"] = before


def _is_java_gone() -> bool:
    """Whether the Java that Spark ran in, started by this process, has ended."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def _forget_java() -> None:
    """Let PySpark start another Java: it remembers the one that is gone, and would go on calling it."""
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def driver_memory(total: int) -> str:
    """The heap for an embedded Spark on a machine with `total` bytes: a quarter of it, from 1 to 8 GB."""
    return f"{min(8192, max(1024, total // 4 // 2**20))}m"


def _builder(master: str | None) -> SparkSession.Builder:
    folder = private_folder()
    quiet = folder / "log4j2.properties"
    if not quiet.exists() or quiet.read_text() != _QUIET:
        new = quiet.with_name(f"log4j2.{os.getpid()}")
        new.write_text(_QUIET)
        new.replace(quiet)
    options = f"-Dlog4j.configurationFile={quiet.as_uri()} -Dlog4j2.configurationFile={quiet.as_uri()}"
    builder = (
        SparkSession.builder.appName("stepwell")
        .master(master or f"local[{os.cpu_count() or 2}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.ui.retainedJobs", "50")
        .config("spark.ui.retainedStages", "50")
        .config("spark.ui.retainedTasks", "500")
        .config("spark.sql.ui.retainedExecutions", "20")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.driver.extraJavaOptions", options)
        .config("spark.driver.maxResultSize", "512m")
        .config("spark.sql.codegen.cache.maxEntries", "1000")
        .config("spark.sql.warehouse.dir", (folder / "unused").as_uri())
        .config("spark.sql.catalogImplementation", "in-memory")
    )
    if master is None or master.startswith("local"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        builder = builder.config("spark.driver.memory", driver_memory(memory))
    if master is None or master.startswith("local"):  # nobody on another machine has any business with it
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    return builder


def _let_call(session: SparkSession, function: Function, *, again: bool) -> None:
    if not again and session.catalog.functionExists(function.name):
        raise ReservedNameError(f'"{function.name}" is a function of Spark\'s own', hint="Choose another name.")
    try:
        session.udf.register(function.name, function.call, function.returns)
    except PySparkException as error:
        raise InvalidDefinitionError(
            f'function "{function.name}" cannot return "{function.returns}"', detail=str(error).splitlines()[0]
        ) from error


def _local_cores(session: SparkSession) -> int:
    """How many cores a local Spark uses: as many as its master says, or all."""
    cores = re.fullmatch(r"local\[(\d+)(,.*)?\]|local", session.conf.get("spark.master", "") or "")
    return os.cpu_count() or 2 if cores is None else int(cores.group(1) or 1)


def _is_local(session: SparkSession) -> bool:
    return (session.conf.get("spark.master", "") or "").startswith("local")

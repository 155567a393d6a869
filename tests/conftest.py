from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import class_archive
import guardian
import stepwell
from servers import PostgresServer

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    # started in the background: what tests start would be deaf to Ctrl-C, too
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test is over before Java's second compiler has paid for itself, and on two cores it takes the time of the others.
# With the first compiler alone, 48 MB for compiled code are not enough for all that Spark plans. Each join of a few rows
# takes a page of memory, which Spark makes as large as tables of a real size would want it. Nobody reads the descriptions
# of plans that Spark writes for its web page, and its classes have been verified often enough. What a test reads is few
# rows, not worth compiling for: Spark goes about them as stepwell goes about small epochs. Larger epochs are compiled all
# the same, and under torture so is what is read.
_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn512m -XX:ReservedCodeCacheSize=256m -XX:+UnlockDiagnosticVMOptions"
    " -XX:-BytecodeVerificationRemote -Dspark.buffer.pageSize=1m -Dspark.sql.ui.explainMode=simple"
)
_UNCOMPILED = " -Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN -Dspark.sql.adaptive.enabled=false"

guardian.start()

# Two workers share two cores, and the rows of a test are few: more cores and partitions are more tasks and no more speed.
os.environ.setdefault("STEPWELL_SPARK", "local[1]")


def pytest_configure(config: pytest.Config) -> None:
    """Before the workers start, which inherit it: options for every Java that is started here."""
    if "SPARK_SUBMIT_OPTS" not in os.environ:
        needs_none = all("tests/unit" in argument or "tests/laws" in argument for argument in config.args)
        options = _JAVA if needs_none else class_archive.options(_JAVA)
        os.environ["SPARK_SUBMIT_OPTS"] = options if TORTURE else options + _UNCOMPILED


TORTURE = bool(os.environ.get("STEPWELL_TORTURE"))

settings.register_profile("usual", deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
settings.register_profile("torture", deadline=None, max_examples=1000, suppress_health_check=list(HealthCheck))
settings.load_profile("torture" if TORTURE else "usual")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[stepwell.Database]:
    """A database of its own for each test; Spark is shared by all tests of a worker."""
    with stepwell.connect(tmp_path / "warehouse") as database:
        yield database


SLOW = (
    "test_random_queries.py",
    "test_random_queries_again.py",
    "test_once_wrong.py",
    "test_docs.py",
    "test_scenarios.py",
    "test_seeded_bugs.py",
    "test_views.py",
    "test_epoch_plans.py",
    "test_emission.py",
    "test_commit_protocol.py",
    "test_view_statements.py",
    "test_many_processes.py",
    "test_tpch.py",
    "test_statements.py",
    "test_demo.py",
    "test_deferred.py",
    "test_failures.py",
    "test_oracle.py",
    "test_processes.py",
    "test_histories.py",
    "test_nexmark.py",
    "test_event_time.py",
    "test_java_kills.py",
    "test_epochs.py",
    "test_shell.py",
    "test_time_kills.py",
    "test_meanwhile.py",
    "test_many_trees.py",
    "test_page.py",
    "test_jobs.py",
    "test_rules.py",
)
"""The files that take longest, which go first, so that no worker ends alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the files that take longest go first; a worker has a whole file to itself."""
    items.sort(key=lambda item: SLOW.index(item.path.name) if item.path.name in SLOW else len(SLOW))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what tests have counted, whichever worker they ran in."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")

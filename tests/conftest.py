from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import guardian
import stepwell
from servers import PostgresServer

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    # started in the background: what tests start would be deaf to Ctrl-C, too
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test is over before Java's second compiler has paid for itself, and on two cores it takes the time of the others.
# With the first compiler alone, 48 MB for compiled code are not enough for all that Spark plans. Each join of a few rows
# takes a page of memory, which Spark makes as large as tables of a real size would want it.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -Dspark.buffer.pageSize=1m",
)

guardian.start()

# Two workers share two cores, and the rows of a test are few: more cores and partitions are more tasks and no more speed.
os.environ.setdefault("STEPWELL_SPARK", "local[1]")

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
    "test_views.py",
    "test_tpch.py",
    "test_nexmark.py",
    "test_event_time.py",
    "test_graphs.py",
    "test_windows.py",
    "test_many_processes.py",
    "test_breadth.py",
    "test_failures.py",
    "test_docs.py",
    "test_demo.py",
    "test_view_statements.py",
    "test_emission.py",
    "test_scenarios.py",
    "test_histories.py",
    "test_commit_protocol.py",
)
"""The files that take longest, which go first, so that no worker ends alone."""

WHOLE = {"test_histories.py", "test_loading.py"}
"""Files whose tests count together."""

PIECE = 6
"""How many tests of a file that share nothing go to a worker together."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests that share a fixture of their file run in one worker, and the others of it in small pieces."""
    items.sort(key=lambda item: SLOW.index(item.path.name) if item.path.name in SLOW else len(SLOW))
    alone: Counter[Path] = Counter()
    for item in items:
        shared = sorted(name for name, defined in fixtures_of(item).items() if defined[-1].scope == "module")
        piece = "" if item.path.name in WHOLE else ",".join(shared)
        if not shared and item.path.name not in WHOLE:
            piece = str(alone[item.path] // PIECE)
            alone[item.path] += 1
        item.add_marker(pytest.mark.xdist_group(f"{item.path.name}:{piece}"))


def fixtures_of(item: pytest.Item) -> Mapping[str, Sequence[pytest.FixtureDef[object]]]:
    """The fixtures that a test uses, by name."""
    found: Mapping[str, Sequence[pytest.FixtureDef[object]]] = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]  # which has no other name
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what tests have counted, whichever worker they ran in."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")

"""The leader: a process that loses the lease and takes it again has one loop at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.catalog import leases
from stepwell.engine import Leader, Runtime, open_runtime
from stepwell.engine.lead import leader as leading
from stepwell.model.epochs import Epoch
from stepwell.model.errors import DatabaseClosedError, FencedError
from stepwell.model.views import RelationId
from stepwell.storage import Warehouse


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    place = Warehouse(str(tmp_path / "w"))
    place.create()
    opened = open_runtime(place, None)
    yield opened
    opened.close()


def test_a_lease_lost_and_taken_again_never_has_two_loops(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    inside: list[int] = []
    most: list[int] = []
    amid, goes_on, again = threading.Event(), threading.Event(), threading.Event()

    def slow(runtime: Runtime, term: int) -> tuple[Epoch, list[RelationId]]:
        inside.append(term)
        most.append(len(inside))
        if len(most) == 1:
            amid.set()
            assert goes_on.wait(30)
            inside.remove(term)
            raise FencedError("another process leads this warehouse now")
        again.set()
        inside.remove(term)
        return Epoch(1), []

    monkeypatch.setattr(leading, "run_barrier", slow)
    leader = Leader(runtime)
    waiting = threading.Thread(target=lambda: _wait(leader), daemon=True)
    waiting.start()
    assert amid.wait(30)
    with runtime.catalog.write() as tx:  # somebody else takes the lease, and gives it back
        current = leases.look(tx)
        term = leases.take(tx, current, "another:1:1", 0)
        assert term is not None
        leases.release(tx, term)
    leader._lose(current.term)
    assert leader._take_lease()
    assert not again.wait(0.3)  # the new loop waits for the old one
    loops = [thread for thread in threading.enumerate() if thread.name == "stepwell-barrier" and thread.is_alive()]
    assert len(loops) == 2  # one amid an epoch it cannot commit, one that has not begun
    goes_on.set()
    assert again.wait(30)
    assert max(most) == 1
    leader.stop()
    assert not [thread for thread in loops if thread.is_alive()]


def _wait(leader: Leader) -> None:
    with contextlib.suppress(DatabaseClosedError):  # which is what a waiter hears when the leader stops
        leader.wait_readable(Epoch(1))

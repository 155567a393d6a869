"""Tasks that wait for each other: their order, how many at once, and what one that fails does to the rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.engine.workers import run_in_order


def play(
    parents: dict[int, list[int]], priorities: dict[int, int] | None = None, pause: float = 0.0, skip: int = -1
) -> tuple[list[tuple[str, int]], int]:
    """What happened in which order, and how many ran at once at most."""
    log: list[tuple[str, int]] = []
    lock = threading.Lock()
    now = most = 0

    def begin(task: int) -> Callable[[int], int] | None:
        log.append(("begin", task))
        return None if task == skip else lambda worker: work(task)

    def work(task: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(pause)
        with lock:
            now -= 1
        return task

    with ThreadPoolExecutor(3) as pool:
        run_in_order(
            pool,
            3,
            list(parents),
            parents,
            priorities or dict.fromkeys(parents, 0),
            begin,
            lambda task, _: log.append(("end", task)),
        )
    return log, most


@given(
    st.integers(1, 12).flatmap(lambda count: st.tuples(*(st.sets(st.integers(0, max(0, n - 1))) for n in range(count))))
)
def test_a_task_begins_when_its_parents_have_ended(edges: tuple[set[int], ...]) -> None:
    parents = {task: [each for each in found if each < task] for task, found in enumerate(edges)}
    log, _ = play(parents)
    assert sorted(log) == sorted([(what, task) for task in parents for what in ("begin", "end")])
    for task, found in parents.items():
        assert all(log.index(("end", each)) < log.index(("begin", task)) for each in found)


def test_what_is_ready_runs_at_once_and_not_too_much_of_it() -> None:
    _, most = play({task: [] for task in range(8)}, pause=0.02)
    assert most == 3
    _, alone = play({task: [task - 1] if task else [] for task in range(5)})
    assert alone == 1


def test_the_highest_priority_begins_first() -> None:
    log, _ = play({task: [] for task in range(6)}, {task: task for task in range(6)}, pause=0.01)
    assert [task for what, task in log if what == "begin"][:3] == [5, 4, 3]


def test_a_task_with_nothing_to_do_lets_its_children_begin() -> None:
    log, _ = play({0: [], 1: [0], 2: [1]}, skip=1)
    assert log == [("begin", 0), ("end", 0), ("begin", 1), ("begin", 2), ("end", 2)]


def test_what_end_raises_ends_all_once_what_runs_has_ended() -> None:
    finished: list[int] = []

    def begin(task: int) -> Callable[[int], int]:
        def work(worker: int) -> int:
            time.sleep(0.01 * task)
            if task == 0:
                raise ValueError("no")
            finished.append(task)
            return task

        return work

    def end(task: int, outcome: int | BaseException) -> None:
        if isinstance(outcome, BaseException):
            raise outcome

    with ThreadPoolExecutor(3) as pool, pytest.raises(ValueError, match="no"):
        run_in_order(pool, 3, [0, 1, 2, 3], {task: [] for task in range(4)}, dict.fromkeys(range(4), 0), begin, end)
    assert finished == [1, 2]

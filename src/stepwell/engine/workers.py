"""Workers: tasks that wait for each other, run beside each other as far as that goes.

One task alone runs where it is asked for: most cascades are chains, and a thread would only cost time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

K = TypeVar("K")
R = TypeVar("R")


class WorkerPool:
    """Threads for what may run beside each other; started at need, and kept, since each has its line to Spark."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    @property
    def threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.most, thread_name_prefix="stepwell-worker")
            return self._threads

    def close(self) -> None:
        """Wait for what runs, and end the threads."""
        with self._lock:
            if self._threads is not None:
                self._threads.shutdown()


def run_in_order(
    pool: ThreadPoolExecutor,
    most: int,
    tasks: Sequence[K],
    parents: Mapping[K, Sequence[K]],
    priorities: Mapping[K, int],
    begin: Callable[[K], Callable[[int], R] | None],
    end: Callable[[K, R | BaseException], None],
) -> None:
    """Run tasks, each when its parents among them have ended, those of the highest priority first, `most` at once.

    `begin` says what to do, given the number of a worker, or None; `end` hears what came of it, and what it raises ends
    everything once what runs has ended. Both are called here, one at a time.
    """
    waiting = list(tasks)
    unfinished = set(tasks)
    running: dict[Future[R], tuple[K, int]] = {}
    idle = list(range(most))
    try:
        while waiting or running:
            ready = [task for task in waiting if unfinished.isdisjoint(parents[task])]
            ready.sort(key=lambda task: -priorities[task])
            for task in ready[: len(idle)]:
                waiting.remove(task)
                work = begin(task)
                if work is None:
                    unfinished.remove(task)
                elif len(ready) == 1 and not running:
                    unfinished.remove(task)
                    end(task, _outcome(work))
                else:
                    worker = idle.pop()
                    running[pool.submit(work, worker)] = task, worker
            done, _ = wait(running, return_when=FIRST_COMPLETED) if running else ((), ())
            for future in done:
                task, worker = running.pop(future)
                idle.append(worker)
                unfinished.remove(task)
                end(task, future.exception() or future.result())
    finally:
        wait(running)


def _outcome(work: Callable[[int], R]) -> R | BaseException:
    try:
        return work(0)
    except BaseException as error:
        return error

"""Processes of this machine that run scenarios, each alone: one that is killed costs the run it was at, which is done again."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

MOST_TRIES = 3
"""A run whose worker dies so often fails."""


class Workers(Executor):
    """An executor of ``n`` processes. Each is a pool of its own, since a pool breaks as a whole when one of its processes dies."""

    def __init__(self, n: int) -> None:
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._all = [_Worker() for _ in range(n)]
        for worker in self._all:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(n, thread_name_prefix="fairrate")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Does a call in the next process that is idle."""
        return self._threads.submit(self._call, fn, args, kwargs)

    def _call(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        worker = self._idle.get()
        try:
            return worker.call(fn, args, kwargs)
        finally:
            self._idle.put(worker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes; ``cancel_futures`` does so at once, whatever they are at."""
        if not cancel_futures:
            self._threads.shutdown(wait=wait)
        for worker in self._all:
            worker.end()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Worker:
    """A process, begun when it is needed, and again when it has died."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._has_ended = False

    def call(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        # It takes a while to import, and a single run needs none.
        from loky import ProcessPoolExecutor

        for last in range(MOST_TRIES, 0, -1):
            self._pool = self._pool or ProcessPoolExecutor(max_workers=1, timeout=None)
            try:
                return self._pool.submit(fn, *args, **kwargs).result()
            except BrokenExecutor:
                self._kill()
                if last == 1 or self._has_ended:
                    raise

    def end(self) -> None:
        self._has_ended = True
        self._kill()

    def _kill(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, kill_workers=True)

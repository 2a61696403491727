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
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(n):
            self._idle.put(None)
        self._threads = ThreadPoolExecutor(n, thread_name_prefix="fairrate")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Does a call in the next process that is idle."""
        return self._threads.submit(self._call, fn, args, kwargs)

    def _call(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        # It takes a while to import, and a single run needs none.
        from loky import ProcessPoolExecutor

        pool = self._idle.get()
        try:
            for last in range(MOST_TRIES, 0, -1):
                pool = pool or ProcessPoolExecutor(max_workers=1, timeout=None)
                try:
                    return pool.submit(fn, *args, **kwargs).result()
                except BrokenExecutor:
                    _end(pool)
                    pool = None
                    if last == 1:
                        raise
        finally:
            self._idle.put(pool)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes; ``cancel_futures`` does so at once."""
        if cancel_futures:
            self._threads.shutdown(wait=False, cancel_futures=True)
        else:
            self._threads.shutdown(wait=wait)
        while not self._idle.empty():
            _end(self._idle.get())


def _end(pool: Any) -> None:
    if pool is not None:
        pool.shutdown(wait=False, kill_workers=True)

"""Keeps the leases of effects at work, from one thread a process, which sleeps when there are none.

An effect that ends within a third of its lease costs nothing for it.
"""

import functools
import heapq
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from dapr_runners.errors import DaprRunnersError

logger = logging.getLogger("dapr_runners")


class Renewal:
    """A lease to keep. ``renew`` writes it anew and says whether it still is ours."""

    def __init__(self, lease: float, renew: Callable[[], bool]) -> None:
        self.every = lease / 3
        self.renew = renew
        self.over = False


class Keeper(Protocol):
    """Keeps leases."""

    def keep(self, renewal: Renewal) -> None:
        """Renew from now on, until ``over`` is set."""
        ...


class Renewals:
    """The leases that this process keeps."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Renewal]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def keep(self, renewal: Renewal) -> None:
        with self._changed:
            self._push(renewal)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="dapr-runners-leases", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def _push(self, renewal: Renewal) -> None:
        at = time.monotonic() + renewal.every
        heapq.heappush(self._due, (at, next(self._numbers), renewal))

    def _run(self) -> None:
        while True:
            renewal = self._next()
            if renewal.over:
                continue
            try:
                is_ours = renewal.renew()
            except DaprRunnersError as error:
                # While the store is away nobody can take it over either; the next try is soon.
                logger.warning("renewing the lease of an effect: %s", error)
                is_ours = True
            if is_ours:
                with self._changed:
                    self._push(renewal)

    def _next(self) -> Renewal:
        with self._changed:
            while True:
                while self._due and self._due[0][2].over:
                    heapq.heappop(self._due)
                pause = self._due[0][0] - time.monotonic() if self._due else None
                if pause is not None and pause <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(pause)


def renewals() -> Renewals:
    """Those of this process."""
    return _of_process(os.getpid())


@functools.cache
def _of_process(_pid: int) -> Renewals:
    """A fork has its parent's objects, and none of the threads."""
    return Renewals()

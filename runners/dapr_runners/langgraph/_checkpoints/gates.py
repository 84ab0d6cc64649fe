"""Writers of one process take turns on a document instead of racing for its ETag.

A gate only saves retries: the ETag is what keeps writers from losing each other's work. So a wait
at a gate is bounded, and who waited too long goes on without it. That matters where a blocking
call is made on an event loop whose own task is inside the gate.
"""

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass

from dapr_runners.langgraph._checkpoints.flow import Flow, T
from dapr_runners.state import StateStore

_PATIENCE = 1.0
"""Seconds to wait at a gate."""


class Gates:
    """One gate a key, which threads and tasks pass one at a time, first come first served."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Future[None]]] = {}

    def guard(self, key: str, flow: Flow[T]) -> Flow[T]:
        """``flow``, run inside the gate of ``key``."""
        inside: bool = yield _Enter(self, key)
        try:
            return (yield from flow)
        finally:
            if inside:
                self.leave(key)

    def enter(self, key: str) -> "Future[None] | None":
        """None if the gate was free and is now the caller's, else what to wait for."""
        with self._lock:
            queue = self._waiting.get(key)
            if queue is None:
                self._waiting[key] = deque()
                return None
            waiter: Future[None] = Future()
            queue.append(waiter)
            return waiter

    def leave(self, key: str) -> None:
        """Let the next one in."""
        with self._lock:
            queue = self._waiting[key]
            while queue:
                waiter = queue.popleft()
                if waiter.set_running_or_notify_cancel():
                    waiter.set_result(None)
                    return
            del self._waiting[key]


@dataclass(frozen=True, slots=True)
class _Enter:
    """Waits for a gate; answers whether the caller is inside."""

    gates: Gates
    key: str

    def perform(self, store: StateStore) -> bool:
        waiter = self.gates.enter(self.key)
        if waiter is None:
            return True
        try:
            waiter.result(_PATIENCE)
        except TimeoutError:
            return not waiter.cancel()
        return True

    async def aperform(self, store: StateStore) -> bool:
        waiter = self.gates.enter(self.key)
        if waiter is None:
            return True
        try:
            await asyncio.wait_for(asyncio.wrap_future(waiter), _PATIENCE)
        except TimeoutError:
            return not waiter.cancel()
        except asyncio.CancelledError:
            if not waiter.cancel():
                self.gates.leave(self.key)
            raise
        return True

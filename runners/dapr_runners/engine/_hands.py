"""Threads that run synchronous steps for an event loop.

Fifty parallel steps of a tenth of a millisecond each are the usual fan-out. A thread woken for
every one of them costs more than the steps: the interpreter goes from thread to thread, and the
loop is woken for every result. Here a thread that has work to take wakes the next one before it
runs its own, takes more when it is done, and results that are there together reach the loop
together. Steps that block still run all at once.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from time import sleep  # the real one, also where a test of the user's replaces time.sleep
from typing import Any, TypeVar

from dapr_runners.engine._relay import Relay

T = TypeVar("T")

_REST = 0.0004
"""Seconds for which a thread leaves the interpreter to the loop, which sends on what it was just
told, before it does the rest of its work: nobody waits for that as soon. A step of a chain takes a
tenth less for it."""


class _Job:
    __slots__ = ("error", "future", "result")

    def __init__(self, future: "asyncio.Future[Any]") -> None:
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None

    def tell(self) -> None:
        """Give the result to whoever awaits it. On its loop."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        elif isinstance(self.error, StopIteration):
            # A future refuses it; as the step's own error it is caught before.
            failure = RuntimeError("a step raised StopIteration")
            failure.__cause__ = self.error
            self.future.set_exception(failure)
        else:
            self.future.set_exception(self.error)


class Hands:
    """Up to ``limit`` daemon threads, which start when there is work and stay."""

    def __init__(self, limit: int, name: str) -> None:
        self._limit = limit
        self._name = name
        self._lock = threading.Lock()
        self._work: deque[Callable[[], None]] = deque()
        self._idle: list[threading.Lock] = []
        self._threads = 0
        self._waking = False
        """Whether a thread was woken that has not taken work yet: it wakes the next itself."""
        self._done: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        self._closed = False
        self._local = threading.local()

    async def run(self, call: Callable[[], T]) -> T:
        """The result of ``call``, run in one of the threads."""
        job = _Job(asyncio.get_running_loop().create_future())

        def work() -> None:
            try:
                job.result = call()
            except BaseException as error:
                job.error = error
            self._finish(job)

        self._submit(work)
        return await job.future

    async def relay(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of ``coroutine``, which :class:`Relay` drives in the threads."""
        job = _Job(asyncio.get_running_loop().create_future())

        def done(result: Any, error: BaseException | None) -> None:
            job.result, job.error = result, error
            self._finish(job)

        self._submit(Relay(coroutine, self._go_on, done).run)
        return await job.future

    def after(self, call: Callable[[], Any]) -> "Future[Any]":
        """Run ``call`` in this thread, if it is one of these, when its current work is over and
        told of: nobody needs to be woken for it."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)

        later: list[Callable[[], None]] | None = getattr(self._local, "later", None)
        if later is None:
            self._go_on(work)
        else:
            later.append(work)
        return future

    def _submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._work.append(work)
            self._wake()

    def _go_on(self, work: Callable[[], None]) -> None:
        """Before everything that has not begun yet: many steps may wait for a thread, and each may
        take its time."""
        with self._lock:
            self._work.appendleft(work)
            self._wake()

    def close(self) -> None:
        """Let the threads end once there is no more work."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for gate in idle:
            gate.release()

    def _wake(self) -> None:
        """Have one more thread look for work, if there is one. Under the lock."""
        if self._waking:
            return
        if self._idle:
            self._waking = True
            self._idle.pop().release()
        elif self._threads < self._limit:
            self._waking = True
            self._threads += 1
            name = f"{self._name}_{self._threads}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        gate = threading.Lock()
        gate.acquire()
        later: list[Callable[[], None]] = []
        self._local.later = later
        work: Callable[[], None] | None = None
        woken = True
        while True:
            with self._lock:
                if woken:
                    self._waking = woken = False
                if self._work:
                    work = self._work.popleft()
                    if self._work:
                        self._wake()
                elif self._closed:
                    self._threads -= 1
                    return
                else:
                    work = None
                    self._idle.append(gate)
            if work is None:
                gate.acquire()
                woken = True
                continue
            work()
            if later:
                sleep(_REST)
            while later:
                later.pop(0)()
            work = None  # what it holds is not kept alive by a thread that waits

    def _finish(self, job: _Job) -> None:
        loop = job.future.get_loop()
        with self._lock:
            waiting = self._done.get(loop)
            if waiting is not None:
                waiting.append(job)
                return
            self._done[loop] = [job]
        try:
            loop.call_soon_threadsafe(self._tell, loop)
        except RuntimeError:  # the loop was closed: nobody awaits the result any more
            with self._lock:
                self._done.pop(loop, None)

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            jobs = self._done.pop(loop)
        for job in jobs:
            job.tell()

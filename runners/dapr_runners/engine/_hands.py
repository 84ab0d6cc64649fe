"""Threads that run synchronous steps.

Fifty parallel steps of a tenth of a millisecond each are the usual fan-out. A thread woken for
every one of them costs more than the steps: the interpreter goes from thread to thread. Here a
thread that has work to take wakes the next one before it runs its own, and takes more when it is
done. Steps that block still run all at once.
"""

import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from time import sleep  # the real one, also where a test of the user's replaces time.sleep
from typing import Any, TypeAlias

from dapr_runners.engine._relay import Relay

Done: TypeAlias = Callable[[Any, BaseException | None], None]
"""Takes a result, or what was raised instead."""


class Cut(CancelledError):
    """Work was cut short because the worker stops: others do it again."""


_REST = 0.0004
"""Seconds for which a thread leaves the interpreter to the one that sends on what was just done,
before it does the rest of its work: nobody waits for that as soon. A step of a chain takes a tenth
less for it."""


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
        self._closed = False
        self._local = threading.local()

    def open(self) -> None:
        """Have a thread from now on: where the system gives none, this raises, and nothing later
        does."""
        self._submit(lambda: None)

    def begin(self, call: Callable[[], Any], done: Done) -> None:
        """Run ``call`` in one of the threads. ``done`` gets there what it gave or raised."""

        def work() -> None:
            try:
                result = call()
            except BaseException as error:
                done(None, error)
            else:
                done(result, None)

        self._submit(work)

    def begin_relay(self, coroutine: Coroutine[Any, Any, Any], done: Done) -> None:
        """Drive ``coroutine`` in the threads, see :class:`Relay`, which calls ``done``."""
        self._submit(Relay(coroutine, self.go_on, done).run)

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
            self.go_on(work)
        else:
            later.append(work)
        return future

    def _submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._work.append(work)
            self._wake()

    def go_on(self, work: Callable[[], None]) -> None:
        """Run ``work`` in another thread than this one, before everything that has not begun yet:
        many steps may wait for a thread, and each may take its time."""
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
            name = f"{self._name}_{self._threads + 1}"
            try:
                threading.Thread(target=self._serve, name=name, daemon=True).start()
            except RuntimeError:  # the system gives no more of them
                if self._threads == 0:
                    raise
                return
            self._waking = True
            self._threads += 1

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

"""Writes that are asked for at once, sent as one call.

Whoever comes first sends its write without delay; what comes while that call is under way is sent
together in the next. A lone writer pays nothing for it, fifty parallel steps pay a few calls.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

W = TypeVar("W")
F = TypeVar("F")

_MOST = 64
"""Writes in one call."""
_MOST_BYTES = 2 << 20
"""Bytes in one call of more than one write: a sidecar takes 4 MiB."""
_BURST, _BURST_SECONDS, _GATHERING = 4, 0.01, 0.006
"""So many writes in so many seconds are gathered for so many seconds: with fifty trivial steps at
once, that saves most of the calls."""
_LOOK, _QUIET = 0.002, 0.003
"""Seconds between two looks whether more writes come, and without one after which none are waited
for: the last of fifty steps are in nobody's way any more, and the next superstep waits for them."""
_EXPECTED = 4096
"""Keys of expected writes that are kept: those of steps that never come are forgotten at last."""


class ThreadBatcher(Generic[W]):
    """For threads: ``send`` is called with a list of writes and gives a result for each."""

    def __init__(
        self, send: Callable[[list[W]], list[bool]], size: Callable[[W], int] = lambda _: 0
    ) -> None:
        self._send = send
        self._size = size
        self._lock = threading.Lock()
        self._waiting: list[tuple[W, Future[bool | None]]] = []
        self._sending = False

    def write(self, write: W) -> bool:
        """Send ``write``, alone or with others; its own result."""
        future: Future[bool | None] = Future()
        with self._lock:
            self._waiting.append((write, future))
            leads = not self._sending
            self._sending = True
        while True:
            if leads:
                self._send_first()
            result = future.result()
            if result is not None:
                return result
            # None: the one before has handed the lead on, with this write first in the queue.
            future = Future()
            with self._lock:
                self._waiting[0] = (self._waiting[0][0], future)
            leads = True

    def _send_first(self) -> None:
        with self._lock:
            batch, self._waiting = _split(self._waiting, self._size)
        try:
            results = self._send([write for write, _ in batch])
        except BaseException as error:
            for _, future in batch:
                future.set_exception(error)
        else:
            for (_, future), result in zip(batch, results, strict=True):
                future.set_result(result)
        with self._lock:
            self._sending = bool(self._waiting)
            following = self._waiting[0][1] if self._waiting else None
        if following is not None:
            following.set_result(None)


Tell = Callable[[bool, Exception | None], None]
"""Takes the result of a write, or what it raised."""


class RelayBatcher(Generic[W]):
    """For threads that do not wait: who asks for a write goes on when it is told of the result, in
    the thread that sent it.

    Parallel steps that are handed out one after the other end one after the other, each before the
    call of the one before is over. When that many writes come, they are gathered for a moment, or
    until the last that is expected has come. ``name`` gives what a write is expected by.
    """

    def __init__(
        self,
        send: Callable[[list[W]], list[bool]],
        size: Callable[[W], int] = lambda _: 0,
        name: Callable[[W], str] = lambda _: "",
    ) -> None:
        self._send = send
        self._size = size
        self._name = name
        self._lock = threading.Lock()
        self._waiting: list[tuple[W, Tell]] = []
        self._sending = False
        self._asked: deque[float] = deque([0.0] * _BURST, maxlen=_BURST)
        self._expected: dict[str, list[int]] = {}
        """By the name of a write, how many of those that were announced with it are to come."""
        self._all_came = threading.Event()

    def expect(self, names: Sequence[str]) -> None:
        """Writes of these ``names`` are to come at once, most likely."""
        to_come = [len(names)]
        with self._lock:
            self._expected.update(dict.fromkeys(names, to_come))
            while len(self._expected) > _EXPECTED:
                del self._expected[next(iter(self._expected))]

    def write(self, write: W, tell: Tell) -> None:
        """Have ``write`` sent, alone or with others. If nobody is sending, this thread does, until
        nothing is left to send. ``tell`` must not raise, nor block."""
        with self._lock:
            self._asked.append(time.monotonic())
            self._waiting.append((write, tell))
            if (to_come := self._expected.pop(self._name(write), None)) is not None:
                to_come[0] -= 1
                if not to_come[0]:
                    self._all_came.set()
            if self._sending:
                return
            self._sending = True
        while (batch := self._next()) is not None:
            self._send_batch(batch)

    def _next(self) -> list[tuple[W, Tell]] | None:
        if time.monotonic() - self._asked[0] < _BURST_SECONDS:
            self._gather()
        with self._lock:
            if not self._waiting:
                self._sending = False
                return None
            self._all_came.clear()
            batch, self._waiting = _split(self._waiting, self._size)
            return batch

    def _gather(self) -> None:
        until = time.monotonic() + _GATHERING
        while (now := time.monotonic()) < until and now - self._asked[-1] < _QUIET:
            if self._all_came.wait(_LOOK):
                return

    def _send_batch(self, batch: list[tuple[W, Tell]]) -> None:
        try:
            results = self._send([write for write, _ in batch])
        except Exception as error:
            for _, tell in batch:
                tell(False, error)
        else:
            for (_, tell), result in zip(batch, results, strict=True):
                tell(result, None)


class LoopBatcher(Generic[W]):
    """Twin of :class:`ThreadBatcher`, for one event loop."""

    def __init__(
        self,
        send: Callable[[list[W]], Awaitable[list[bool]]],
        size: Callable[[W], int] = lambda _: 0,
    ) -> None:
        self._send = send
        self._size = size
        self._waiting: list[tuple[W, asyncio.Future[bool]]] = []
        self._task: asyncio.Task[None] | None = None

    async def write(self, write: W) -> bool:
        """Send ``write``, alone or with others; its own result."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((write, future))
        if self._task is None:
            self._task = asyncio.create_task(self._send_all())
        return await future

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = _split(self._waiting, self._size)
                await self._send_batch(batch)
        finally:
            self._task = None

    async def _send_batch(self, batch: list[tuple[W, "asyncio.Future[bool]"]]) -> None:
        try:
            results = await self._send([write for write, _ in batch])
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
        else:
            for (_, future), result in zip(batch, results, strict=True):
                if not future.done():
                    future.set_result(result)


def _split(
    waiting: list[tuple[W, F]], size: Callable[[W], int]
) -> tuple[list[tuple[W, F]], list[tuple[W, F]]]:
    """The writes for one call, and the rest."""
    total = 0
    for number, (write, _) in enumerate(waiting):
        total += size(write)
        if number == _MOST or (number and total > _MOST_BYTES):
            return waiting[:number], waiting[number:]
    return waiting, []

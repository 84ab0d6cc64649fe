"""Writes that are asked for at once, sent as one call.

Whoever comes first sends its write without delay; what comes while that call is under way is sent
together in the next. A lone writer pays nothing for it, fifty parallel steps pay a few calls.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

W = TypeVar("W")
F = TypeVar("F")

_MOST = 64
"""Writes in one call."""
_MOST_BYTES = 2 << 20
"""Bytes in one call of more than one write: a sidecar takes 4 MiB."""


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

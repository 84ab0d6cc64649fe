"""The order in which the methods of flows ended. Where several end, the first decides which
listener goes on and with what (``or_``, ``and_``): a program that is driven again takes them in
turn."""

import asyncio
import threading

_ENDING = "!ended.0"
_PATIENCE = 10.0
"""Seconds to wait for a method's turn: another program may not have the method before it."""


def ending_of(path: str) -> str:
    """The key that tells that the method at ``path`` has ended, and when it was its turn."""
    return path + _ENDING


class Order:
    """Keys of the endings that are recorded and that the program has not come to again."""

    def __init__(self) -> None:
        self._ahead: list[str] = []
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._lock = threading.Lock()

    def learn(self, key: str) -> None:
        """``key`` is recorded; those before it have been learned."""
        if key.endswith(_ENDING):
            with self._lock:
                self._ahead.append(key)

    def pass_by(self, inside: str) -> None:
        """The program will not come to what is inside of ``inside``."""
        with self._lock:
            self._ahead = [key for key in self._ahead if not key.startswith(inside)]
            self._wake()

    async def turn(self, flow: str, key: str) -> None:
        """Wait until what ended before ``key``, of the flow at ``flow``, has ended again."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while (changed := self._go_on(flow, key)) is not None:
                    await changed.wait()
        except TimeoutError:
            return

    def _go_on(self, flow: str, key: str) -> asyncio.Event | None:
        """None, as it is the turn of ``key``; or what to wait for, before one asks again."""
        with self._lock:
            if next((other for other in self._ahead if other.startswith(flow)), key) != key:
                changed = asyncio.Event()
                self._waiting.append((asyncio.get_running_loop(), changed))
                return changed
            if key in self._ahead:
                self._ahead.remove(key)
                self._wake()
            return None

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for loop, changed in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)

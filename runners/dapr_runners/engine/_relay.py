"""A coroutine that goes from thread to thread.

It runs in whichever thread has what it waited for. No thread waits with it, and no event loop is
woken in between.
"""

import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from dapr_runners.state import StateStore


class Creation:
    """Awaited: whether ``key`` was created. What comes after it runs in a thread that others wait
    for: it must not block before it awaits :class:`Free`."""

    __slots__ = ("key", "store", "value")

    def __init__(self, store: StateStore, key: str, value: bytes) -> None:
        self.store = store
        self.key = key
        self.value = value

    def __await__(self) -> Generator["Creation", bool, bool]:
        return (yield self)


class Free:
    """Awaited: what comes after it runs in a thread that it may block."""

    __slots__ = ()

    def __await__(self) -> Generator["Free", None, None]:
        yield self


class Relay:
    """Drives ``coroutine``, which awaits nothing but :class:`Creation` and :class:`Free`.

    Call :meth:`run` in a thread that may be blocked. ``again`` gets it called in another one;
    ``done`` gets the result, or what was raised, in any thread.
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        again: Callable[[Callable[[], None]], None],
        done: Callable[[Any, BaseException | None], None],
    ) -> None:
        self._coroutine = coroutine
        self._again = again
        self._done = done
        self._value: bool | None = None
        self._error: Exception | None = None
        self._thread = 0
        """The thread that may be blocked, while the coroutine runs in it."""

    def run(self) -> None:
        """Go on in this thread."""
        self._thread = threading.get_ident()
        self._step()

    def _step(self) -> None:
        while True:
            value, error = self._value, self._error
            self._value = self._error = None
            try:
                if error is not None:
                    request: Any = self._coroutine.throw(error)
                else:
                    request = self._coroutine.send(value)
            except StopIteration as stop:
                return self._done(stop.value, None)
            except BaseException as raised:
                return self._done(None, raised)
            if isinstance(request, Creation):
                self._thread = 0
                return request.store.create_then(request.key, request.value, self._created)
            if not isinstance(request, Free):
                self._error = RuntimeError(f"a step of a run of mode 'sync' awaited {request!r}")
            elif self._thread != threading.get_ident():
                return self._again(self.run)

    def _created(self, value: bool, error: Exception | None) -> None:
        self._value, self._error = value, error
        if value:
            self._step()
        else:
            self._again(self.run)  # it lost, or failed: more calls follow

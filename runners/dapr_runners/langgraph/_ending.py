"""The last callbacks of a run, which tell of its end.

They belong after the last chunk that its caller is given. So where worker and caller are one
process, the worker leaves them to the caller, as long as that is there.
"""

import threading
from collections.abc import Callable
from typing import Any


class Ending:
    """Last callbacks, kept for a caller. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attended = False
        self._calls: list[Callable[[], Any]] = []

    def attend(self) -> None:
        """A caller is there, and will :meth:`take` what is left for it."""
        self._attended = True

    def leave(self, call: Callable[[], Any]) -> bool:
        """Leave ``call`` to the caller; False when there is none."""
        with self._lock:
            if self._attended:
                self._calls.append(call)
            return self._attended

    def take(self) -> list[Callable[[], Any]]:
        """What was left for the caller, who leaves now."""
        with self._lock:
            self._attended = False
            calls, self._calls = self._calls, []
        return calls

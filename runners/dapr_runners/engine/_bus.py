"""Records and live chunks, as they appear in this process, for callers that wait in it.

A caller is never dependent on the bus: it polls the state store as well, and skips what it has
seen. The bus takes away the wait where caller and worker share a process.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dapr_runners.engine._work import Record


@dataclass(frozen=True, slots=True)
class LiveChunk:
    """Chunk number ``seq`` of the record ``key``, before that is written."""

    key: str
    seq: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The run was cancelled: nothing more comes."""


Message: TypeAlias = Record | LiveChunk | Cancelled
Listener = Callable[[Message], None]


class Bus:
    """Tells the listeners of a run what happens in it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[str, list[Listener]] = {}

    def subscribe(self, run: str, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` (from any thread) for each message of ``run``; returns its end."""
        with self._lock:
            self._listeners.setdefault(run, []).append(listener)

        def unsubscribe() -> None:
            with self._lock:
                listeners = self._listeners.get(run, [])
                if listener in listeners:
                    listeners.remove(listener)
                if not listeners:
                    self._listeners.pop(run, None)

        return unsubscribe

    def wanted(self, run: str) -> bool:
        """Whether anybody in this process listens to ``run``."""
        return run in self._listeners

    @property
    def runs(self) -> int:
        """How many runs somebody in this process listens to."""
        return len(self._listeners)

    def publish(self, run: str, message: Message) -> None:
        """Hand ``message`` to the listeners of ``run``."""
        if run in self._listeners:
            with self._lock:
                listeners = list(self._listeners.get(run, ()))
            for listener in listeners:
                listener(message)

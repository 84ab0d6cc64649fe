"""What a model says while it says it: kept for the record of its step, and told at once."""

import threading
from contextvars import ContextVar

from dapr_runners.engine import Bus, LiveChunk, LiveLog, Work
from dapr_runners.state import Codec


class Chunks:
    """The chunks of one activity. ``said`` is told of each, from whatever thread."""

    def __init__(self, work: Work, codec: Codec, bus: Bus, live_log: LiveLog) -> None:
        self.data: list[bytes] = []
        self._run, self._key = work.run, work.key
        self._codec = codec
        self._bus = bus
        self._live_log = live_log
        self._lock = threading.Lock()

    def said(self, step: str, text: str) -> None:
        """The model of ``step`` said ``text``."""
        data = self._codec.encode({"step": step, "chunk": text}, "a chunk")
        with self._lock:
            self.data.append(data)
            number = len(self.data) - 1
            heard = self._bus.wanted(self._run)
            if heard:
                self._bus.publish(self._run, LiveChunk(self._key, number, data))
            self._live_log.write(self._run, self._key, number, data, heard=heard)

    def end(self) -> int:
        """All is said. How many batches there are for other processes."""
        return self._live_log.end(self._run, self._key) if self.data else 0


listening: ContextVar[tuple[Chunks, str] | None] = ContextVar(
    "dapr_runners_crewai_listening", default=None
)
"""Who is told what the model of the current step says, and the step's key."""

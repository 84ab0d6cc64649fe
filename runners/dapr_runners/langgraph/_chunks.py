"""Stream chunks of an activity: kept for its record, told at once where a caller wants that."""

import threading
from collections.abc import Callable
from typing import Any

from dapr_runners.engine import Bus, LiveChunk, LiveLog, Work
from dapr_runners.langgraph._lanes import root_of
from dapr_runners.langgraph._live import Live
from dapr_runners.langgraph._scope import Scope
from dapr_runners.state import Codec


class Chunks:
    """Makes the outlets for chunks of one runner's activities."""

    def __init__(self, codec: Codec, bus: Bus, live_log: LiveLog) -> None:
        self._codec = codec
        self._bus = bus
        self._live_log = live_log

    def emitter(self, work: Work, chunks: list[bytes], live: bool) -> Callable[[Any], None]:
        """For chunks of an activity: kept for its record, and told at once if ``live``: in this
        process to who listens, else to callers in other processes."""
        key, run, lock = work.key, work.run, threading.Lock()

        def emit(chunk: Any) -> None:
            data = self._codec.encode(chunk, "a stream chunk")
            with lock:
                chunks.append(data)
                if not live:
                    return  # its record follows at once, and a wake-up less is a wake-up less
                number, heard = len(chunks) - 1, self._bus.wanted(run)
                if heard:
                    self._bus.publish(run, LiveChunk(key, number, data))
                self._live_log.write(run, key, number, data, heard=heard)

        return emit

    def converting(
        self, live: Live, scope: Scope, work: Work, chunks: list[bytes]
    ) -> Callable[[Any], None]:
        """For raw items that reach the root's queue from inside a step."""
        emit = self.emitter(work, chunks, scope.is_live)

        def convert(item: Any) -> None:
            for chunk in root_of(live).convert(item):
                emit(chunk)

        return convert

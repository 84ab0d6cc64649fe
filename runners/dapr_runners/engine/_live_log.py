"""Stream chunks of a step that still runs, for callers in other processes.

Where worker and caller are one process the bus carries them. Elsewhere they go through the state
store in small batches, ``_EVERY`` seconds apart; the step's record, which holds them all, ends it.
"""

import logging
import threading
from collections.abc import Sequence

from dapr_runners.engine._keys import record_key
from dapr_runners.errors import DaprRunnersError
from dapr_runners.state import Codec, CorruptRecordError, StateStore

logger = logging.getLogger("dapr_runners")

_EVERY = 0.1
"""Seconds between two batches of a step."""


def live_key(key: str, batch: int) -> str:
    """Record key of batch number ``batch`` of the step that will write the record ``key``."""
    return f"live/{key}/{batch}"


class LiveLog:
    """Writes the live chunks of this process's steps, from one thread."""

    def __init__(self, store: StateStore, codec: Codec) -> None:
        self._store = store
        self._codec = codec
        self._wake = threading.Condition()
        self._waiting: dict[tuple[str, str], list[list[object]]] = {}
        self._written: dict[tuple[str, str], int] = {}
        self._thread: threading.Thread | None = None

    def write(self, run: str, key: str, seq: int, data: bytes) -> None:
        """Chunk number ``seq`` of the record ``key``, before that is written."""
        with self._wake:
            self._waiting.setdefault((run, key), []).append([seq, data])
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="dapr-runners-live", daemon=True
                )
                self._thread.start()
            self._wake.notify()

    def end(self, run: str, key: str) -> int:
        """The step is done: what waits is in its record. Returns how many batches there are."""
        with self._wake:
            self._waiting.pop((run, key), None)
            return self._written.pop((run, key), 0)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._wake:
                while not self._waiting:
                    self._wake.wait()
                batches = self._take()
            for (run, key, number), chunks in batches.items():
                self._store_batch(record_key(run, live_key(key, number)), chunks)
            pause.wait(_EVERY)

    def _take(self) -> dict[tuple[str, str, int], list[list[object]]]:
        batches: dict[tuple[str, str, int], list[list[object]]] = {}
        for place, chunks in self._waiting.items():
            number = self._written.get(place, 0)
            self._written[place] = number + 1
            batches[*place, number] = chunks
        self._waiting.clear()
        return batches

    def _store_batch(self, at: str, chunks: Sequence[object]) -> None:
        try:
            self._store.put(at, self._codec.encode(list(chunks), "live chunks"))
        except DaprRunnersError as error:
            # The chunks are in the step's record as well: a caller gets them later.
            logger.warning("live chunks %s: %s", at, error)


def read_batch(codec: Codec, at: str, data: bytes) -> list[tuple[int, bytes]]:
    """The numbered chunks of a batch."""
    chunks = codec.decode(data, at)
    if not isinstance(chunks, list):
        raise CorruptRecordError(key=at, reason="it is not a batch of live chunks")
    return [(seq, chunk) for seq, chunk in chunks]  # pyright: ignore

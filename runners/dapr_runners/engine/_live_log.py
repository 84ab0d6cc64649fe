"""Stream chunks of a step that still runs, for callers in other processes.

Where worker and caller are one process the bus carries them. To others they go through the state
store in small batches, and sooner through a pub/sub component where one is named; the step's
record, which holds them all, ends it. Where a caller listens in this process there may be others
elsewhere, too: they hear of a step that goes on for a while.
"""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from dapr_runners.engine._bus import LiveChunk
from dapr_runners.engine._keys import record_key
from dapr_runners.engine._pubsub import PubSub
from dapr_runners.errors import DaprRunnersError
from dapr_runners.state import Codec, CorruptRecordError, StateStore

logger = logging.getLogger("dapr_runners")

_EVERY_STORED, _EVERY_PUBLISHED = 0.1, 0.02
"""Seconds between two batches of a step."""
_BESIDE = 0.3
"""Seconds for which chunks that are heard in this process wait for others to join them."""


def live_key(key: str, batch: int) -> str:
    """Record key of batch number ``batch`` of the step that will write the record ``key``."""
    return f"live/{key}/{batch}"


class LiveLog:
    """Writes the live chunks of this process's steps, from one thread."""

    def __init__(self, store: StateStore, codec: Codec, pubsub: PubSub | None = None) -> None:
        self._store = store
        self._codec = codec
        self._pubsub = pubsub
        self._every = _EVERY_STORED if pubsub is None else _EVERY_PUBLISHED
        self._wake = threading.Condition()
        self._waiting: dict[tuple[str, str], list[list[object]]] = {}
        self._due: dict[tuple[str, str], float] = {}
        self._written: dict[tuple[str, str], int] = {}
        self._thread: threading.Thread | None = None
        self._sending = threading.Lock()
        self._closed = False

    def open(self) -> None:
        """Take chunks again."""
        self._closed = False

    def close(self) -> None:
        """Write nothing more: what waits belongs to steps that have not ended, and is lost with
        them. The store may be closed after this."""
        with self._sending, self._wake:
            self._closed = True
            self._waiting.clear()
            self._due.clear()

    def write(self, run: str, key: str, seq: int, data: bytes, *, heard: bool = False) -> None:
        """Chunk number ``seq`` of the record ``key``, before that is written. ``heard``: there is a
        caller in this process, who has it already."""
        with self._wake:
            if self._closed:
                return
            self._waiting.setdefault((run, key), []).append([seq, data])
            due = time.monotonic() + (_BESIDE if heard else 0)
            self._due[run, key] = min(due, self._due.get((run, key), due))
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
            self._due.pop((run, key), None)
            return self._written.pop((run, key), 0)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._wake:
                while (next_due := min(self._due.values(), default=None)) is None or (
                    next_due > time.monotonic()
                ):
                    self._wake.wait(None if next_due is None else next_due - time.monotonic())
            with self._sending:
                with self._wake:
                    batches = self._take()
                for (run, key, number), chunks in batches.items():
                    self._send(run, key, number, chunks)
            pause.wait(self._every)

    def _take(self) -> dict[tuple[str, str, int], list[list[object]]]:
        batches: dict[tuple[str, str, int], list[list[object]]] = {}
        now = time.monotonic()
        for place in [place for place, due in self._due.items() if due <= now]:
            number = self._written.get(place, 0)
            self._written[place] = number + 1
            batches[*place, number] = self._waiting.pop(place)
            del self._due[place]
        return batches

    def _send(self, run: str, key: str, number: int, chunks: Sequence[object]) -> None:
        at = record_key(run, live_key(key, number))
        try:
            if self._pubsub is not None:
                data = self._codec.encode_plain([key, list(chunks)], "live chunks")
                self._pubsub.publish(live_topic(run), data)
            # A topic keeps nothing for a caller whose subscription comes a moment later: what it
            # missed it finds here.
            self._store.put(at, self._codec.encode_plain(list(chunks), "live chunks"))
        except DaprRunnersError as error:
            # The chunks are in the step's record as well: a caller gets them later.
            logger.warning("live chunks %s: %s", at, error)


def live_topic(run: str) -> str:
    """Topic of the live chunks of ``run``."""
    return f"dapr-runners-live-{run}"


def read_message(codec: Codec, data: bytes) -> list[LiveChunk]:
    """The live chunks in a message of the topic of a run."""
    message: Any = codec.decode(data, "a live message")
    key, chunks = message
    return [LiveChunk(key, seq, chunk) for seq, chunk in chunks]


def read_batch(codec: Codec, at: str, data: bytes) -> list[tuple[int, bytes]]:
    """The numbered chunks of a batch."""
    chunks = codec.decode(data, at)
    if not isinstance(chunks, list):
        raise CorruptRecordError(key=at, reason="it is not a batch of live chunks")
    return [(seq, chunk) for seq, chunk in chunks]  # pyright: ignore

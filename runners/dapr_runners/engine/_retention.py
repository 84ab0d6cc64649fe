"""Purges runs some time after they have ended, so that the store does not grow for ever.

What somebody may still ask for is kept: a result that no caller has received, a question that the
newest run of a thread ended with, and a dead letter.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners._times import utc
from dapr_runners.engine._dead_letters import Letters
from dapr_runners.engine._io import IO, run_in_thread
from dapr_runners.engine._keys import end_key, spec_key
from dapr_runners.engine._purging import Purge, end_at
from dapr_runners.engine._rounds import Rounds
from dapr_runners.engine._sdk import workflow_ids
from dapr_runners.engine._telling import OVER
from dapr_runners.engine._turns import Turns, unpack_spec
from dapr_runners.engine._work import Record
from dapr_runners.engine.errors import RunNotEndedError, RunNotFoundError
from dapr_runners.state import Codec

logger = logging.getLogger("dapr_runners")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_AT_ONCE = 8
"""Runs that are looked at, and purged, at a time: a purge is some twenty calls that wait."""
_MANY = 64
"""Runs purged in one look: it lags behind."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Purges runs of the runner ``name`` that ended more than ``seconds`` ago."""

    name: str
    seconds: float
    client: Callable[[], DaprWorkflowClient]
    codec: Codec
    turns: Turns
    purge: Callable[[], Purge]
    decode: Callable[[str, bytes, str], Record]

    @property
    def pause(self) -> float:
        """Seconds between two looks."""
        return min(max(self.seconds / 2, 0.1), _LONGEST_PAUSE)

    def look(self, io: IO, over: threading.Event) -> int:
        """Purge what is due, some runs at a time; gives how many were. ``io`` blocks. Ends early
        once ``over`` is set."""
        client: Any = self.client()
        letters = {run for run, _ in run_in_thread(Letters().all(io))}

        def purge(run: str) -> bool:
            if over.is_set():
                return False
            get = partial(client.get_workflow_state, run, fetch_payloads=False)
            is_due = self._is_due(run_in_thread(io.call(get))) and run not in letters
            return is_due and not over.is_set() and run_in_thread(self._purge(io, run))

        with ThreadPoolExecutor(_AT_ONCE, "dapr-runners-retention") as pool:
            return sum(pool.map(purge, run_in_thread(io.call(lambda: list(workflow_ids(client))))))

    async def _purge(self, io: IO, run: str) -> bool:
        if await self._is_wanted(io, run):
            return False
        try:
            await self.purge().run(io, run, has_ended=True)
        except (RunNotEndedError, RunNotFoundError):
            return False  # another process has been at it
        return True

    def _is_due(self, state: Any) -> bool:
        if state is None or state.name != self.name or state.runtime_status.name not in OVER:
            return False
        return (datetime.now(UTC) - utc(state.last_updated_at)).total_seconds() > self.seconds

    async def _is_wanted(self, io: IO, run: str) -> bool:
        found = await io.get_many([spec_key(run), end_key(run)])
        spec = found.get(spec_key(run))
        thread = None if spec is None else unpack_spec(self.codec, spec, run).get("thread")
        pointer = None if thread is None else await self.turns.pointer(io, thread)
        if pointer is None or pointer.run != run:
            return False
        end = await end_at(io, run, found.get(end_key(run)), self.decode)
        is_question = end is not None and end.outcome["status"] == "interrupted"
        return is_question or not pointer.delivered


def retaining(retention: Retention, io: Callable[[], IO]) -> Rounds:
    """What purges by ``retention``, when it is begun; ``io`` blocks. It looks soon, as workers may
    not live long. A look that purged runs is followed by another as soon as it took itself, one
    that purged many at once: more may be due by then."""
    purged, seconds = 0, 0.0

    def look(over: threading.Event) -> bool:
        nonlocal purged, seconds
        began, purged = time.monotonic(), 0
        try:
            purged = retention.look(io(), over)
        except Exception as error:
            # The next look may go well, and nobody is here to be told.
            logger.warning("purging what has ended: %s", error)
        seconds = time.monotonic() - began
        return True

    def pauses() -> Iterator[float]:
        yield min(_FIRST_PAUSE, retention.pause)
        while True:
            if purged >= _MANY:
                yield 0.0
            else:
                yield min(seconds, retention.pause) if purged else retention.pause

    return Rounds("dapr-runners-retention", look, pauses)

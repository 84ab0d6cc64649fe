"""Purges runs some time after they have ended, so that the store does not grow for ever.

What somebody may still ask for is kept: a result that no caller has received, a question that the
newest run of a thread ended with, and a dead letter.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from typing import Any

from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners._times import utc
from dapr_runners.engine._dead_letters import Letters
from dapr_runners.engine._io import IO, run_in_thread
from dapr_runners.engine._keys import spec_key
from dapr_runners.engine._purging import Purge, end_of
from dapr_runners.engine._rounds import Rounds
from dapr_runners.engine._sdk import workflow_ids
from dapr_runners.engine._telling import OVER
from dapr_runners.engine._turns import Turns, unpack_spec
from dapr_runners.engine._work import Record
from dapr_runners.engine.errors import RunNotEndedError, RunNotFoundError
from dapr_runners.state import Codec

logger = logging.getLogger("dapr_runners")
_LONGEST_PAUSE = 60.0
_AT_ONCE = 8
"""Runs that are looked at, and purged, at a time: a purge is some twenty calls that wait."""


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

    def look(self, io: IO, over: threading.Event) -> None:
        """Purge what is due, some runs at a time. ``io`` blocks. Ends early once ``over`` is
        set."""
        client: Any = self.client()

        def is_due(run: str) -> bool:
            get = partial(client.get_workflow_state, run, fetch_payloads=False)
            return not over.is_set() and self._is_due(run_in_thread(io.call(get)))

        def purge(run: str) -> None:
            if not over.is_set():
                run_in_thread(self._purge(io, run))

        with ThreadPoolExecutor(_AT_ONCE, "dapr-runners-retention") as pool:
            ids = run_in_thread(io.call(lambda: list(workflow_ids(client))))
            due = [run for run, found in zip(ids, pool.map(is_due, ids), strict=True) if found]
            if due:
                letters = {each for each, _ in run_in_thread(Letters().all(io))}
                list(pool.map(purge, [run for run in due if run not in letters]))

    async def _purge(self, io: IO, run: str) -> None:
        if await self._is_wanted(io, run):
            return
        try:
            await self.purge().run(io, run)
        except (RunNotEndedError, RunNotFoundError):
            return  # another process has been at it

    def _is_due(self, state: Any) -> bool:
        if state is None or state.name != self.name or state.runtime_status.name not in OVER:
            return False
        return (datetime.now(UTC) - utc(state.last_updated_at)).total_seconds() > self.seconds

    async def _is_wanted(self, io: IO, run: str) -> bool:
        spec = await io.get(spec_key(run))
        thread = None if spec is None else unpack_spec(self.codec, spec, run).get("thread")
        pointer = None if thread is None else await self.turns.pointer(io, thread)
        if pointer is None or pointer.run != run:
            return False
        end = await end_of(io, run, self.decode)
        is_question = end is not None and end.outcome["status"] == "interrupted"
        return is_question or not pointer.delivered


def retaining(retention: Retention, io: Callable[[], IO]) -> Rounds:
    """What purges by ``retention``, when it is begun; ``io`` blocks."""

    def look(over: threading.Event) -> bool:
        try:
            retention.look(io(), over)
        except Exception as error:
            # The next look may go well, and nobody is here to be told.
            logger.warning("purging what has ended: %s", error)
        return True

    return Rounds("dapr-runners-retention", look, lambda: repeat(retention.pause))

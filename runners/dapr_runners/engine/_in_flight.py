"""Steps under way in this process.

A sidecar that was away, or that took a stream for dead, gives out again what this process is still
at. The second dispatch then waits for the first: the step goes on, and does not run twice.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from dapr_runners.engine._io import IO, BlockingIO
from dapr_runners.engine._work import Json


class InFlight:
    """What is being done right now, by run and record key. For threads and event loops."""

    def __init__(self) -> None:
        self._outcomes: dict[tuple[str, str], Future[Json]] = {}
        self._began: dict[Future[Json], float] = {}

    def age(self, key: tuple[str, str]) -> float | None:
        """Seconds since it was begun, if it is being done in this process."""
        began = self._began.get(self._outcomes.get(key, Future()))
        return None if began is None else time.monotonic() - began

    async def once(self, key: tuple[str, str], do: Callable[[], Awaitable[Json]], io: IO) -> Json:
        """The outcome of ``do``, or of the same that is being done already."""
        ours: Future[Json] = Future()
        first = self._outcomes.setdefault(key, ours)
        if first is not ours:
            if isinstance(io, BlockingIO):
                return first.result()
            return await asyncio.shield(asyncio.wrap_future(first))
        self._began[ours] = time.monotonic()
        try:
            outcome = await do()
        except BaseException as error:
            ours.set_exception(error)
            raise
        finally:
            del self._outcomes[key], self._began[ours]
        ours.set_result(outcome)
        return outcome

"""Runs of crews, for who has not the crew: their events, their questions, and the answers."""

from collections.abc import AsyncIterator, Callable

from dapr_runners.crewai._events import run_events
from dapr_runners.engine import (
    Chunk,
    Claim,
    Json,
    Overview,
    Record,
    those_after,
    told_to_the_end,
)


class CrewInsight:
    """What an overview of runs cannot know of crews."""

    async def events(
        self, runs: Overview, run: str, *, after: str | None = None, follow: bool = True
    ) -> AsyncIterator[Json]:
        summary = await runs.run(run)

        def log(caught_up: Callable[[], None]) -> AsyncIterator[Chunk | Record]:
            return runs.follow(run, caught_up, on=follow)

        claim = Claim(run, summary.thread, started=False)
        events = run_events(log, lambda: runs.codec, claim, {"name": summary.runner})
        async for event in those_after(told_to_the_end(events, run), after, run):
            yield event

"""Runs of crews, for who has not the crew: their events, their questions, and the answers."""

from collections.abc import AsyncIterator
from typing import Any

from dapr_runners.crewai._asked import Asked
from dapr_runners.crewai._events import run_events
from dapr_runners.engine import (
    Answers,
    Json,
    Overview,
    Question,
    RetryRefusedError,
    those_after,
    told_to_the_end,
)


class CrewInsight:
    """What an overview of runs cannot know of crews."""

    answers_are_texts = True

    async def events(
        self, runs: Overview, run: str, *, after: str | None = None, follow: bool = True
    ) -> AsyncIterator[Json]:
        summary, claim, log = await runs.log(run, on=follow)
        events = run_events(log, lambda: runs.codec, claim, {"name": summary.runner})
        async for event in those_after(told_to_the_end(events, claim.run), after, claim.run):
            yield event

    async def questions(self, runs: Overview, run: str) -> list[Question]:
        return await (await self._asked(runs, run)).open_in(runs.io, runs.named(run))

    async def answer(self, runs: Overview, run: str, key: str, value: Any) -> str:
        run = runs.named(run)
        await (await self._asked(runs, run)).answer(runs.io, run, key, value)
        return run

    async def retry_from(self, runs: Overview, run: str, step: str, again: bool) -> str:
        raise RetryRefusedError(
            run_id=run,
            reason="what a crew does after a step lives in its program, which has no state to go"
            " back to",
            remedy="Retry it without a step, if it has failed, or make a new call.",
        )

    async def _asked(self, runs: Overview, run: str) -> Asked:
        telling = runs.telling(await runs.runner_of(run), runs.named(run))
        return Asked(lambda: runs.codec, Answers(runs.codec, telling, lambda: runs.client))

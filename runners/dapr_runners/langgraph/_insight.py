"""Runs of graphs, for who has not the graph: their events, their interrupts, and the answers."""

from collections.abc import AsyncIterator
from typing import Any

from dapr_runners.engine import (
    Claim,
    Json,
    Log,
    Overview,
    Question,
    those_after,
    told_to_the_end,
)
from dapr_runners.langgraph._again import retry_from
from dapr_runners.langgraph._asked import answer, asked
from dapr_runners.langgraph._events import run_events
from dapr_runners.langgraph._views import modes_of
from dapr_runners.state import Codec


class GraphInsight:
    """What an overview of runs cannot know of graphs."""

    answers_are_texts = False

    async def events(
        self, runs: Overview, run: str, *, after: str | None = None, follow: bool = True
    ) -> AsyncIterator[Json]:
        summary, claim, log = await runs.log(run, on=follow)
        spec = await runs.spec(claim.run)
        async for event in logged_events(log, runs.codec, summary.runner, claim, spec, after):
            yield event

    async def questions(self, runs: Overview, run: str) -> list[Question]:
        return await asked(runs, run)

    async def answer(self, runs: Overview, run: str, key: str, value: Any) -> str:
        return await answer(runs, run, key, value)

    async def retry_from(self, runs: Overview, run: str, step: str, again: bool) -> str:
        return await retry_from(runs, run, step, again)


def logged_events(
    log: Log,
    codec: Codec,
    runner: str,
    claim: Claim,
    spec: Json,
    after: str | None,
) -> AsyncIterator[Json]:
    """The events of a run that was started with ``spec``; ``log`` reads its log."""
    arguments: Json = codec.decode(spec["arguments"], f"the arguments of {claim.run}")
    arguments = {"stream_mode": spec.get("stream_mode", "values"), **arguments}
    modes = modes_of(arguments, "values")
    events = run_events(log, codec, runner, claim, arguments, modes)
    return those_after(told_to_the_end(events, claim.run), after, claim.run)

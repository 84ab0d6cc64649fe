"""What who follows a run is told, beside its events, when there will be no more of them."""

from collections.abc import AsyncIterator
from typing import Any

from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners.engine._dead_letters import Letters
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import CANCELLED, end_key
from dapr_runners.engine._work import Json
from dapr_runners.engine.errors import (
    EffectUnknownError,
    EventNotFoundError,
    RunCancelledError,
    RunFailedError,
    RunNotFoundError,
)


async def raise_broken(io: IO, client: DaprWorkflowClient, run: str) -> None:
    """Raise what a run ended with that has no record of an end."""
    state = await io.call(lambda: client.get_workflow_state(run))
    if await io.get(end_key(run)) == CANCELLED:
        raise RunCancelledError(run_id=run)
    if state is None:
        raise RunNotFoundError(run_id=run)
    if state.runtime_status.name in ("TERMINATED", "CANCELED"):
        raise RunCancelledError(run_id=run)
    details: Any = state.failure_details
    raise RunFailedError(
        run_id=run,
        error_type=details.error_type if details else state.runtime_status.name,
        detail=details.message if details else "the workflow says no more",
    )


async def raise_parked(letters: Letters, io: IO, run: str, waits_for: Json) -> None:
    """Raise what ``run`` is parked with, if ``waits_for`` says that it is."""
    for parked in waits_for.get("parked", ()):
        letter = await letters.get(io, run, parked["at"])
        if letter is not None and "decision" not in letter:
            about = {name: value for name, value in parked.items() if name != "at"}
            known = {name: letter[name] for name in ("advice",) if name in letter}
            raise EffectUnknownError(run_id=run, **about, reason=letter["error"], **known)


async def told_to_the_end(events: AsyncIterator[Json], run: str) -> AsyncIterator[Json]:
    """``events`` of ``run``; where they raise that it was cancelled, or that its workflow failed, a
    last event tells it."""
    common: Json = {"workflow_id": run, "replayed": False}
    try:
        async for event in events:
            yield event
    except RunCancelledError:
        yield {"type": "workflow_cancelled", "id": f"{run}/cancelled", **common}
    except RunFailedError as failed:
        error = {"error_type": failed.error_type, "message": failed.detail, "stack_trace": ""}
        yield {"type": "workflow_failed", "id": f"{run}/failed", **common, "error": error}


async def those_after(
    events: AsyncIterator[Json], last_seen: str | None, run: str
) -> AsyncIterator[Json]:
    """The ``events`` of ``run`` that follow the one with the id ``last_seen``. Raises
    :class:`EventNotFoundError` as soon as the events of the past are over without it."""
    has_seen = last_seen is None
    async for event in events:
        if has_seen:
            yield event
        elif event["id"] == last_seen:
            has_seen = True
        elif not event["replayed"]:
            break
    if not has_seen:
        raise EventNotFoundError(run_id=run, event_id=last_seen or "")

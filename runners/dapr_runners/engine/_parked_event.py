"""How the events of a run tell that it is parked."""

from collections.abc import AsyncIterator
from typing import TypeVar

from dapr_runners.engine._work import Json
from dapr_runners.engine.errors import EffectUnknownError

T = TypeVar("T")


async def until_parked(events: AsyncIterator[T]) -> AsyncIterator[T | EffectUnknownError]:
    """``events``, and last what they end with if the run is parked."""
    try:
        async for event in events:
            yield event
    except EffectUnknownError as parked:
        yield parked


def parked_event(parked: EffectUnknownError) -> Json:
    """The last event for who listens to a run that is parked. It was so before they came, or is
    now: ``replayed`` says nothing of it."""
    return {
        "type": "workflow_parked",
        "id": f"{parked.run_id}/parked/{parked.idempotency_key}",
        "workflow_id": parked.run_id,
        "replayed": False,
        "step": parked.step,
        "effect": parked.effect,
        "idempotency_key": parked.idempotency_key,
    }

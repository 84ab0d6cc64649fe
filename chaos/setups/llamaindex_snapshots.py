"""LlamaIndex Workflows with its snapshot loop: the context is saved after each step event."""

import asyncio
import json
from typing import Any

from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StepState, StepStateChanged, StopEvent

from chaos.trial import Trial


class Prepared(Event):
    """The key is saved."""

    key: str | None


class Charged(Event):
    """The charge was made."""

    charge: str


class Orders(Workflow):
    """prepare -> charge -> finalize."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(timeout=None)
        self._trial = trial

    @step
    async def prepare(self, ev: StartEvent) -> Prepared:
        return Prepared(key=self._trial.saved_key())

    @step
    async def charge(self, ev: Prepared) -> Charged:
        return Charged(charge=await asyncio.to_thread(self._trial.charge, ev.key))

    @step
    async def finalize(self, ev: Charged) -> StopEvent:
        return StopEvent(result=ev.charge)


def run(trial: Trial) -> None:
    """The program."""
    assert asyncio.run(_run(trial))


async def _run(trial: Trial) -> Any:
    snapshot = trial.directory / "context.json"
    workflow = Orders(trial)
    context = None
    if snapshot.exists():
        context = Context.from_dict(workflow, json.loads(snapshot.read_text()))
    handler = workflow.run(ctx=context)
    async for event in handler.stream_events(expose_internal=True):
        if isinstance(event, StepStateChanged):
            beside = snapshot.with_suffix(".new")
            beside.write_text(json.dumps(handler.ctx.to_dict()))
            beside.replace(snapshot)
            if event.name.endswith("charge") and event.step_state is StepState.NOT_RUNNING:
                trial.reach("recorded")
    return await handler

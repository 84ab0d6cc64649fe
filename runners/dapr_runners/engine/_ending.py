"""The workflow of a run that is ending: the run's end is recorded, and told, before it.

Who asks in that moment waits, so that a run is over for whoever was told that it is. So does who
changes its records: steps that nobody waits for any more may be about to write theirs.
"""

from typing import Any

from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners.engine._io import IO
from dapr_runners.engine._journal import UNNOTICED_ALONE
from dapr_runners.engine._keys import end_key
from dapr_runners.engine._telling import OVER

ENDING_SECONDS = 5.0
"""That the workflow of a run that has ended has to end too, where its records are to change."""
_FIRST_PAUSE, _GROWTH = 0.005, 1.5


async def settled(
    io: IO, client: DaprWorkflowClient, run: str, seconds: float, *, payloads: bool = False
) -> Any:
    """State of the workflow of ``run``, None if there is none. One that is about to end is waited
    for, about ``seconds`` long: without a worker it cannot."""
    pause, waited = _FIRST_PAUSE, 0.0
    while True:
        state: Any = await io.call(lambda: client.get_workflow_state(run, fetch_payloads=payloads))
        if state is None or state.runtime_status.name in OVER or waited >= seconds:
            return state
        if await io.get(end_key(run)) is None:
            return state
        await io.sleep(pause)
        waited += pause
        pause *= _GROWTH


async def at_rest(io: IO) -> None:
    """Wait until no step of a run that has ended records anything any more: one that takes longer
    looks first whether the run is over."""
    await io.sleep(UNNOTICED_ALONE)

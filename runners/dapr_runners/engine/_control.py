"""Suspends, resumes and terminates the workflows of runs."""

from collections.abc import Callable
from typing import Any

from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import CANCELLED, end_key
from dapr_runners.engine._telling import OVER, tell_now
from dapr_runners.engine.errors import RunNotFoundError, RunNotSuspendedError, RunOverError

_PAUSES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, *[0.8] * 12)
"""Seconds between looks whether a workflow is as it was told to be: ten, for a busy worker."""
SUSPENDED = "SUSPENDED"


class Control:
    """Tells workflows what they are to do. Without a worker at the sidecar at ``address``, each
    raises :class:`WorkerMissingError` and changes nothing."""

    def __init__(self, io: IO, client: DaprWorkflowClient, address: str) -> None:
        self._io = io
        self._client: Any = client
        self._address = address

    async def suspend(self, run: str) -> None:
        """Begin no step of ``run`` until it is resumed; one that runs right now runs to its end.
        Raises :class:`RunOverError`."""
        if await self._status(run) in OVER or await self._io.get(end_key(run)) is not None:
            raise RunOverError(run_id=run, what="suspended")
        await self._tell(lambda: self._client.pause_workflow(run))
        await self._until(run, lambda status: status == SUSPENDED or status in OVER)

    async def resume(self, run: str) -> None:
        """Let ``run``, which was suspended, go on. Raises :class:`RunNotSuspendedError`."""
        status = await self._status(run)
        if status != SUSPENDED:
            raise RunNotSuspendedError(
                run_id=run, status=status.lower(), advice="There is nothing to resume."
            )
        await self._tell(lambda: self._client.resume_workflow(run))
        await self._until(run, lambda status: status != SUSPENDED)

    async def terminate(self, run: str) -> None:
        """End the workflow of ``run`` at once, whatever it does, and with it the run, if that has
        not ended: who waits for it is told. Raises :class:`RunOverError`."""
        if await self._status(run) in OVER:
            raise RunOverError(run_id=run, what="terminated")
        await self._tell(lambda: self._client.terminate_workflow(run))
        await self._io.create(end_key(run), CANCELLED)
        await self._until(run, lambda status: status in OVER)

    async def _tell(self, tell: Callable[[], Any]) -> None:
        await tell_now(self._io, self._address, tell)

    async def _until(self, run: str, is_so: Callable[[str], bool]) -> None:
        """Wait a while until the sidecar has done what it has accepted to do."""
        for pause in _PAUSES:
            if is_so(await self._status(run)):
                return
            await self._io.sleep(pause)

    async def _status(self, run: str) -> str:
        client = self._client
        state = await self._io.call(lambda: client.get_workflow_state(run, fetch_payloads=False))
        if state is None:
            raise RunNotFoundError(run_id=run)
        return str(state.runtime_status.name)

"""Telling workflows: of answers, of their end. What cannot be told now is told later, by whoever
works then."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import grpc
from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import CANCELLED, end_key, record_key, spec_key
from dapr_runners.engine._turns import Progress, Turns
from dapr_runners.engine._untold import PURGE, START, TERMINATE, Untold
from dapr_runners.engine.errors import RunNotFoundError, WorkerMissingError
from dapr_runners.errors import DaprRunnersError
from dapr_runners.state import UNREADABLE

logger = logging.getLogger("dapr_runners")
_PATIENCE = 1.0
"""Seconds that a caller waits for a workflow to be terminated or purged."""
_ANSWER_SECONDS = 3.0
"""With a worker, a sidecar answers in a fraction of that."""
_ENDING, _LET_GO = "actor is closed", 0.02
"""What daprd refuses for the moment in which it lets go of a workflow that has ended, in part; and
seconds between two tries then."""
_ANYBODY = "anybody"
"""An event that no workflow waits for."""
OVER = ("COMPLETED", "FAILED", "TERMINATED", "CANCELED")
"""What the status of a workflow that has ended can be."""


class Telling:
    """Tells the workflows of one runner. ``client`` gives the workflow client."""

    def __init__(self, runner: str, client: Callable[[], DaprWorkflowClient], turns: Turns) -> None:
        self.untold = Untold(runner)
        self._client = client
        self._turns = turns

    async def answered(self, io: IO, run: str, at: str) -> None:
        """Tell the workflow of ``run`` that the answer it waits for is recorded under ``at``. When
        that cannot be, whoever works on it later does."""
        try:
            await io.call(lambda: self._client().raise_workflow_event(run, at, data=at))
        except DaprRunnersError as error:
            level = logging.INFO if isinstance(error, WorkerMissingError) else logging.WARNING
            logger.log(level, "run %s is not told yet of the answer %s: %s", run, at, error)
        else:
            await self.untold.remove(io, run, at)

    async def remind(self, io: IO, only: str | None = None, *, works: bool = True) -> bool:
        """Tell runs (one, or all) of answers whose givers could not, and start those that no worker
        was there for, if this process ``works``. Whether there were any."""
        listed = await self.untold.all(io)
        for run, at in listed:
            if only not in (None, run) or (at.startswith(START) and not works):
                continue
            try:
                await self._remind_of(io, run, at)
            except UNREADABLE as error:  # the others are told
                logger.warning("run %s is not told yet of %s: %s", run, at, error)
        return bool(listed)

    async def _remind_of(self, io: IO, run: str, at: str) -> None:
        if at in (TERMINATE, PURGE):
            await self._make_good(io, run, at)
        elif at.startswith(START):
            if await io.get(spec_key(run)) is not None and await io.get(end_key(run)) is None:
                await self._turns.schedule_if_absent(io, run, at.removeprefix(START))
            await self.untold.remove(io, run, at)
        elif await self._turns.progress(io, run) is not Progress.ACTIVE:
            await self.untold.remove(io, run, at)
        elif await io.get(record_key(run, at)) is not None:
            await self.answered(io, run, at)
        # Otherwise it is about to be recorded.

    async def _make_good(self, io: IO, run: str, what: str) -> None:
        """Terminate or purge the workflow of a run that was cancelled or purged, if it is left."""
        client = self._client()
        state = await io.call(lambda: client.get_workflow_state(run, fetch_payloads=False))
        is_over = state is None or state.runtime_status.name in OVER
        if what == TERMINATE and not is_over:
            is_done = await self.soon(io, run, lambda: client.terminate_workflow(run))
        elif what == PURGE and state is not None and await io.get(spec_key(run)) is None:
            is_done = await self.soon(io, run, lambda: client.purge_workflow(run))
        else:
            is_done = True
        if is_done:
            await self.untold.remove(io, run, what)

    async def cancel(self, io: IO, run: str) -> bool:
        """Cancel ``run``; whether that counts, and it had not ended. Raises RunNotFoundError."""
        client = self._client()
        state = await io.call(lambda: client.get_workflow_state(run, fetch_payloads=False))
        # One that waits for a worker has no workflow yet.
        if state is None and await io.get(spec_key(run)) is None:
            raise RunNotFoundError(run_id=run)
        at = end_key(run)
        if not await io.create(at, CANCELLED) and await io.get(at) != CANCELLED:
            return False
        if not await self.soon(io, run, lambda: client.terminate_workflow(run)):
            await self.untold.add(io, run, TERMINATE)
        return True

    async def soon(self, io: IO, run: str, tell: Callable[[], Any]) -> bool:
        """Whether ``tell``, which tells the workflow of ``run`` something, could. A sidecar that
        has no worker may take its time to say so: that is not waited for."""
        told = await within(io, _PATIENCE, tell)
        error = told.exception() if told.done() else None
        if error is not None:
            if not isinstance(error, grpc.RpcError):
                raise error
            logger.info("the workflow of %s is left for a worker: %s", run, error)
        return told.done() and error is None

    def raise_event(self, run: str, name: str) -> None:
        """Tell the workflow of ``run`` something, soon, from whatever thread."""

        def tell() -> None:
            try:
                self._client().raise_workflow_event(run, name, data=name)
            except Exception as error:
                logger.warning("telling run %s of %s: %s", run, name, error)

        threading.Thread(target=tell, name="dapr-runners-tell", daemon=True).start()


async def within(io: IO, seconds: float, call: Callable[[], Any]) -> "Future[Any]":
    """What ``call``, which tells a workflow something, leads to; not done if that takes longer."""
    told: Future[Any] = Future()

    give_up_at = time.monotonic() + seconds

    def tell() -> None:
        while not told.done():
            try:
                told.set_result(call())
            except Exception as error:
                if _ENDING in str(error) and time.monotonic() < give_up_at:
                    time.sleep(_LET_GO)
                else:
                    told.set_exception(error)

    threading.Thread(target=tell, name="dapr-runners-tell", daemon=True).start()
    pause = 0.001
    while not told.done() and time.monotonic() < give_up_at:
        await io.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    return told


async def tell_now(io: IO, address: str, tell: Callable[[], Any]) -> None:
    """Have ``tell`` tell a workflow something. Raises :class:`WorkerMissingError` when the sidecar
    at ``address`` has no worker for that."""
    told = await within(io, _ANSWER_SECONDS, tell)
    if not told.done():  # a sidecar that has no worker may take its time to say so
        raise WorkerMissingError(address=address)
    await io.call(told.result)


async def require_worker(io: IO, client: DaprWorkflowClient, address: str, run: str) -> None:
    """Raise :class:`WorkerMissingError` if nobody works for the app of the sidecar at ``address``:
    an event for ``run``, which has ended, changes nothing, and tells."""
    await tell_now(io, address, lambda: client.raise_workflow_event(run, _ANYBODY))

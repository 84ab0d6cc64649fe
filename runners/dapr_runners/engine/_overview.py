"""What a sidecar knows of runs, for who operates them: without their program.

Reads the envelopes of specs and records, which are plain data; of values, what is stored.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import grpc
from dapr.ext.workflow import WorkflowState

from dapr_runners._statuses import RunStatus
from dapr_runners.engine._bus import Bus
from dapr_runners.engine._control import Control
from dapr_runners.engine._dead_letters import Letters
from dapr_runners.engine._faults import sidecar_fault, without_sdk_log
from dapr_runners.engine._following import raise_broken, raise_parked
from dapr_runners.engine._io import IO, BlockingIO
from dapr_runners.engine._keys import (
    BROKEN,
    CANCELLED,
    end_key,
    is_run_id,
    record_key,
    spec_key,
)
from dapr_runners.engine._patience import PatientIO
from dapr_runners.engine._purging import Purge, end_of
from dapr_runners.engine._reader import Chunk, Log, Reader
from dapr_runners.engine._run_summary import A_WORKER, ITS_CALLER, RunSummary, summary_of
from dapr_runners.engine._sdk import workflow_ids
from dapr_runners.engine._telling import Telling
from dapr_runners.engine._tenants import mark_of, within
from dapr_runners.engine._turns import Claim, Turns, no_base, unpack_spec
from dapr_runners.engine._unscheduled import listed_unscheduled
from dapr_runners.engine._work import Json, Record, unpack_record
from dapr_runners.engine._worker import Worker
from dapr_runners.engine.errors import (
    RunNotFoundError,
    RunNotSuspendedError,
)
from dapr_runners.state import ReadingCodec, StateStore

_PATIENCE = 3.0


class Overview:
    """The runs in ``store``, whose workflows are on the sidecar of ``worker``. ``mark`` is that of
    the tenant whose runs are read, "" of no tenant; by default, those of all are."""

    def __init__(self, store: StateStore, worker: Worker, mark: str | None = None) -> None:
        self.mark = mark
        self.store = store
        self.worker = worker
        self.io: IO = PatientIO(BlockingIO(store), worker.address, _PATIENCE)
        self.codec = ReadingCodec()
        self.letters = Letters()

    @property
    def client(self) -> Any:
        """The workflow client."""
        return self.worker.client

    # -- runs

    def ids(self) -> Iterator[str]:
        """Ids of the workflows the sidecar lists."""
        try:
            for run in workflow_ids(self.client):
                if self.mark in (None, mark_of(run)):
                    yield run
        except grpc.RpcError as error:
            raise sidecar_fault(self.worker.address, error) from None

    async def unscheduled(self, runner: str | None = None) -> list[str]:
        """Ids of the runs (of ``runner``) that wait for a worker to schedule them, oldest first."""
        return [
            run
            for run in await listed_unscheduled(self.io, runner)
            if self.mark in (None, mark_of(run)) and self.state(run) is None
        ]

    async def run(self, run: str) -> RunSummary:
        """The run named ``run``. Raises :class:`RunNotFoundError`."""
        run = self.named(run)
        about, state = await self.spec(run), self.state(run)
        at = await self.io.get(end_key(run))
        end = None
        if at is not None and at != CANCELLED:
            end = await self._record(run, at.decode())
        waits_for = A_WORKER
        if state is None and at is None:
            is_listed = run in await self.unscheduled(about.get("runner"))
            waits_for = A_WORKER if is_listed else ITS_CALLER
        return summary_of(run, state, about, at, end, self.codec, waits_for)

    def named(self, run: str) -> str:
        """The id of the run that ``run`` names for who reads. Raises :class:`RunNotFoundError`."""
        found = run if self.mark is None else within(self.mark, run)
        if found is None or not is_run_id(found):
            raise RunNotFoundError(run_id=run)
        return found

    def state(self, run: str) -> WorkflowState | None:
        """The state of the workflow of ``run``."""
        try:
            with without_sdk_log():
                return self.client.get_workflow_state(run)
        except grpc.RpcError as error:
            raise sidecar_fault(self.worker.address, error) from None

    async def runner_of(self, run: str) -> str:
        """The name of the runner of ``run``, which may have no workflow (any more)."""
        spec, state = await self.spec(run), self.state(self.named(run))
        name: str | None = spec.get("runner") or (None if state is None else state.name)
        if not name:
            raise RunNotFoundError(run_id=run)
        return name

    async def spec(self, run: str) -> Json:
        """What ``run`` was started with, with the values of its framework as stored. Raises
        :class:`RunNotFoundError`."""
        data = await self.io.get(spec_key(self.named(run)))
        if data is None:
            raise RunNotFoundError(run_id=run)
        return unpack_spec(self.codec, data, run)

    async def end_of(self, run: str) -> Record | None:
        """The record of the end of ``run``, if it has ended with one."""
        return await end_of(self.io, self.named(run), self.decode)

    async def _record(self, run: str, key: str) -> Record | None:
        data = await self.io.get(record_key(run, key))
        return None if data is None else self.decode(key, data, record_key(run, key))

    def decode(self, key: str, data: bytes, stored_under: str) -> Record:
        """The record ``key`` in ``data``."""
        return unpack_record(self.codec, key, data, stored_under)

    # -- what happens in a run

    async def log(self, run: str, *, on: bool) -> tuple[RunSummary, Claim, Log]:
        """``run``, the claim of who only reads it, and what reads its log: see :meth:`follow`."""
        summary = await self.run(run)
        run = summary.run_id  # a tenant may have named it with a name of its own

        def log(caught_up: Callable[[], None]) -> AsyncIterator[Chunk | Record]:
            return self.follow(run, caught_up, on=on)

        return summary, Claim(run, summary.thread, started=False), log

    async def follow(
        self,
        run: str,
        caught_up: Callable[[], None] = lambda: None,
        *,
        live: bool = True,
        on: bool = True,
    ) -> AsyncIterator[Chunk | Record]:
        """The log of ``run`` from its beginning: to its end, or if not ``on``, as far as it is.
        Raises what it ended with that is not in the log, and
        :class:`EffectUnknownError` when it is parked."""
        run = self.named(run)
        await self.spec(run)
        io = PatientIO(self.io, self.worker.address)
        turns = self.turns("", run)

        async def waits(io: IO, run: str, what: Json) -> None:
            await raise_parked(self.letters, io, run, what)

        async def progress(run: str) -> Any:
            return await turns.progress(io, run, waits)

        codec = self.codec if live and on else None
        reader = Reader(run, Bus(), io, self.decode, progress, caught_up, codec)
        try:
            async for events in reader.events(on):
                for event in events:
                    yield event
            if reader.end is None and (reader.broken or await self._is_broken(run, progress)):
                await raise_broken(io, self.client, run)
        finally:
            reader.close()

    async def _is_broken(self, run: str, progress: Callable[[str], Any]) -> bool:
        return (await progress(run)).name == "BROKEN"

    async def records(self, run: str) -> dict[str, Record]:
        """The records of ``run`` there are right now, by key."""
        run = self.named(run)
        reader = Reader(run, Bus(), self.io, self.decode, lambda _: None)
        found = {record.key: record async for record in reader.recorded()}
        broken = await self._record(run, BROKEN)
        return found if broken is None else {**found, BROKEN: broken}

    # -- changing runs

    def turns(self, runner: str, run: str) -> Turns:
        """The turns of ``runner``, for the tenant of ``run``. They schedule nothing from here."""
        return Turns(runner, self.codec, lambda: self.client, no_base, mark_of(run))

    def telling(self, runner: str, run: str) -> Telling:
        """Tells the workflows of ``runner``, for the tenant of ``run``."""
        return Telling(runner, lambda: self.client, self.turns(runner, run))

    async def cancel(self, run: str) -> bool:
        """Cancel ``run``. One that has ended is left as it is: whether it had not. Raises
        RunNotFoundError."""
        run = self.named(run)
        return await self.telling(await self.runner_of(run), run).cancel(self.io, run)

    @property
    def control(self) -> Control:
        """Suspends, resumes and terminates runs."""
        return Control(self.io, self.client, self.worker.address)

    async def suspend(self, run: str) -> None:
        """Begin no step of ``run`` until it is resumed. Raises :class:`RunOverError`."""
        await self.spec(run)
        await self.control.suspend(self.named(run))

    async def resume(self, run: str) -> None:
        """Let ``run``, which was suspended, go on. Raises :class:`RunNotSuspendedError`, which says
        what lets it go on otherwise."""
        found = await self.run(run)
        if found.status is not RunStatus.SUSPENDED:
            raise RunNotSuspendedError(run_id=run, status=found.status, advice=found.advice)
        await self.control.resume(found.run_id)

    async def terminate(self, run: str) -> None:
        """End the workflow of ``run`` at once, and the run. Raises :class:`RunOverError`."""
        await self.spec(run)
        await self.control.terminate(self.named(run))

    async def purge(self, run: str) -> None:
        """Delete all that is recorded for ``run``. Raises :class:`RunNotEndedError` while it is
        active."""
        run = self.named(run)
        runner = await self.runner_of(run)
        telling, turns = self.telling(runner, run), self.turns(runner, run)
        purge = Purge(lambda: self.client, self.codec, self.store, telling, turns, lambda _: None)
        await purge.run(self.io, run)

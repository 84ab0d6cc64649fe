"""What a sidecar knows of runs, for who operates them: without their program.

Reads the envelopes of specs and records, which are plain data; of values, what is stored.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import grpc
from dapr.ext.workflow import WorkflowState

from dapr_runners._statuses import RunStatus
from dapr_runners.engine._bus import Bus
from dapr_runners.engine._control import Control
from dapr_runners.engine._dead_letters import Letters
from dapr_runners.engine._effect_keys import begun_in, begun_key
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
from dapr_runners.engine._telling import OVER, Telling
from dapr_runners.engine._tenants import mark_of, within
from dapr_runners.engine._timeline import StepSummary, Timeline
from dapr_runners.engine._turns import Claim, Turns, said, unpack_spec
from dapr_runners.engine._work import Json, Record, unpack_record
from dapr_runners.engine._worker import Worker
from dapr_runners.engine.errors import (
    AmbiguousThreadError,
    EffectUnknownError,
    RunCancelledError,
    RunFailedError,
    RunNotFoundError,
    RunNotSuspendedError,
    UnsupportedSdkError,
)
from dapr_runners.state import ReadingCodec, StateStore, describe_error

_PATIENCE = 3.0
_ADVICE = {
    RunStatus.PENDING: "It begins when a worker is there: start a program that calls start().",
    RunStatus.RUNNING: "It goes on by itself.",
    RunStatus.WAITING: "Answer it: `dapr-runners answer {run} KEY VALUE`; `show` has the keys.",
    RunStatus.PARKED: "Decide on its dead letter: `dapr-runners dead-letter list`.",
    RunStatus.HELD_UP: "It goes on when what it waits for is back: `dapr-runners show {run}`.",
    RunStatus.INTERRUPTED: (
        "Answer it: `dapr-runners answer {run} KEY VALUE`; `show` has the keys. If it has none,"
        " make the next call on its thread."
    ),
    RunStatus.COMPLETED: "It has ended: make the next call on its thread.",
    RunStatus.FAILED: "It has ended: `dapr-runners retry {run}` goes on from where it failed.",
    RunStatus.CANCELLED: "It has ended: make the next call on its thread.",
}
"""What lets a run of each status go on."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run. ``waits_for`` says what it waits for, or is held up by; ``error`` what it failed
    with; ``framework`` is None for a run of an older release."""

    run_id: str
    runner: str
    thread: str | None
    status: RunStatus
    created_at: datetime
    last_updated_at: datetime
    waits_for: list[str] = field(default_factory=list[str])
    tenant: str | None = None
    framework: str | None = None
    error: str | None = None


class Overview:
    """The runs in ``store``, whose workflows are on the sidecar of ``worker``. ``mark`` is that of
    the tenant whose runs are read, "" of no tenant; by default, those of all are."""

    def __init__(self, store: StateStore, worker: Worker, mark: str | None = None) -> None:
        self._mark = mark
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
        """Ids of the workflows the sidecar lists. Raises where the SDK cannot list."""
        if not hasattr(self.client, "iter_workflow_instance_ids"):
            raise UnsupportedSdkError(symbol="DaprWorkflowClient.iter_workflow_instance_ids")
        try:
            for run in self.client.iter_workflow_instance_ids():
                if self._mark in (None, mark_of(run)):
                    yield run
        except grpc.RpcError as error:
            raise sidecar_fault(self.worker.address, error) from None

    async def run(self, run: str) -> RunSummary:
        """The run named ``run``. Raises :class:`RunNotFoundError`."""
        run = self.named(run)
        state = self.state(run)
        spec = await self.io.get(spec_key(run))
        if state is None or spec is None:
            raise RunNotFoundError(run_id=run)
        about = unpack_spec(self.codec, spec, run)
        at = await self.io.get(end_key(run))
        end = None
        if at is not None and at != CANCELLED:
            end = await self._record(run, at.decode())
        return self.summary(run, state, about, at, end)

    def summary(
        self, run: str, state: WorkflowState, spec: Json, at: bytes | None, end: Record | None
    ) -> RunSummary:
        """What the state of a workflow, a spec, what is under the end's key and the record it names
        tell together."""
        status, waits_for, error = self._status(state, at, end)
        return RunSummary(
            run,
            state.name or spec.get("runner") or "",
            spec.get("thread"),
            status,
            state.created_at,
            state.last_updated_at,
            waits_for,
            (spec.get("tenant") or None) if mark_of(run) else None,
            spec.get("framework"),
            error,
        )

    def named(self, run: str) -> str:
        """The id of the run that ``run`` names for who reads. Raises :class:`RunNotFoundError`."""
        found = run if self._mark is None else within(self._mark, run)
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

    def _status(
        self, state: WorkflowState, at: bytes | None, end: Record | None
    ) -> tuple[RunStatus, list[str], str | None]:
        if at == CANCELLED:
            return RunStatus.CANCELLED, [], None
        if end is not None:
            error: bytes | None = end.body.get("error")
            told = None if error is None else describe_error(self.codec.decode(error, end.key))
            text = None if told is None else f"{told['error_type']}: {told['message']}"
            return RunStatus(end.outcome["status"]), [], text
        name = state.runtime_status.name
        if name in OVER:
            details: Any = state.failure_details
            text = None if details is None else f"{details.error_type}: {details.message}"
            is_failed = name in ("FAILED", "COMPLETED")
            return (RunStatus.FAILED if is_failed else RunStatus.CANCELLED), [], text
        if name == "SUSPENDED":
            return RunStatus.SUSPENDED, [], None
        told = said(state.serialized_custom_status) or {}
        if parked := told.get("parked"):
            waits_for = [f"{each['step']}: {each.get('effect') or ''}" for each in parked]
            return RunStatus.PARKED, waits_for, None
        if "kind" in told:
            return RunStatus.HELD_UP, [f"{told['step']}: {told['kind']}"], None
        if asks := told.get("asks"):
            return RunStatus.WAITING, list(asks), None
        return RunStatus(name.lower()), [], None

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

    async def steps(self, run: str) -> list[StepSummary]:
        """The steps of ``run``, as far as recorded or planned, in the order of the plans."""
        return list(Timeline(await self.records(run), self.codec).steps())

    async def follow_steps(self, run: str) -> AsyncIterator[StepSummary]:
        """The attempts at steps of ``run``, each when it is over, until the run is or is
        parked."""
        records: dict[str, Record] = {}
        told: set[tuple[str, str]] = set()
        with suppress(RunCancelledError, RunFailedError, EffectUnknownError):
            async for record in self.follow(run):
                if not isinstance(record, Record):
                    continue
                records[record.key] = record
                for step in Timeline(records, self.codec).steps():
                    if step.is_over and (step.key, step.step_id) not in told:
                        told.add((step.key, step.step_id))
                        yield step

    async def with_effects(self, run: str, steps: list[StepSummary]) -> list[StepSummary]:
        """``steps`` with what names their effects."""
        run = self.named(run)
        last = {step.step_id: number for number, step in enumerate(steps)}
        scopes = {
            scope: number
            for step_id, number in last.items()
            for scope in {step_id, step_id.partition(":")[2] or step_id}
        }
        markers = {begun_key(run, scope, n): scope for scope in scopes for n in range(2)}
        found = await self.io.get_many(list(markers)) if markers else {}
        changed = list(steps)
        for scope in {markers[key] for key in found}:
            effects = [about async for _, about in begun_in(run, scope, self.io)]
            changed[scopes[scope]] = replace(steps[scopes[scope]], effects=effects)
        return changed

    # -- changing runs

    def turns(self, runner: str, run: str) -> Turns:
        """The turns of ``runner``, for the tenant of ``run``. They schedule nothing from here."""
        return Turns(runner, self.codec, lambda: self.client, _no_base, mark_of(run))

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
            advice = _ADVICE[found.status].format(run=found.run_id)
            raise RunNotSuspendedError(run_id=run, status=found.status, advice=advice)
        await self.control.resume(found.run_id)

    async def terminate(self, run: str) -> None:
        """End the workflow of ``run`` at once, and the run. Raises :class:`RunOverError`."""
        await self.spec(run)
        await self.control.terminate(self.named(run))

    async def newest_of(self, thread: str, runner: str | None = None) -> str:
        """The id of the newest run of ``thread``. Without a ``runner``, all runs are looked
        through. Raises :class:`RunNotFoundError`, and :class:`AmbiguousThreadError` if several
        runners have the thread."""
        found = {runner} if runner is not None else await self._runners_of(thread)
        if len(found) > 1:
            raise AmbiguousThreadError(thread=thread, runners=", ".join(sorted(found)))
        for name in found:
            turns = Turns(name, self.codec, lambda: self.client, _no_base, self._mark or "")
            return await turns.current(self.io, thread)
        raise RunNotFoundError(run_id=f"(newest of thread {thread})")

    async def _runners_of(self, thread: str) -> set[str]:
        runs = list(self.ids())
        specs = await self.io.get_many([spec_key(run) for run in runs])
        found: set[str] = set()
        for run in runs:
            data = specs.get(spec_key(run))
            if data is None or mark_of(run) != (self._mark or ""):
                continue
            if unpack_spec(self.codec, data, run).get("thread") == thread:
                found.add(await self.runner_of(run))
        return found

    async def purge(self, run: str) -> None:
        """Delete all that is recorded for ``run``. Raises :class:`RunNotEndedError` while it is
        active."""
        run = self.named(run)
        runner = await self.runner_of(run)
        telling, turns = self.telling(runner, run), self.turns(runner, run)
        purge = Purge(lambda: self.client, self.codec, self.store, telling, turns, lambda _: None)
        await purge.run(self.io, run)


def _no_base(run: str, mode: str) -> Json:
    raise AssertionError(f"{run} is not scheduled from here")

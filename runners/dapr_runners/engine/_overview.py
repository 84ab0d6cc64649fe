"""What a sidecar knows of runs, for who operates them: without their program.

Reads the envelopes of specs and records, which are plain data; values of users' classes stay as
they are stored.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import grpc
from dapr.ext.workflow import DaprWorkflowClient, WorkflowState

from dapr_runners.engine._bus import Bus
from dapr_runners.engine._effect_keys import begun_in
from dapr_runners.engine._faults import sidecar_fault, without_sdk_log
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import CANCELLED, end_key, is_run_id, record_key, spec_key
from dapr_runners.engine._reader import Reader
from dapr_runners.engine._telling import OVER, Telling
from dapr_runners.engine._tenants import mark_of, within
from dapr_runners.engine._turns import Turns, said, unpack_spec
from dapr_runners.engine._work import Json, Record, unpack_record
from dapr_runners.engine.errors import RunNotFoundError, UnsupportedSdkError
from dapr_runners.state import Codec


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run. ``status`` is ``pending``, ``running``, ``waiting`` (for answers), ``parked``
    (for a decision), ``held up`` (``waits_for`` says by what), ``interrupted``, ``completed``,
    ``failed`` or ``cancelled``."""

    run_id: str
    runner: str
    thread: str | None
    status: str
    created_at: datetime
    last_updated_at: datetime
    waits_for: list[str] = field(default_factory=list[str])
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class StepSummary:
    """A step of a run. ``status`` is ``planned``, ``completed``, ``failed``, ``interrupted`` or
    ``retried``; ``began`` and ``ended`` are seconds since the epoch, None where not recorded;
    ``key`` is that of its record."""

    key: str
    name: str
    status: str
    attempt: int
    began: float | None
    ended: float | None
    effects: list[Json] = field(default_factory=list[Json])


class Overview:
    """Reads runs through ``io`` and ``client``; ``address`` is the sidecar's. ``mark`` is that of
    the tenant whose runs are read, "" of no tenant; by default, those of all are."""

    def __init__(
        self,
        io: IO,
        client: DaprWorkflowClient,
        codec: Codec,
        address: str,
        mark: str | None = None,
    ) -> None:
        self._mark = mark
        self.io = io
        self._client: Any = client
        self.codec = codec
        self._address = address

    # -- runs

    def ids(self) -> Iterator[str]:
        """Ids of the workflows the sidecar lists. Raises where the SDK cannot list."""
        if not hasattr(self._client, "iter_workflow_instance_ids"):
            raise UnsupportedSdkError(symbol="DaprWorkflowClient.iter_workflow_instance_ids")
        try:
            for run in self._client.iter_workflow_instance_ids():
                if self._mark in (None, mark_of(run)):
                    yield run
        except grpc.RpcError as error:
            raise sidecar_fault(self._address, error) from None

    async def run(self, run: str) -> RunSummary:
        """The run named ``run``. Raises :class:`RunNotFoundError`."""
        run = self.named(run)
        state = self._state(run)
        data = await self.io.get(spec_key(run))
        if state is None or data is None:
            raise RunNotFoundError(run_id=run)
        status, waits_for = await self._status(run, state)
        spec = unpack_spec(self.codec, data, run)
        return RunSummary(
            run,
            state.name,
            spec.get("thread"),
            status,
            state.created_at,
            state.last_updated_at,
            waits_for,
            (spec.get("tenant") or None) if mark_of(run) else None,
        )

    def named(self, run: str) -> str:
        """The id of the run that ``run`` names for who reads. Raises :class:`RunNotFoundError`."""
        found = run if self._mark is None else within(self._mark, run)
        if found is None or not is_run_id(found):
            raise RunNotFoundError(run_id=run)
        return found

    def _state(self, run: str) -> WorkflowState | None:
        try:
            with without_sdk_log():
                return self._client.get_workflow_state(run)
        except grpc.RpcError as error:
            raise sidecar_fault(self._address, error) from None

    async def _status(self, run: str, state: WorkflowState) -> tuple[str, list[str]]:
        at = await self.io.get(end_key(run))
        if at == CANCELLED:
            return "cancelled", []
        if at is not None and (end := await self._record(run, at.decode())) is not None:
            return end.outcome["status"], []
        name = state.runtime_status.name
        if name in OVER:
            return ("failed" if name in ("FAILED", "COMPLETED") else "cancelled"), []
        told = said(state.serialized_custom_status) or {}
        if parked := told.get("parked"):
            return "parked", [f"{each['step']}: {each.get('effect') or ''}" for each in parked]
        if "kind" in told:
            return "held up", [f"{told['step']}: {told['kind']}"]
        if asks := told.get("asks"):
            return "waiting", list(asks)
        return name.lower(), []

    async def _record(self, run: str, key: str) -> Record | None:
        data = await self.io.get(record_key(run, key))
        return None if data is None else self._decode(key, data, record_key(run, key))

    def _decode(self, key: str, data: bytes, stored_under: str) -> Record:
        return unpack_record(self.codec, key, data, stored_under)

    async def cancel(self, run: str) -> None:
        """Cancel ``run``. One that has ended is left as it is. Raises RunNotFoundError."""
        found = await self.run(run)
        run, runner = found.run_id, found.runner
        turns = Turns(runner, self.codec, lambda: self._client, lambda _run, _mode: {})
        await Telling(runner, lambda: self._client, turns).cancel(self.io, run)

    # -- steps

    async def steps(self, run: str) -> list[StepSummary]:
        """The steps of ``run``, as far as recorded or planned, in the order of the plans."""
        run = self.named(run)
        reader = Reader(run, Bus(), self.io, self._decode, lambda _: None)
        records: dict[str, Record] = {}
        async for record in reader.recorded():
            records[record.key] = record
        return [step async for step in self._walk(run, "", records)]

    async def _walk(
        self, run: str, lane: str, records: dict[str, Record]
    ) -> AsyncIterator[StepSummary]:
        number = 0
        while (plan := _newest(records, f"{lane}{number}")) is not None:
            if plan.outcome["k"] != "plan":
                return
            steps: list[Json] = plan.outcome["steps"]
            for step in steps:
                key = f"{lane}{number}:{step['id']}"
                is_fused = len(steps) == 1 and bool(step.get("fuse"))
                at = f"{lane}{number + 1}" if is_fused else key
                if step.get("loop"):
                    async for inner in self._walk(run, f"{key}/", records):
                        yield inner
                for failed in _attempts(records, at)[:-1]:
                    yield self._summary(failed, step, [])
                effects = [about async for _, about in begun_in(run, key, self.io)]
                yield self._summary(_newest(records, at), step, effects, at)
            number += 1

    def _summary(
        self, record: Record | None, step: Json, effects: list[Json], at: str = ""
    ) -> StepSummary:
        if record is None:
            return StepSummary(at, step["name"], "planned", 0, None, None, effects)
        began, ended = record.times or (None, None)
        return StepSummary(
            record.key, step["name"], _outcome_of(record), record.attempt, began, ended, effects
        )


def _attempts(records: dict[str, Record], key: str) -> list[Record]:
    """The records of the attempts at ``key``, in order."""
    found = [record for record in records.values() if record.key.partition("~")[0] == key]
    return sorted(found, key=lambda record: int(record.key.partition("~")[2] or 1))


def _newest(records: dict[str, Record], key: str) -> Record | None:
    return found[-1] if (found := _attempts(records, key)) else None


def _outcome_of(record: Record) -> str:
    outcome = record.outcome
    match outcome["k"]:
        case "retry":
            return "retried"
        case "step":
            raised = {"error": "failed", "interrupt": "interrupted", "": "completed"}
            return raised[outcome.get("raised") or ""]
        case "end":
            return str(outcome["status"])
        case _:
            return "completed"

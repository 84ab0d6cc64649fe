"""A run, as its workflow, its spec and its end tell of it: how far it is, for people to read."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dapr.ext.workflow import WorkflowState

from dapr_runners._statuses import RunStatus
from dapr_runners._times import utc
from dapr_runners.engine._keys import CANCELLED
from dapr_runners.engine._telling import OVER
from dapr_runners.engine._tenants import mark_of
from dapr_runners.engine._turns import said
from dapr_runners.engine._work import Json, Record
from dapr_runners.state import Codec, describe_error

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
A_WORKER = "a worker to begin it"
ITS_CALLER = "its caller, or the next call on its thread: nobody has scheduled it"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run. ``waits_for`` says what it waits for, or is held up by; ``error`` what it failed with.
    The times are in UTC; they are None, as ``framework`` is, for some runs of older releases."""

    run_id: str
    runner: str
    thread: str | None
    status: RunStatus
    created_at: datetime | None
    last_updated_at: datetime | None
    waits_for: list[str] = field(default_factory=list[str])
    tenant: str | None = None
    framework: str | None = None
    error: str | None = None

    @property
    def advice(self) -> str:
        """What lets it go on."""
        return _ADVICE[self.status].format(run=self.run_id)


def summary_of(
    run: str,
    state: WorkflowState | None,
    spec: Json,
    at: bytes | None,
    end: Record | None,
    codec: Codec,
    waits_for: str = A_WORKER,
) -> RunSummary:
    """What the state of a workflow, a spec, what is under the end's key and the record it names
    tell together. ``waits_for`` is what a run waits for that has neither workflow nor end."""
    if state is None:
        created = called_at(spec)
        times = created, _time_of(end) or created
    else:
        times = utc(state.created_at), utc(state.last_updated_at)
    status, waits, error = _status(state, at, end, codec, waits_for)
    return RunSummary(
        run,
        (None if state is None else state.name) or spec.get("runner") or "",
        spec.get("thread"),
        status,
        *times,
        waits,
        (spec.get("tenant") or None) if mark_of(run) else None,
        spec.get("framework"),
        error,
    )


def called_at(spec: Json) -> datetime | None:
    """When the call was made that a run was started with, if that is known."""
    at = spec.get("called")
    return utc(at) if isinstance(at, float) else None


def _time_of(record: Record | None) -> datetime | None:
    times = None if record is None else record.times
    return None if times is None else utc(times[1])


def _status(
    state: WorkflowState | None, at: bytes | None, end: Record | None, codec: Codec, waits_for: str
) -> tuple[RunStatus, list[str], str | None]:
    if at == CANCELLED:
        return RunStatus.CANCELLED, [], None
    if end is not None:
        error: bytes | None = end.body.get("error")
        described = None if error is None else describe_error(codec.decode(error, end.key))
        text = None
        if described is not None:
            text = f"{described['error_type']}: {described['message']}"
        return RunStatus(end.outcome["status"]), [], text
    if state is None:
        return RunStatus.PENDING, [waits_for], None
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
        waits = [f"{each['step']}: {each.get('effect') or ''}" for each in parked]
        return RunStatus.PARKED, waits, None
    if "kind" in told:
        return RunStatus.HELD_UP, [f"{told['step']}: {told['kind']}"], None
    if asks := told.get("asks"):
        return RunStatus.WAITING, list(asks), None
    status = RunStatus(name.lower())
    return status, [A_WORKER] if status is RunStatus.PENDING else [], None

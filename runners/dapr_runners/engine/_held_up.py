"""What holds a run up, as the history of its workflow tells it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import grpc

from dapr_runners._statuses import RunStatus
from dapr_runners._times import utc
from dapr_runners.engine._faults import sidecar_fault
from dapr_runners.engine._overview import Overview
from dapr_runners.engine._run_summary import RunSummary
from dapr_runners.engine._workflow import pause_after


@dataclass(frozen=True, slots=True)
class HeldUp:
    """A step that cannot be done for now: the ``error`` of the last of its ``attempts``, which
    failed outside the program, and ``since`` when. ``next_try`` is about when it is tried again;
    None while it is. Where steps of one name are held up together, they are told of together."""

    step: str
    error: str
    attempts: int
    since: datetime
    next_try: datetime | None


async def held_up(runs: Overview, run: RunSummary) -> list[HeldUp]:
    """What holds ``run`` up: empty of one that is not, and where the SDK or the sidecar has no
    history to read."""
    history: Any = getattr(runs.client, "get_workflow_history", None)
    if run.status is not RunStatus.HELD_UP or history is None:
        return []
    try:
        events: list[Any] = await runs.io.call(lambda: history(run.run_id))
    except NotImplementedError:
        return []
    except grpc.RpcError as error:
        call: Any = error
        if call.code() is grpc.StatusCode.NOT_FOUND:  # it has been purged
            return []
        raise sidecar_fault(runs.worker.address, error) from None
    return held_up_in(events, run.runner)


def held_up_in(events: list[Any], runner: str) -> list[HeldUp]:
    """The same, of the ``events`` of a history, oldest first."""
    names: dict[int, str] = {}
    failures: dict[str, list[Any]] = {}
    at_work: dict[str, int] = {}
    for event in events:
        kind = event.event_type.value
        if kind == "taskScheduled":
            names[event.event_id] = event.name or ""
            at_work[event.name or ""] = event.event_id
        elif kind in ("taskFailed", "taskCompleted"):
            name = names.get(event.task_scheduled_id, "")
            at_work.pop(name, None)
            if kind == "taskFailed":
                failures.setdefault(name, []).append(event)
            else:
                failures.pop(name, None)
    return [
        _held_up(name.removeprefix(f"{runner}/"), failed, name in at_work)
        for name, failed in failures.items()
    ]


def _held_up(step: str, failed: list[Any], is_tried: bool) -> HeldUp:
    details = failed[-1].failure_details
    kind = details.error_type if details else "Exception"
    error = f"{kind}: {details.message}" if details else kind
    pause = timedelta(seconds=pause_after(len(failed), kind))
    next_try = None if is_tried else utc(failed[-1].timestamp) + pause
    return HeldUp(step, error, len(failed), utc(failed[0].timestamp), next_try)

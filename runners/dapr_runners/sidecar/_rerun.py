"""Run a finished workflow again from one of its events: a copy of the history up to there."""

import time
import uuid

import grpc

from dapr_runners.sidecar import _effects
from dapr_runners.sidecar._engine import Engine
from dapr_runners.sidecar._instance import (
    RUNNING,
    Instance,
    View,
    timestamp,
    unwrap,
)
from dapr_runners.sidecar._protos import pb
from dapr_runners.sidecar._storage import Transaction
from dapr_runners.sidecar._turns import Effects, timer_start

_RESULTS = {
    "taskCompleted": "taskScheduled",
    "taskFailed": "taskScheduled",
    "childWorkflowInstanceCompleted": "childWorkflowInstanceCreated",
    "childWorkflowInstanceFailed": "childWorkflowInstanceCreated",
}
_BEGINNINGS = ("taskScheduled", "timerCreated", "childWorkflowInstanceCreated")
_CODES = {
    grpc.StatusCode.NOT_FOUND: "NotFound",
    grpc.StatusCode.INVALID_ARGUMENT: "InvalidArgument",
    grpc.StatusCode.ALREADY_EXISTS: "AlreadyExists",
}


class RerunError(Exception):
    """The run cannot be repeated so; ``code`` is the gRPC status."""

    def __init__(self, code: grpc.StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def rerun(
    engine: Engine,
    request: pb.RerunWorkflowFromEventRequest,
    new_id: str,
    transaction: Transaction,
) -> None:
    """Create ``new_id`` from the past of ``request.sourceInstanceID``."""
    source = _source(engine, request, new_id)
    history, again = _fork(engine.ledger.history(source), request, new_id)
    now = time.time_ns()
    for happened in again:
        happened.timestamp.CopyFrom(timestamp(now))
    history += again
    started = next(h.executionStarted for h in history if h.HasField("executionStarted"))
    view = View(
        id=new_id,
        name=started.name,
        status=RUNNING,
        execution_id=str(uuid.uuid4()),
        created_at=source.view.created_at,
        updated_at=now,
        started_at=now,
        input=unwrap(started, "input"),
    )
    instance = Instance(view, history=[])
    nr = engine.next_history_nr()
    transaction.create(view)
    transaction.append(new_id, nr, now, history)
    engine.ledger.extend(instance, history)
    engine.ledger.add(instance, transaction)
    _effects.schedule(
        engine,
        instance,
        nr,
        Effects(
            tasks=[h for h in again if h.HasField("taskScheduled")],
            timers=[timer_start(h) for h in again if h.HasField("timerCreated")],
            children=[h for h in again if h.HasField("childWorkflowInstanceCreated")],
        ),
        transaction,
    )


def _source(engine: Engine, request: pb.RerunWorkflowFromEventRequest, new_id: str) -> Instance:
    source_id = request.sourceInstanceID
    if source_id == new_id:
        raise RerunError(
            grpc.StatusCode.INVALID_ARGUMENT,
            "rerun workflow instance ID must be different from the original instance ID",
        )
    source = engine.ledger.find(source_id)
    if source is None:
        detail = f"workflow instance does not exist with ID '{source_id}'"
        raise _refusal(grpc.StatusCode.NOT_FOUND, detail)
    if not source.terminal:
        raise _refusal(
            grpc.StatusCode.INVALID_ARGUMENT, f"'{source_id}' is not in a terminal state"
        )
    if source.view.parent is not None:
        detail = f"'{source_id}': cannot rerun from child-workflows"
        raise _refusal(grpc.StatusCode.INVALID_ARGUMENT, detail)
    if engine.ledger.find(new_id) is not None:
        detail = f"workflow '{new_id}' has already been created"
        raise _refusal(grpc.StatusCode.ALREADY_EXISTS, detail)
    return source


def _fork(
    past: list[pb.HistoryEvent], request: pb.RerunWorkflowFromEventRequest, new_id: str
) -> tuple[list[pb.HistoryEvent], list[pb.HistoryEvent]]:
    """The events to keep, and the beginnings to begin again: those without an end by then."""
    kept: list[pb.HistoryEvent] = []
    begun: dict[tuple[str, int], pb.HistoryEvent] = {}
    for original in past:
        happened = pb.HistoryEvent()
        happened.CopyFrom(original)
        kind = happened.WhichOneof("eventType") or ""
        if happened.eventId == request.eventID:
            target = _target(happened, kind, request, new_id)
            again = list(begun.values())
            for event in again:
                if event.HasField("childWorkflowInstanceCreated"):
                    child = event.childWorkflowInstanceCreated
                    child.instanceId = f"{new_id}:{event.eventId:04x}"
            return kept, [*again, target]
        if kind in _BEGINNINGS:
            begun[kind, happened.eventId] = happened
            continue
        if kind in _RESULTS:
            beginning = (_RESULTS[kind], getattr(happened, kind).taskScheduledId)
            if beginning in begun:
                kept.append(begun.pop(beginning))
        kept.append(happened)
    detail = f"does not have history event with ID '{request.eventID}'"
    raise _refusal(grpc.StatusCode.NOT_FOUND, detail)


def _target(
    happened: pb.HistoryEvent,
    kind: str,
    request: pb.RerunWorkflowFromEventRequest,
    new_id: str,
) -> pb.HistoryEvent:
    invalid, number = grpc.StatusCode.INVALID_ARGUMENT, request.eventID
    if kind not in _BEGINNINGS:
        detail = f"target event '*protos.HistoryEvent_{kind[:1].upper()}{kind[1:]}' with ID"
        raise _refusal(
            grpc.StatusCode.NOT_FOUND, f"{detail} '{number}' is not an event that can be rerun"
        )
    renamed = request.HasField("newChildWorkflowInstanceID")
    if kind == "timerCreated" and request.overwriteInput:
        raise _refusal(invalid, f"cannot write input to timer event '{number}'")
    if kind != "childWorkflowInstanceCreated" and renamed:
        what = "activity" if kind == "taskScheduled" else "timer"
        detail = f"cannot set new child workflow instance ID on {what} event '{number}'"
        raise _refusal(invalid, detail)
    beginning = getattr(happened, kind)
    beginning.rerunParentInstanceInfo.instanceID = request.sourceInstanceID
    if kind == "childWorkflowInstanceCreated":
        child_id = f"{new_id}:{happened.eventId:04x}"
        beginning.instanceId = request.newChildWorkflowInstanceID if renamed else child_id
    if request.overwriteInput:
        beginning.ClearField("input")
        if request.HasField("input"):
            beginning.input.CopyFrom(request.input)
    return happened


def _refusal(code: grpc.StatusCode, detail: str) -> RerunError:
    return RerunError(code, f"rpc error: code = {_CODES[code]} desc = {detail}")

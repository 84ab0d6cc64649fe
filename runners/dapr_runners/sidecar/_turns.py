"""What a worker's answer to a turn means: pure functions from an answer to its effects."""

from dataclasses import dataclass, field
from typing import Any

from dapr_runners.sidecar._instance import (
    CONTINUED_AS_NEW,
    TERMINATED,
    Instance,
    Turn,
    event,
    nanoseconds,
)
from dapr_runners.sidecar._protos import pb

STALL_PERCENT = 95
"""How much of the largest message daprd lets a work item fill before it stalls the workflow."""

_TIMER_ORIGINS = ("createTimer", "externalEvent", "activityRetry", "childWorkflowRetry")


@dataclass(frozen=True, slots=True)
class TimerStart:
    """A durable timer; ``event`` is the external event whose arrival makes it pointless."""

    id: int
    fire_at: int
    event: str | None


@dataclass(slots=True)
class Effects:
    """Everything one answer changes, to be made durable in one transaction."""

    events: list[pb.HistoryEvent] = field(default_factory=list[pb.HistoryEvent])
    tasks: list[pb.HistoryEvent] = field(default_factory=list[pb.HistoryEvent])
    timers: list[TimerStart] = field(default_factory=list[TimerStart])
    children: list[pb.HistoryEvent] = field(default_factory=list[pb.HistoryEvent])
    completion: pb.ExecutionCompletedEvent | None = None
    restart: pb.CompleteWorkflowAction | None = None
    stall: tuple[int, str] | None = None

    @property
    def ended(self) -> bool:
        """Whether the execution is over, finished or continued as new."""
        return self.completion is not None or self.restart is not None


def effects(app_id: str, instance: Instance, turn: Turn, response: pb.WorkflowResponse) -> Effects:
    """Read ``response`` to ``turn`` of ``instance``."""
    result = Effects()
    terminated = next((e for e in turn.events if e.HasField("executionTerminated")), None)
    for action in response.actions:
        if action.HasField("workflowVersionNotAvailable"):
            result.stall = (pb.VERSION_NOT_AVAILABLE, "Version not available")
            return result
        _add(instance, action, result, terminated is not None)
    if terminated is not None and result.completion is None:
        result.restart = None
        _complete(
            result,
            -1,
            pb.ExecutionCompletedEvent(
                workflowStatus=TERMINATED,
                result=terminated.executionTerminated.input
                if terminated.executionTerminated.HasField("input")
                else None,
            ),
        )
    for happened in result.events:
        happened.router.sourceAppID = app_id
    if instance.patches:
        result.stall = _patch_mismatch(instance, response)
    return result


def record_version(instance: Instance, turn: Turn, response: pb.WorkflowResponse) -> None:
    """Note on the turn's first event which version and which new patches the worker used."""
    if not response.HasField("version"):
        return
    started = turn.events[0].workflowStarted
    new = list(response.version.patches)
    if not new:
        started.version.CopyFrom(response.version)
        return
    known = list(instance.patches)
    for patch in list(new):
        if patch in known:
            known.remove(patch)
            new.remove(patch)
    if new:
        started.version.patches.extend(new)
        instance.patches.extend(new)


def oversize(size: int, limit: int) -> bool:
    """Whether a work item of ``size`` bytes is too near to ``limit`` to be sent."""
    return limit > 0 and size > limit * STALL_PERCENT // 100


def _add(instance: Instance, action: pb.WorkflowAction, result: Effects, terminated: bool) -> None:
    kind = action.WhichOneof("workflowActionType")
    if kind == "completeWorkflow":
        done = action.completeWorkflow
        if done.workflowStatus == CONTINUED_AS_NEW:
            if not terminated:
                result.restart = done
            return
        _complete(
            result,
            action.id,
            pb.ExecutionCompletedEvent(
                workflowStatus=done.workflowStatus,
                result=done.result if done.HasField("result") else None,
                failureDetails=done.failureDetails if done.HasField("failureDetails") else None,
            ),
        )
    elif kind == "scheduleTask":
        scheduled = event(action.id, taskScheduled=_scheduled(action.scheduleTask))
        result.events.append(scheduled)
        result.tasks.append(scheduled)
    elif kind == "createTimer":
        _start_timer(action, result)
    elif kind == "createChildWorkflow":
        child = action.createChildWorkflow
        created = event(
            action.id,
            childWorkflowInstanceCreated=pb.ChildWorkflowInstanceCreatedEvent(
                instanceId=child.instanceId or f"{instance.id}:{action.id:04x}",
                name=child.name,
                version=child.version if child.HasField("version") else None,
                input=child.input if child.HasField("input") else None,
            ),
        )
        result.events.append(created)
        result.children.append(created)


def _complete(result: Effects, event_id: int, completion: pb.ExecutionCompletedEvent) -> None:
    result.completion = completion
    result.events.append(event(event_id, executionCompleted=completion))


def _scheduled(task: pb.ScheduleTaskAction) -> pb.TaskScheduledEvent:
    return pb.TaskScheduledEvent(
        name=task.name,
        version=task.version if task.HasField("version") else None,
        input=task.input if task.HasField("input") else None,
        taskExecutionId=task.taskExecutionId,
    )


def _start_timer(action: pb.WorkflowAction, result: Effects) -> None:
    timer: Any = action.createTimer
    created: Any = pb.TimerCreatedEvent(
        fireAt=timer.fireAt, name=timer.name if timer.HasField("name") else None
    )
    for origin in _TIMER_ORIGINS:
        if timer.HasField(origin):
            getattr(created, origin).CopyFrom(getattr(timer, origin))
    started = event(action.id, timerCreated=created)
    result.events.append(started)
    result.timers.append(timer_start(started))


def timer_start(started: pb.HistoryEvent) -> TimerStart:
    """The timer that its event tells of."""
    timer = started.timerCreated
    waits_for = timer.externalEvent.name.casefold() if timer.HasField("externalEvent") else None
    return TimerStart(started.eventId, nanoseconds(timer.fireAt), waits_for)


def _patch_mismatch(instance: Instance, response: pb.WorkflowResponse) -> tuple[int, str] | None:
    used = list(response.version.patches)
    if used[: len(instance.patches)] == instance.patches:
        return None
    known, current = ", ".join(instance.patches), ", ".join(used)
    return pb.PATCH_MISMATCH, (
        f"Patch mismatch. History patches: [{known}], current patches: [{current}]. "
    )


def oversize_task(result: Effects, limit: int) -> tuple[int, str] | None:
    """The stall that an activity too large to be sent leads to."""
    for task in result.tasks:
        size = task.ByteSize()
        if oversize(size, limit):
            return pb.PAYLOAD_SIZE_EXCEEDED, (
                f"activity '{task.taskScheduled.name}::{task.eventId}' payload {size} bytes exceeds"
                f" {STALL_PERCENT}% of max gRPC body size {limit} bytes; increase daprd"
                " --max-body-size and restart to resume: activity payload exceeds max gRPC body"
                " size"
            )
    return None

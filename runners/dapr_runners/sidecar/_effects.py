"""Carry out what a worker's answer to a turn asks for, in one transaction."""

import time
from dataclasses import replace

from dapr_runners.sidecar._engine import Engine
from dapr_runners.sidecar._instance import (
    COMPLETED,
    RUNNING,
    SUSPENDED,
    Instance,
    Parent,
    Turn,
    View,
    event,
    nanoseconds,
    text,
    timestamp,
    unwrap,
)
from dapr_runners.sidecar._lifecycle import AlreadyExistsError, children, create, start_event
from dapr_runners.sidecar._protos import pb
from dapr_runners.sidecar._storage import StoredTask, Transaction
from dapr_runners.sidecar._timers import Timer
from dapr_runners.sidecar._turns import Effects, record_version


def apply(
    engine: Engine,
    instance: Instance,
    turn: Turn,
    response: pb.WorkflowResponse,
    effects: Effects,
) -> Transaction:
    """The transaction that carries out ``effects``."""
    transaction = Transaction()
    transaction.consume(instance.id, turn.arrivals)
    transaction.after.extend(a.applied for a in turn.arrivals if a.applied is not None)
    record_version(instance, turn, response)
    before = instance.view
    view = replace(
        before,
        updated_at=time.time_ns(),
        started_at=before.started_at or nanoseconds(turn.events[0].timestamp),
        custom_status=unwrap(response, "customStatus"),
    )
    if effects.restart is not None:
        _continue_as_new(engine, instance, view, effects.restart, transaction)
        return transaction
    nr = engine.next_history_nr()
    events = turn.events + effects.events
    transaction.append(instance.id, nr, view.updated_at, events)
    engine.ledger.extend(instance, events)
    if effects.completion is not None:
        _complete(engine, instance, view, turn, effects.completion, transaction)
    else:
        instance.view = replace(view, status=SUSPENDED if instance.suspended else RUNNING)
        if _columns(instance.view) != _columns(before):
            transaction.update(instance.view)
        _cancel_guards(engine, instance, turn, transaction)
        schedule(engine, instance, nr, effects, transaction)
    transaction.touch(instance, instance.view)
    engine.wake(instance)
    return transaction


def _columns(view: View) -> tuple[object, ...]:
    return view.status, view.started_at, view.custom_status


def _cancel_guards(
    engine: Engine, instance: Instance, turn: Turn, transaction: Transaction
) -> None:
    """An event makes the oldest timer that guards a wait for its name pointless."""
    for happened in turn.events:
        if happened.HasField("eventRaised"):
            name = happened.eventRaised.name.casefold()
            timer = engine.timers.guarding(instance.id, name)
            if timer is not None:
                engine.timers.remove(instance.id, timer)
                transaction.remove_timer(instance.id, timer)


def schedule(
    engine: Engine, instance: Instance, nr: int, effects: Effects, transaction: Transaction
) -> None:
    """Start what an instance asks for; ``nr`` is the row of history that tells of it."""
    for timer in effects.timers:
        transaction.start_timer(instance.id, timer)
        engine.timers.add(instance.id, timer.id, Timer(timer.fire_at, timer.event))
    if effects.tasks:
        execution_id = instance.view.execution_id
        tasks = [StoredTask(instance.id, execution_id, task) for task in effects.tasks]
        for task in tasks:
            transaction.schedule(instance.id, task.event.eventId, nr)
            engine.tasks.plan(task)
        transaction.after.append(lambda: engine.tasks.run_planned(tasks))
    for created in effects.children:
        _start_child(engine, instance, created, transaction)


def _start_child(
    engine: Engine, instance: Instance, created: pb.HistoryEvent, transaction: Transaction
) -> None:
    child = created.childWorkflowInstanceCreated
    start = start_event(
        engine,
        child.instanceId,
        child.name,
        unwrap(child, "input"),
        parentInstance=pb.ParentInstanceInfo(
            taskScheduledId=created.eventId,
            name=text(instance.view.name),
            workflowInstance=pb.WorkflowInstance(
                instanceId=instance.id, executionId=text(instance.view.execution_id)
            ),
            appID=engine.app_id,
        ),
    )
    try:
        create(engine, start, transaction)
    except AlreadyExistsError as error:
        failed = pb.ChildWorkflowInstanceFailedEvent(
            taskScheduledId=created.eventId,
            failureDetails=pb.TaskFailureDetails(
                errorType="WorkflowInstanceAlreadyExists", errorMessage=str(error)
            ),
        )
        engine.arrive(instance, event(childWorkflowInstanceFailed=failed), transaction)


def _complete(
    engine: Engine,
    instance: Instance,
    view: View,
    turn: Turn,
    completion: pb.ExecutionCompletedEvent,
    transaction: Transaction,
) -> None:
    terminated = next(
        (e.executionTerminated for e in turn.events if e.HasField("executionTerminated")), None
    )
    instance.view = replace(
        view,
        status=completion.workflowStatus,
        completed_at=view.updated_at,
        output=unwrap(completion, "result"),
        failure=completion.failureDetails if completion.HasField("failureDetails") else None,
    )
    transaction.update(instance.view)
    transaction.set_outcome(instance.view)
    below = children(engine, instance) if terminated is not None and terminated.recurse else []
    engine.end(instance, transaction)
    if view.parent is not None:
        _tell_parent(engine, view.parent, completion, transaction)
    for child in below:
        if not child.terminal:
            engine.arrive(child, event(executionTerminated=terminated), transaction)


def _tell_parent(
    engine: Engine,
    parent: Parent,
    completion: pb.ExecutionCompletedEvent,
    transaction: Transaction,
) -> None:
    waiting = engine.ledger.find(parent.id)
    if waiting is None or waiting.terminal or waiting.view.execution_id != parent.execution_id:
        return
    if completion.workflowStatus == COMPLETED:
        told = event(
            childWorkflowInstanceCompleted=pb.ChildWorkflowInstanceCompletedEvent(
                taskScheduledId=parent.task,
                result=completion.result if completion.HasField("result") else None,
            )
        )
    else:
        told = event(
            childWorkflowInstanceFailed=pb.ChildWorkflowInstanceFailedEvent(
                taskScheduledId=parent.task,
                failureDetails=completion.failureDetails
                if completion.HasField("failureDetails")
                else None,
            )
        )
    told.router.sourceAppID = told.router.targetAppID = engine.app_id
    engine.arrive(waiting, told, transaction)


def _continue_as_new(
    engine: Engine,
    instance: Instance,
    view: View,
    restart: pb.CompleteWorkflowAction,
    transaction: Transaction,
) -> None:
    """Begin the next generation: its history is empty, what is still in the inbox stays."""
    kept, instance.inbox = instance.inbox, []
    kept = [arrival for arrival in kept if _outlives(arrival.event)]
    engine.settle(instance, transaction)
    transaction.drop(instance.id, "inbox", "history")
    engine.ledger.drop_history(instance)
    instance.history = []
    more: dict[str, object] = {}
    if view.parent is not None:
        more["parentInstance"] = pb.ParentInstanceInfo(
            taskScheduledId=view.parent.task,
            name=text(view.parent.name),
            workflowInstance=pb.WorkflowInstance(
                instanceId=view.parent.id, executionId=text(view.parent.execution_id)
            ),
            appID=engine.app_id,
        )
    start = start_event(engine, instance.id, view.name, unwrap(restart, "result"), **more)
    instance.view = replace(
        view,
        status=RUNNING,
        execution_id=start.executionStarted.workflowInstance.executionId.value,
        input=unwrap(restart, "result"),
    )
    transaction.update(instance.view)
    transaction.set_input(instance.id, instance.view.input)
    engine.arrive(instance, start, transaction)
    for happened in restart.carryoverEvents:
        carried = pb.HistoryEvent()
        carried.CopyFrom(happened)
        carried.timestamp.CopyFrom(timestamp(view.updated_at))
        engine.arrive(instance, carried, transaction)
    for arrival in kept:
        engine.arrive(instance, arrival.event, transaction, arrival.applied)


def _outlives(happened: pb.HistoryEvent) -> bool:
    """Whether an event concerns the instance rather than something its old generation began."""
    return happened.WhichOneof("eventType") in (
        "eventRaised",
        "executionTerminated",
        "executionSuspended",
        "executionResumed",
    )

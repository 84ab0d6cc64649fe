"""How instances begin and how they vanish: created, created anew, purged, with their children."""

import uuid

from dapr_runners.sidecar._engine import START_TIMER, Engine
from dapr_runners.sidecar._instance import (
    PENDING,
    Instance,
    Parent,
    View,
    event,
    nanoseconds,
    text,
    unwrap,
)
from dapr_runners.sidecar._protos import pb
from dapr_runners.sidecar._storage import Transaction
from dapr_runners.sidecar._timers import Timer

_NOT_COMPLETED = "orchestration has not yet completed"


class AlreadyExistsError(Exception):
    """The id belongs to an instance that may not be replaced."""


class AwaitingError(Exception):
    """The id belongs to an instance whose activity still runs."""


class NotCompletedError(Exception):
    """An instance is still active."""


def start_event(
    engine: Engine, instance_id: str, name: str, value: str | None, **more: object
) -> pb.HistoryEvent:
    """The first event of a new execution."""
    happened = event(
        executionStarted=pb.ExecutionStartedEvent(
            name=name,
            input=text(value),
            workflowInstance=pb.WorkflowInstance(
                instanceId=instance_id, executionId=text(str(uuid.uuid4()))
            ),
            **more,  # pyright: ignore[reportArgumentType]
        )
    )
    happened.router.sourceAppID = engine.app_id
    return happened


def create(engine: Engine, start: pb.HistoryEvent, transaction: Transaction) -> None:
    """A new instance from its first event; raises :class:`AlreadyExistsError` or
    :class:`AwaitingError`."""
    started = start.executionStarted
    instance_id = started.workflowInstance.instanceId
    existing = engine.ledger.find(instance_id)
    parent = _parent(started)
    if existing is not None:
        if not existing.terminal:
            if parent is not None and existing.view.parent == parent:
                return
            raise AlreadyExistsError(f"an active workflow with ID '{instance_id}' already exists")
        if engine.tasks.keeps(instance_id):
            raise AwaitingError(
                f"a terminated workflow with ID '{instance_id}' is already awaiting an activity"
                " result"
            )
        if active := _active_child(engine, existing):
            raise AlreadyExistsError(f"cannot recreate workflow with ID '{instance_id}': {active}")
        erase(engine, existing, transaction)
    start_at = None
    if started.HasField("scheduledStartTimestamp"):
        start_at = nanoseconds(started.scheduledStartTimestamp)
    now = nanoseconds(start.timestamp)
    view = View(
        id=instance_id,
        name=started.name,
        status=PENDING,
        execution_id=started.workflowInstance.executionId.value,
        created_at=now,
        updated_at=now,
        start_at=start_at,
        parent=parent,
        input=unwrap(started, "input"),
    )
    instance = Instance(view, history=[])
    transaction.create(view)
    engine.ledger.add(instance, transaction)
    if start_at is not None and start_at > now:
        engine.timers.add(instance_id, START_TIMER, Timer(start_at, None))
    engine.arrive(instance, start, transaction)


def check_purge(engine: Engine, instance: Instance, recursive: bool, force: bool) -> None:
    """Raises :class:`NotCompletedError` where something is still active."""
    if not force and not instance.terminal:
        raise NotCompletedError(_NOT_COMPLETED)
    for child in children(engine, instance) if recursive else ():
        try:
            check_purge(engine, child, recursive, force)
        except NotCompletedError as error:
            raise NotCompletedError(f"failed to purge child workflow: {error}") from error


def purge(engine: Engine, instance: Instance, recursive: bool, transaction: Transaction) -> int:
    """Erase an instance, and what it started if ``recursive``; how many that were."""
    below = children(engine, instance) if recursive else []
    erase(engine, instance, transaction)
    return 1 + sum(purge(engine, child, recursive, transaction) for child in below)


def erase(engine: Engine, instance: Instance, transaction: Transaction) -> None:
    """Leave nothing of an instance: in memory at once, in the file by ``transaction``."""
    engine.end(instance, transaction)
    engine.tasks.erase(instance.id)
    transaction.drop(instance.id, "instances", "payloads", "history")
    engine.ledger.drop_history(instance)
    instance.gone = True
    engine.ledger.bury(instance, transaction)


def children(engine: Engine, instance: Instance) -> list[Instance]:
    """The child workflows its history tells of, those that still exist."""
    ids = dict.fromkeys(
        happened.childWorkflowInstanceCreated.instanceId
        for happened in engine.ledger.history(instance)
        if happened.HasField("childWorkflowInstanceCreated")
    )
    found = (engine.ledger.find(instance_id) for instance_id in ids)
    return [child for child in found if child is not None]


def _active_child(engine: Engine, instance: Instance) -> str | None:
    """Why the instances below this one do not allow its id to be used again."""
    for child in children(engine, instance):
        below = _active_child(engine, child) if child.terminal else _NOT_COMPLETED
        if below:
            return f"child workflow '{child.id}': {below}"
    return None


def _parent(started: pb.ExecutionStartedEvent) -> Parent | None:
    if not started.HasField("parentInstance"):
        return None
    parent = started.parentInstance
    return Parent(
        parent.workflowInstance.instanceId,
        parent.taskScheduledId,
        parent.name.value,
        parent.workflowInstance.executionId.value,
    )

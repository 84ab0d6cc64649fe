"""What the engine keeps of a workflow instance while it is in memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dapr_runners.sidecar._protos import StringValue, Timestamp, pb

RUNNING = pb.ORCHESTRATION_STATUS_RUNNING
COMPLETED = pb.ORCHESTRATION_STATUS_COMPLETED
CONTINUED_AS_NEW = pb.ORCHESTRATION_STATUS_CONTINUED_AS_NEW
FAILED = pb.ORCHESTRATION_STATUS_FAILED
CANCELED = pb.ORCHESTRATION_STATUS_CANCELED
TERMINATED = pb.ORCHESTRATION_STATUS_TERMINATED
PENDING = pb.ORCHESTRATION_STATUS_PENDING
SUSPENDED = pb.ORCHESTRATION_STATUS_SUSPENDED
STALLED = pb.ORCHESTRATION_STATUS_STALLED

TERMINAL = frozenset({COMPLETED, FAILED, CANCELED, TERMINATED})

FOREVER = 2**63 - 1
"""The latest time SQLite can hold. The SDK starts a timer for the year 9999 where a wait has no
time-out; such a timer is kept, since events are paired with timers in order, but never fires."""


def timestamp(nanoseconds: int) -> Timestamp:
    """A protobuf timestamp from nanoseconds since the epoch."""
    return Timestamp(seconds=nanoseconds // 1_000_000_000, nanos=nanoseconds % 1_000_000_000)


def nanoseconds(stamp: Timestamp) -> int:
    """Nanoseconds since the epoch from a protobuf timestamp, :data:`FOREVER` at most."""
    return min(stamp.seconds * 1_000_000_000 + stamp.nanos, FOREVER)


def text(value: str | None) -> StringValue | None:
    """A protobuf string wrapper; None stays None."""
    return None if value is None else StringValue(value=value)


def unwrap(message: Any, name: str) -> str | None:
    """The string in wrapper field ``name`` of ``message``, or None where it is not set."""
    return getattr(message, name).value if message.HasField(name) else None


def event(event_id: int = -1, **kind: Any) -> pb.HistoryEvent:
    """A history event that happens now."""
    return pb.HistoryEvent(eventId=event_id, timestamp=timestamp(time.time_ns()), **kind)


@dataclass(frozen=True, slots=True)
class Parent:
    """Who waits for a child workflow: the instance, its task, workflow name and execution."""

    id: str
    task: int
    name: str
    execution_id: str


@dataclass(frozen=True, slots=True)
class View:
    """What a client may know of an instance: only what is durable."""

    id: str
    name: str
    status: int
    execution_id: str
    created_at: int
    updated_at: int
    start_at: int | None = None
    started_at: int | None = None
    completed_at: int | None = None
    parent: Parent | None = None
    custom_status: str | None = None
    input: str | None = None
    output: str | None = None
    failure: pb.TaskFailureDetails | None = None

    @property
    def started(self) -> bool:
        """Whether it got past its first turn. One that stalled in it did not."""
        return self.status != PENDING and self.started_at is not None


@dataclass(slots=True)
class Arrival:
    """An event in an inbox, or a timer that fired (those have no row: ``nr`` is None).

    ``applied`` is called once the turn that took it in is durable, or its instance is over.
    """

    event: pb.HistoryEvent
    nr: int | None
    applied: Callable[[], None] | None = None


@dataclass(slots=True)
class Turn:
    """A batch of events that a worker is asked to replay. ``history`` is what it starts from."""

    token: str
    arrivals: list[Arrival]
    events: list[pb.HistoryEvent]
    history: int


@dataclass(slots=True)
class Instance:
    """A workflow instance, ahead of the database by the writes under way."""

    view: View
    size: int = 0
    history: list[pb.HistoryEvent] | None = None
    patches: list[str] = field(default_factory=list[str])
    inbox: list[Arrival] = field(default_factory=list[Arrival])
    turn: Turn | None = None
    suspended: bool = False
    stalled: int | None = None
    refused: bool = False
    writes: int = 0
    gone: bool = False
    published: View | None = None

    @property
    def id(self) -> str:
        """The instance id."""
        return self.view.id

    @property
    def terminal(self) -> bool:
        """Whether it is over, as far as the engine knows."""
        return self.view.status in TERMINAL

    @property
    def idle(self) -> bool:
        """Whether it can be rebuilt from the database, so that memory may forget it."""
        return not (self.turn or self.inbox or self.writes) and self.stalled is None

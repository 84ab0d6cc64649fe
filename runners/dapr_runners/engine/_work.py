"""What the generator, the activities and a framework's adapter say to each other.

An *item* (activity input, JSON)::

    {"run": run id, "mode": "sync" | "async",       # the same in every item of a run
     "limit"?: seconds a step may take, "fast"?: bool, "trace"?: of who watches,
     "op": "begin" | "fuse" | "step" | "commit",
     "lane": "" or "3:<task>/...",                   # the loop it belongs to
     "at": record key of the plan, "n": its number,  # absent for begin of a root lane
     "task": task id, "name": activity name, "of": failed task id,     # fuse, step, begin of a lane
     "then": name of the commit that follows in the same activity,     # step
     "done": [[task id, record key], ...], "timed_out": bool,          # commit
     "alone": true,                                  # commit in the activity of its one step
     "attempt": int, "since": when the first attempt began (s since the epoch),
     "told", "due": when it was planned, and when it was to be tried again, if somebody watches,
     "step": name of the step that is given up,
     "parked": name of the letter that was waited with before,
     # of the one step of a plan told early: what made the plan
     "prev": {"at", "task", "name", "attempt", "then", "limit", "by": process}}

An *outcome* (activity result, JSON), by its ``k``::

    {"k": "plan", "lane", "at", "n", "steps": [{"id", "name", "fuse"?, "loop"?, "of"?, "wait"?,
               "then"?: true, "limit"?: seconds it may take}],
     "commit": name, "window"?: int, "timeout"?: seconds,
     "rolling"?: true: each step is committed as it arrives, while those of earlier plans stay open,
     "again"?: seconds after which to commit if nothing arrived (of a rolling lane),
     "past"?: keys of the step records that the plan came after (of a rolling lane; of an end too),
     "by"?: process that tells the plan while its record is on its way to the store}
    {"k": "step", "lane", "n", "id", "at", "stop"?: bool, "more"?: [steps],
     "raised"?: "error" | "interrupt"}
    {"k": "retry", "id": task id, "after": seconds, "attempt": int, "since": float}
    {"k": "park", "about": {"at": name of the letter and of the event that is waited for, "step",
               "effect", "idempotency_key"}}    # the item is given out again after the event
    {"k": "wait", "after": seconds}                 # of a step that was to be given up: not yet
    {"k": "end", "at": record key, "status": str}   # and this or "step", of a failure:
               "cause"?: {"kind", "step", "step_id", "attempts", "undo": [record keys]}
    {"k": "none"}: the step was cancelled where it ran, nothing is recorded and nobody waits for it

A step with "then", alone in a rolling lane, is committed by its own activity, as soon as its record
is there: the activity's result is the plan.

A step with "wait" is no activity: it is settled by the external event named as its record, which
whoever answers writes before raising the event. The event "wake" commits a rolling lane.

Record keys are relative to the run: ``3`` is superstep 3 of the root lane, ``3:<task>`` the result
of a step planned there, ``3:<task>/0`` the first record of the lane inside it, ``~2`` a second
attempt.
"""

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from dapr_runners.engine._io import IO
from dapr_runners.engine._watching import Watch
from dapr_runners.state import Codec, CorruptRecordError

Json: TypeAlias = dict[str, Any]

AGAIN = "again"
"""Entry of every item of a run that was started again after it had failed: how often."""
OF_A_RUN = ("run", "mode", "limit", "fast", "trace", AGAIN)
"""Entries that every item of a run has, or none."""
ANY_NAME = "*"
"""Among an adapter's activity names: its steps may have any other name too."""


@dataclass(slots=True)
class Work:
    """One item, read."""

    item: Json
    injected: BaseException | None = None
    """An error to take as the step's outcome instead of running it."""
    begun: int = 1
    """How often this has begun, this time included."""
    lost: str | None = None
    """What marks the attempt before this one, which did not come back: number, time, and more."""
    watch: Watch | None = None
    """Who is told of it, if somebody watches."""
    error: BaseException | None = None
    """What the user's code has raised, for who watches."""

    run: str = field(init=False)
    op: str = field(init=False)
    lane: str = field(init=False)
    n: int = field(init=False)
    """Number of the plan this works on; -1 before the first."""
    attempt: int = field(init=False)
    since: float = field(init=False)
    """When the first attempt began: seconds since the epoch."""
    key: str = field(init=False)
    """Record key (relative to the run) of what this produces."""

    def __post_init__(self) -> None:
        item = self.item
        self.run, self.op = item["run"], item["op"]
        self.lane, self.attempt = item.get("lane", ""), item.get("attempt", 1)
        self.since = item.get("since") or time.time()
        self.n = -1 if self.op == "begin" else item["n"]
        key = (
            f"{self.lane}{self.n}:{item['task']}"
            if self.op == "step"
            else f"{self.lane}{self.n + 1}"
        )
        self.key = key if self.attempt == 1 else f"{key}~{self.attempt}"

    @property
    def step_name(self) -> str:
        """Name of the user's step, for errors and events."""
        return self.item.get("step") or self.item.get("name", "")

    @property
    def age(self) -> float:
        """Seconds since the first attempt began."""
        return time.time() - self.since

    def again(self, task: str, pause: float) -> "Produced":
        """The step ``task`` failed, and is tried again after ``pause`` seconds."""
        outcome: Json = {"k": "retry", "id": task, "after": pause, "attempt": self.attempt + 1}
        return Produced({**outcome, "since": self.since})


@dataclass(slots=True)
class Produced:
    """What an adapter made of an item: it becomes the record.

    ``body`` and ``outbox`` are the adapter's own plain data; ``chunks`` are encoded stream chunks
    in order; ``before_record`` stores what the record refers to.
    """

    outcome: Json
    body: Json = field(default_factory=dict[str, Any])
    chunks: list[bytes] = field(default_factory=list[bytes])
    outbox: list[Any] = field(default_factory=list[Any])
    messages: list[Json] = field(default_factory=list[Json])
    """What is to be sent to others once the record is durable, as in ``_delivery``."""
    before_record: Callable[[], Coroutine[Any, Any, None]] | None = None
    gave_up: bool = False
    """Whether the framework's own retries of the step are used up."""
    held: Any = None
    """The adapter's own, given back to it once the record is durable."""


@dataclass(slots=True)
class Record:
    """A record as stored: the first to be written under its key counts."""

    key: str
    outcome: Json
    body: Json
    chunks: list[bytes]
    outbox: list[Any]
    planner: str
    """Identity of the process that wrote it, and goes on with it if nothing happens."""
    attempt: int = 1
    """Which attempt at its step made it: lost with their workers and failed ones are counted."""
    times: tuple[float, float] | None = None
    """When that attempt began and when it ended: seconds since the epoch."""

    messages: list[Json] = field(default_factory=list[Json])
    """What was to be sent once it was recorded, as in ``_delivery``."""

    def pack(self) -> Json:
        times = {} if self.times is None else {"t": list(self.times)}
        packed: Json = {
            **times,
            "o": self.outcome,
            "b": self.body,
            "c": self.chunks,
            "x": self.outbox,
            "p": self.planner,
            "n": self.attempt,
        }
        if self.messages:
            packed["m"] = self.messages
        return packed

    @classmethod
    def unpack(cls, key: str, data: Json) -> "Record":
        began, ended = data.get("t") or (None, None)
        times = None if began is None or ended is None else (began, ended)
        head = data["o"], data["b"], data["c"], data["x"], data["p"], data["n"]
        return cls(key, *head, times, data.get("m", []))


def unpack_record(codec: Codec, key: str, data: bytes, stored_under: str) -> Record:
    """The record in ``data``."""
    plain: Any = codec.decode(data, stored_under)
    if not isinstance(plain, dict) or not {"o", "b", "c", "x", "p", "n"} <= plain.keys():
        raise CorruptRecordError(key=stored_under, reason="it is not a record")
    return Record.unpack(key, cast(Json, plain))


class BreaksRun(Exception):
    """``error`` ends the run, whatever is recorded of it: raised by an adapter for what it cannot
    get past."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Adapter(Protocol):
    """A framework, seen by the engine. Methods are coroutines; for a run of mode "sync" they must
    not suspend, and they run in a thread of their own."""

    def activity_names(self) -> Sequence[str]:
        """Names of all activities, without the runner's name in front."""
        ...

    def is_hot(self, work: Work) -> bool:
        """Whether this process holds what the item works on, because it made it just before."""
        ...

    async def perform(self, work: Work, io: IO) -> Produced:
        """Do the item's work."""
        ...

    async def recorded(self, work: Work, record: Record, produced: Produced | None, io: IO) -> None:
        """``record`` is durable. ``produced`` is what it was made of, or None when the record of
        another attempt counts. Raises :class:`BreaksRun` when its run cannot go on from there."""
        ...

    def forget(self, run: str) -> None:
        """Drop what is held in memory for ``run``."""
        ...

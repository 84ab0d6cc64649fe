"""The workflow engine: turns and activities handed to workers, and what their answers lead to.

A turn is pure, so it is handed out at once; whatever the outside can notice (an activity, an
acknowledgement, a status) waits for its commit. Commits happen in order, so that no activity
ever runs on a result that could still be lost.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from dapr_runners.sidecar import _turns
from dapr_runners.sidecar._database import Database
from dapr_runners.sidecar._dispatch import Dispatcher, Stream, Work
from dapr_runners.sidecar._instance import (
    PENDING,
    STALLED,
    Arrival,
    Instance,
    Turn,
    event,
    text,
    timestamp,
)
from dapr_runners.sidecar._ledger import Ledger
from dapr_runners.sidecar._protos import pb
from dapr_runners.sidecar._storage import Transaction
from dapr_runners.sidecar._tasks import Tasks
from dapr_runners.sidecar._timers import Timer, Timers

_log = logging.getLogger("dapr_runners.sidecar")

START_TIMER = -1
"""The timer id under which a start at a given time waits."""

_LARGEST_ACTIVITY = 2 * 1024 * 1024
"""Bytes of an activity's request that daprd's scheduler accepts, whatever the body size is."""

_ENVELOPE = 512
"""Bytes daprd adds to an activity's event when it hands it to the scheduler."""

_RETRY = 1.0
"""Seconds after which daprd tries a turn again whose effects it could not carry out."""

Apply = Callable[["Engine", Instance, Turn, pb.WorkflowResponse, _turns.Effects], Transaction]


@dataclass(frozen=True, slots=True)
class Limits:
    """``body`` is the largest message (bytes; 0: no limit), ``cache`` the history kept (bytes)."""

    body: int = 4 * 1024 * 1024
    cache: int = 256 * 1024 * 1024


class Engine:
    """All workflow instances of one app."""

    def __init__(
        self, database: Database, dispatcher: Dispatcher, app_id: str, limits: Limits
    ) -> None:
        self.app_id = app_id
        self.ledger = Ledger(database, limits.cache)
        self.timers = Timers(self._fire)
        self.tasks = Tasks(dispatcher)
        self._dispatcher = dispatcher
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._boot = uuid.uuid4().hex
        self._turns = 0
        self._ready: dict[str, Instance] = {}
        self._stalled: dict[str, Instance] = {}
        self.connected = asyncio.Event()
        """Set while there is a worker."""
        self.unstarted: dict[str, tuple[str, float]] = {}
        """Instances that wait for a worker to be started: their names, and since when."""
        self._history_nr = self.ledger.rows.highest("history")
        self._inbox_nr = self.ledger.rows.highest("inbox")

    def recover(self) -> None:
        """Take up everything that was under way when the last process ended."""
        rows = self.ledger.rows
        for instance_id, timer_id, timer in rows.timers():
            self.timers.add(instance_id, timer_id, timer)
        for instance_id, start_at in rows.scheduled_starts():
            self.timers.add(instance_id, START_TIMER, Timer(start_at, None))
        for task in rows.tasks():
            self.tasks.run(task)
        for instance_id in rows.with_inbox():
            instance = self.ledger.find(instance_id)
            if instance is not None:
                self.wake(instance)

    # -- workers

    def open(self, keeps_history: bool) -> Stream:
        """A worker connected. It may be the one a stalled workflow waits for."""
        stream = self._dispatcher.open(keeps_history)
        self.connected.set()
        for instance in list(self._stalled.values()):
            if instance.stalled != pb.PAYLOAD_SIZE_EXCEEDED:
                self.unstall(instance)
                self.wake(instance)
        return stream

    def close(self, stream: Stream) -> None:
        """A worker is gone."""
        self._dispatcher.close(stream)
        if not self._dispatcher.workers:
            self.connected.clear()

    async def worker_for(self, instance_id: str, name: str) -> None:
        """Wait for a worker to start an instance of the workflow ``name`` with."""
        if not self.connected.is_set():
            self.unstarted[instance_id] = name, time.time()
            try:
                await self.connected.wait()
            finally:
                self.unstarted.pop(instance_id, None)

    @property
    def workers(self) -> int:
        """How many workers are connected."""
        return self._dispatcher.workers

    # -- arrivals

    def arrive(
        self,
        instance: Instance,
        happened: pb.HistoryEvent,
        transaction: Transaction,
        applied: Callable[[], None] | None = None,
    ) -> None:
        """Put an event into the inbox of an instance that is not over."""
        self._inbox_nr += 1
        arrival = Arrival(happened, self._inbox_nr, applied)
        instance.inbox.append(arrival)
        transaction.arrive(instance.id, arrival)
        transaction.touch(instance, instance.view)
        self.wake(instance)

    def wake(self, instance: Instance) -> None:
        """Give the instance a turn in the next round of the loop, with all that is there then."""
        if instance.turn is not None or not instance.inbox or instance.stalled is not None:
            return
        alone = instance.view.status == PENDING and len(instance.inbox) == 1
        # As on daprd, any other event starts an instance before its time.
        if alone and (instance.view.start_at or 0) > time.time_ns():
            return
        if not self._ready:
            self._loop.call_soon(self._take_turns)
        self._ready[instance.id] = instance

    def _fire(self, instance_id: str, timer_id: int, timer: Timer) -> None:
        instance = self.ledger.find(instance_id)
        if instance is None or instance.terminal:
            return
        if timer_id != START_TIMER:
            fired = pb.TimerFiredEvent(timerId=timer_id, fireAt=timestamp(timer.fire_at))
            instance.inbox.append(Arrival(event(timerFired=fired), None))
        self.wake(instance)

    def finish_task(self, response: pb.ActivityResponse) -> Transaction | None:
        """The effects of an activity's answer; None when it is not the first, or not wanted."""
        task = self.tasks.take(response)
        instance = self.ledger.find(response.instanceId)
        if task is None or instance is None:
            return None
        transaction = Transaction()
        transaction.finish_task(instance.id, response.taskId)
        execution = task.event.taskScheduled.taskExecutionId
        router = pb.TaskRouter(sourceAppID=self.app_id)
        if response.HasField("failureDetails"):
            failed = pb.TaskFailedEvent(
                taskScheduledId=response.taskId,
                failureDetails=response.failureDetails,
                taskExecutionId=execution,
            )
            self.arrive(instance, event(taskFailed=failed, router=router), transaction)
        else:
            completed = pb.TaskCompletedEvent(
                taskScheduledId=response.taskId,
                result=response.result if response.HasField("result") else None,
                taskExecutionId=execution,
            )
            self.arrive(instance, event(taskCompleted=completed, router=router), transaction)
        return transaction

    # -- turns

    def _take_turns(self) -> None:
        ready, self._ready = self._ready, {}
        for instance in ready.values():
            try:
                self._take_turn(instance)
            except Exception:
                # A fault in one workflow's turn must not cost the others theirs.
                _log.exception("workflow %s cannot take its turn", instance.id)

    def _take_turn(self, instance: Instance) -> None:
        past = self.ledger.history(instance)
        size = instance.size + sum(arrival.event.ByteSize() for arrival in instance.inbox)
        if _turns.oversize(size, self._limits.body):
            reason = (
                f"Workflow payload size {size} bytes exceeds {_turns.STALL_PERCENT}% of max gRPC"
                f" body size {self._limits.body} bytes; increase daprd --max-body-size and restart"
                " to resume"
            )
            self.ledger.submit(self.stall(instance, pb.PAYLOAD_SIZE_EXCEEDED, reason))
            return
        self._turns += 1
        arrivals, instance.inbox = instance.inbox, []
        events = [event(workflowStarted=pb.WorkflowStartedEvent())]
        events += [arrival.event for arrival in arrivals]
        turn = Turn(f"{self._boot}-{self._turns}", arrivals, events, len(past))
        instance.turn = turn
        work = Work(
            ("turn", instance.id),
            lambda stream: self._turn_item(instance, turn, stream),
            prefer=instance.id,
            limit=f"workflow/{instance.view.name}",
        )
        self._dispatcher.submit(work)

    def _turn_item(self, instance: Instance, turn: Turn, stream: Stream) -> pb.WorkItem:
        past = self.ledger.history(instance)
        request = pb.WorkflowRequest(
            instanceId=instance.id,
            executionId=text(instance.view.execution_id),
            newEvents=turn.events,
        )
        execution_id, held = stream.cached.get(instance.id, ("", 0))
        if execution_id == instance.view.execution_id:
            request.cachedHistory.eventCount = held
            request.pastEvents.extend(past[held:])
        else:
            request.pastEvents.extend(past)
        return pb.WorkItem(workflowRequest=request, completionToken=turn.token)

    def finish_turn(self, response: pb.WorkflowResponse, apply: Apply) -> Transaction | None:
        """The effects of a worker's answer to a turn; None when it has none."""
        instance = self.ledger.loaded(response.instanceId)
        turn = instance.turn if instance is not None else None
        if instance is None or turn is None or turn.token != response.completionToken:
            return None
        stream = self._dispatcher.finish(("turn", instance.id))
        instance.turn = None
        effects = _turns.effects(self.app_id, instance, turn, response)
        if stream is not None and stream.keeps_history:
            if effects.ended:
                stream.cached.pop(instance.id, None)
            else:
                stream.cached[instance.id] = (instance.view.execution_id, turn.history)
        stall = effects.stall or _turns.oversize_task(effects, self._limits.body)
        if stall is not None:
            instance.inbox[:0] = turn.arrivals
            return self.stall(instance, *stall)
        if any(task.ByteSize() + _ENVELOPE > _LARGEST_ACTIVITY for task in effects.tasks):
            # Once is enough: it comes back every second, for ever.
            level = logging.ERROR if not instance.refused else logging.DEBUG
            _log.log(
                level,
                "workflow %s schedules an activity whose input is over %d bytes, which daprd"
                " cannot take: it stays as it is and is tried again every second",
                instance.id,
                _LARGEST_ACTIVITY,
            )
            instance.inbox[:0] = turn.arrivals
            instance.refused = True
            self._loop.call_later(_RETRY, self.wake, instance)
            return None
        return apply(self, instance, turn, response, effects)

    def next_history_nr(self) -> int:
        """A number for a new row of history."""
        self._history_nr += 1
        return self._history_nr

    # -- ends

    def settle(self, instance: Instance, transaction: Transaction) -> None:
        """Nothing of an instance, or of its past generation, waits, runs or fires any more."""
        self.tasks.forget_all(instance.id)
        self.timers.remove_all(instance.id)
        transaction.drop(instance.id, "tasks", "timers")

    def end(self, instance: Instance, transaction: Transaction) -> None:
        """An instance is over: it takes in nothing any more."""
        self.tasks.leave_all(instance.id)
        self.settle(instance, transaction)
        self._dispatcher.finish(("turn", instance.id))
        self._ready.pop(instance.id, None)
        self.unstall(instance)
        transaction.drop(instance.id, "inbox")
        left = instance.inbox if instance.turn is None else instance.turn.arrivals + instance.inbox
        transaction.after.extend(a.applied for a in left if a.applied is not None)
        instance.turn = None
        instance.inbox = []

    def stall(self, instance: Instance, reason: int, description: str) -> Transaction:
        """Hold an instance until something changes; what it was to take in is kept."""
        transaction = Transaction()
        past = self.ledger.history(instance)
        instance.stalled = reason
        self._stalled[instance.id] = instance
        last = past[-1].executionStalled if past and past[-1].HasField("executionStalled") else None
        if last is None or last.description != description:
            _log.warning("workflow %s is stalled: %s", instance.id, description)
            stalled = pb.ExecutionStalledEvent(
                reason=reason,  # pyright: ignore[reportArgumentType]
                description=description,
            )
            events = [event(executionStalled=stalled)]
            now = time.time_ns()
            transaction.append(instance.id, self.next_history_nr(), now, events)
            self.ledger.extend(instance, events)
            instance.view = replace(instance.view, status=STALLED, updated_at=now)
            transaction.update(instance.view)
        transaction.touch(instance, instance.view)
        return transaction

    def unstall(self, instance: Instance) -> None:
        """Let an instance try again."""
        instance.stalled = None
        self._stalled.pop(instance.id, None)

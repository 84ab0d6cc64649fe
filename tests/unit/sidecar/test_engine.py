"""The engine without gRPC: what is handed out when, and what is done with the answers."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dapr_runners.sidecar import _effects as effects
from dapr_runners.sidecar import _lifecycle as lifecycle
from dapr_runners.sidecar._database import Change, Database
from dapr_runners.sidecar._dispatch import Dispatcher, Stream
from dapr_runners.sidecar._engine import Engine, Limits
from dapr_runners.sidecar._instance import COMPLETED, CONTINUED_AS_NEW, RUNNING, event
from dapr_runners.sidecar._protos import STATEFUL_HISTORY, StringValue, pb
from dapr_runners.sidecar._storage import Transaction


class HeldDatabase(Database):
    """Keeps writes back while ``held``: a disk that takes its time."""

    held = False

    def __init__(self, path: Path, failed: Callable[[Exception], None]) -> None:
        super().__init__(path, failed)
        self._kept: list[tuple[Change, Callable[[Any, Exception | None], None]]] = []

    def submit(
        self,
        change: Change,
        committed: Callable[[Any, Exception | None], None],
        *,
        patient: bool = False,
    ) -> None:
        if self.held:
            self._kept.append((change, committed))
        else:
            super().submit(change, committed, patient=patient)

    async def release(self) -> None:
        self.held = False
        for change, committed in self._kept:
            super().submit(change, committed)
        self._kept = []
        await self.write(lambda _: None)


class Harness:
    """An engine, and the part of a worker played by the test."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.database = HeldDatabase(path, lambda error: pytest.fail(str(error)))
        self.engine = Engine(self.database, Dispatcher(), "app", limits)
        self.engine.recover()

    async def start(self, instance_id: str, value: str | None = None) -> None:
        transaction = Transaction()
        first = lifecycle.start_event(self.engine, instance_id, "workflow", value)
        lifecycle.create(self.engine, first, transaction)
        await self.engine.ledger.commit(transaction)

    async def raise_event(self, instance_id: str, name: str) -> None:
        instance = self.engine.ledger.find(instance_id)
        assert instance is not None
        transaction = Transaction()
        raised = pb.EventRaisedEvent(name=name)
        self.engine.arrive(instance, event(eventRaised=raised), transaction)
        await self.engine.ledger.commit(transaction)

    async def turn(self, stream: Stream) -> pb.WorkItem:
        item = await stream.next()
        assert item.HasField("workflowRequest")
        return item

    def answer(self, item: pb.WorkItem, *actions: pb.WorkflowAction) -> Transaction | None:
        response = pb.WorkflowResponse(
            instanceId=item.workflowRequest.instanceId,
            actions=actions,
            completionToken=item.completionToken,
        )
        return self.engine.finish_turn(response, effects.apply)

    async def finish(self, item: pb.WorkItem, *actions: pb.WorkflowAction) -> None:
        transaction = self.answer(item, *actions)
        assert transaction is not None
        await self.engine.ledger.commit(transaction)

    def result(self, item: pb.WorkItem, value: str) -> Transaction | None:
        request = item.activityRequest
        return self.engine.finish_task(
            pb.ActivityResponse(
                instanceId=request.workflowInstance.instanceId,
                taskId=request.taskId,
                result=StringValue(value=value),
                completionToken=item.completionToken,
            )
        )

    async def close(self) -> None:
        self.engine.timers.stop()
        await self.database.close()


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    harness = Harness(tmp_path / "sidecar.db", Limits())
    yield harness
    await harness.close()


def schedule(task_id: int) -> pb.WorkflowAction:
    task = pb.ScheduleTaskAction(name="activity", taskExecutionId=f"execution-{task_id}")
    return pb.WorkflowAction(id=task_id, scheduleTask=task)


def complete(status: int = COMPLETED, value: str | None = None) -> pb.WorkflowAction:
    done = pb.CompleteWorkflowAction(workflowStatus=status)  # pyright: ignore
    if value is not None:
        done.result.value = value
    return pb.WorkflowAction(id=99, completeWorkflow=done)


def kinds(events: Any) -> list[str]:
    return [happened.WhichOneof("eventType") for happened in events]


async def test_no_activity_runs_before_its_schedule_is_durable(harness: Harness) -> None:
    stream = harness.engine.open(keeps_history=False)
    await harness.start("a")
    item = await harness.turn(stream)
    harness.database.held = True
    transaction = harness.answer(item, schedule(1))
    assert transaction is not None
    harness.engine.ledger.submit(transaction)
    assert list(stream.out) == []
    await harness.database.release()
    assert (await stream.next()).activityRequest.taskId == 1


async def test_a_turn_does_not_wait_for_the_commit_of_what_it_takes_in(harness: Harness) -> None:
    stream = harness.engine.open(keeps_history=False)
    await harness.start("a")
    await harness.finish(await harness.turn(stream), schedule(1))
    activity = await stream.next()
    harness.database.held = True
    transaction = harness.result(activity, "1")
    assert transaction is not None
    harness.engine.ledger.submit(transaction)
    item = await harness.turn(stream)
    assert kinds(item.workflowRequest.newEvents) == ["workflowStarted", "taskCompleted"]
    done = harness.answer(item, complete())
    assert done is not None
    harness.engine.ledger.submit(done)
    # What is not durable is not shown.
    view = harness.engine.ledger.view("a")
    assert view is not None
    assert view.status == RUNNING
    await harness.database.release()
    view = harness.engine.ledger.view("a")
    assert view is not None
    assert view.status == COMPLETED


async def test_the_first_result_counts(harness: Harness) -> None:
    first = harness.engine.open(keeps_history=False)
    await harness.start("a")
    await harness.finish(await harness.turn(first), schedule(1))
    stale = await first.next()
    second = harness.engine.open(keeps_history=False)
    harness.engine.close(first)
    again = await second.next()
    assert again.activityRequest == stale.activityRequest
    assert harness.result(stale, "stale") is not None
    assert harness.result(again, "again") is None
    item = await harness.turn(second)
    assert item.workflowRequest.newEvents[1].taskCompleted.result.value == "stale"


async def test_a_result_for_an_earlier_generation_is_ignored(harness: Harness) -> None:
    stream = harness.engine.open(keeps_history=False)
    await harness.start("a")
    await harness.finish(await harness.turn(stream), schedule(1))
    old = await stream.next()
    await harness.raise_event("a", "go")
    await harness.finish(await harness.turn(stream), complete(CONTINUED_AS_NEW, "2"))
    item = await harness.turn(stream)
    assert item.workflowRequest.newEvents[1].executionStarted.input.value == "2"
    await harness.finish(item, schedule(1))
    new = await stream.next()
    assert harness.result(old, "old") is None
    assert harness.result(new, "new") is not None


async def test_an_answer_to_a_lost_turn_is_ignored_after_the_next_one(harness: Harness) -> None:
    first = harness.engine.open(keeps_history=False)
    await harness.start("a")
    lost = await harness.turn(first)
    harness.engine.close(first)
    second = harness.engine.open(keeps_history=False)
    again = await harness.turn(second)
    assert again.completionToken == lost.completionToken
    await harness.finish(again, schedule(1))
    assert harness.answer(lost, complete()) is None


async def test_what_arrives_together_is_one_turn(harness: Harness) -> None:
    stream = harness.engine.open(keeps_history=False)
    await harness.start("a")
    await harness.finish(await harness.turn(stream), *(schedule(n) for n in range(1, 6)))
    for activity in [await stream.next() for _ in range(5)]:
        transaction = harness.result(activity, "x")
        assert transaction is not None
        harness.engine.ledger.submit(transaction)
    item = await harness.turn(stream)
    assert kinds(item.workflowRequest.newEvents) == ["workflowStarted"] + ["taskCompleted"] * 5


@pytest.mark.skipif(STATEFUL_HISTORY is None, reason="this SDK's workers keep no histories")
async def test_a_worker_that_keeps_histories_gets_what_is_new(harness: Harness) -> None:
    keeper, other = (harness.engine.open(keeps_history=keeps) for keeps in (True, False))
    other.out["busy"] = None  # pyright: ignore
    await harness.start("a")
    await harness.finish(await harness.turn(keeper))
    await harness.raise_event("a", "one")
    item = await harness.turn(keeper)
    request = item.workflowRequest
    assert request.HasField("cachedHistory")
    assert request.cachedHistory.eventCount == 0
    assert kinds(request.pastEvents) == ["workflowStarted", "executionStarted"]
    await harness.finish(item)
    await harness.raise_event("a", "two")
    item = await harness.turn(keeper)
    request = item.workflowRequest
    assert request.cachedHistory.eventCount == 2
    assert kinds(request.pastEvents) == ["workflowStarted", "eventRaised"]
    del other.out["busy"]
    harness.engine.close(keeper)
    request = (await harness.turn(other)).workflowRequest
    assert not request.HasField("cachedHistory")
    assert len(request.pastEvents) == 4


async def test_forgotten_histories_are_read_back(tmp_path: Path) -> None:
    harness = Harness(tmp_path / "small.db", Limits(cache=20_000))
    stream = harness.engine.open(keeps_history=False)
    ids = [f"i{number}" for number in range(50)]
    for instance_id in ids:
        await harness.start(instance_id, "x" * 1_000)
        await harness.finish(await harness.turn(stream))
    loaded = [one for one in ids if harness.engine.ledger.loaded(one) is not None]
    assert 0 < len(loaded) < 25
    for instance_id in ids:
        await harness.raise_event(instance_id, "go")
        item = await harness.turn(stream)
        assert item.workflowRequest.instanceId == instance_id
        assert kinds(item.workflowRequest.pastEvents) == ["workflowStarted", "executionStarted"]
        await harness.finish(item, complete())
    assert [one for one in ids if harness.engine.ledger.loaded(one) is not None] == []
    assert all(
        view is not None and view.status == COMPLETED
        for view in (harness.engine.ledger.view(instance_id) for instance_id in ids)
    )
    await harness.close()


async def test_a_finished_instance_leaves_no_work_behind(harness: Harness) -> None:
    stream = harness.engine.open(keeps_history=False)
    await harness.start("a")
    await harness.finish(await harness.turn(stream), schedule(1), schedule(2))
    old = [await stream.next() for _ in range(2)]
    await harness.raise_event("a", "go")
    await harness.finish(await harness.turn(stream), complete())
    assert list(stream.out) == []
    assert [harness.result(item, "late") for item in old] == [None, None]
    rows = harness.database.reader
    for table in ("inbox", "tasks", "timers"):
        assert rows.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


async def test_an_id_taken_and_freed_before_any_commit(harness: Harness) -> None:
    stream = harness.engine.open(keeps_history=False)
    await harness.start("a")
    item = await harness.turn(stream)
    harness.database.held = True
    done = harness.answer(item, complete())
    assert done is not None
    harness.engine.ledger.submit(done)
    transaction = Transaction()
    first = lifecycle.start_event(harness.engine, "a", "workflow", "second")
    lifecycle.create(harness.engine, first, transaction)
    harness.engine.ledger.submit(transaction)
    await harness.database.release()
    item = await harness.turn(stream)
    assert item.workflowRequest.newEvents[1].executionStarted.input.value == "second"
    await harness.finish(item, complete(value="done"))
    view = harness.engine.ledger.view("a")
    assert view is not None
    assert (view.input, view.output) == ("second", "done")
    count = harness.database.reader.execute("SELECT count(*) FROM history").fetchone()
    assert count == (1,)


async def test_terminate_wins_over_everything_in_its_turn(harness: Harness) -> None:
    stream = harness.engine.open(keeps_history=False)
    for instance_id, action in (("a", complete(CONTINUED_AS_NEW)), ("b", schedule(1))):
        await harness.start(instance_id)
        await harness.finish(await harness.turn(stream))
        instance = harness.engine.ledger.find(instance_id)
        assert instance is not None
        transaction = Transaction()
        terminated = pb.ExecutionTerminatedEvent(input=StringValue(value="bye"))
        harness.engine.arrive(instance, event(executionTerminated=terminated), transaction)
        await harness.engine.ledger.commit(transaction)
        await harness.finish(await harness.turn(stream), action)
        view = harness.engine.ledger.view(instance_id)
        assert view is not None
        assert view.status == pb.ORCHESTRATION_STATUS_TERMINATED
        assert view.output == "bye"
    assert list(stream.out) == []

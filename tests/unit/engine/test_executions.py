"""A workflow goes on from turn to turn, and is replayed when its history went another way."""

import gc
import itertools
import json
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, cast

import grpc
import pytest
from dapr.ext import workflow as sdk
from dapr.ext.workflow._durabletask.internal import helpers
from dapr.ext.workflow._durabletask.internal import protos as pb

from dapr_runners.engine import _executions
from dapr_runners.engine._executions import Executions
from dapr_runners.engine._replies import Replies
from dapr_runners.engine._sdk import Execution

pytestmark = pytest.mark.timeout(60)

HAS_DELTAS = "cachedHistory" in pb.WorkflowRequest.DESCRIPTOR.fields_by_name
needs_deltas = pytest.mark.skipif(not HAS_DELTAS, reason="this SDK sends whole histories only")


class Left:
    """What would be sent."""

    def __init__(self) -> None:
        self.replies: list[Any] = []

    def leave(self, reply: Any) -> None:
        self.replies.append(reply)


class Process:
    """A worker that has two workflows. ``begun``: how often one was begun or replayed."""

    def __init__(self) -> None:
        self.begun = 0
        self.left = Left()
        runtime: Any = sdk.WorkflowRuntime()
        for name in ("ours", "theirs"):
            runtime.register_workflow(self._workflow(name), name=name)
        self.lost = 0
        self.history: list[Any] | None = None
        self.executions = Executions({"ours"}.__contains__, cast(Replies, self.left), self._is_lost)
        self.executions.open(runtime, self._ask)

    def _is_lost(self) -> None:
        self.lost += 1

    def _ask(self, instance: str, **_: Any) -> Any:
        """All of ``history``, or that the sidecar does not give it."""
        assert instance == "x"
        asked: Future[Any] = Future()
        if self.history is None:
            asked.set_exception(grpc.RpcError("not now"))
        else:
            asked.set_result(self.history)
        return asked

    def _workflow(self, name: str) -> Any:
        def workflow(ctx: Any, given: Any) -> Any:
            self.begun += 1
            done: list[Any] = []
            while len(done) < given["steps"]:
                done.append((yield ctx.call_activity("a", input=len(done))))
            if "raises" in given:
                raise LookupError(given["raises"])
            if "odd" in given:
                ctx.continue_as_new(object())
            return done

        workflow.__name__ = name
        return workflow

    def take(self, request: Any) -> Any:
        """The reply to ``request``; None when the SDK is to do it, or nobody."""
        before = len(self.left.replies)
        lost = self.lost
        is_taken = self.executions.take(request, "token") and self.lost == lost
        assert is_taken == (len(self.left.replies) > before)
        return self.left.replies[-1] if is_taken else None


class History:
    """An execution, as a sidecar knows it."""

    def __init__(self, name: str = "ours", execution: str = "1", **given: Any) -> None:
        self._seconds = itertools.count(1)
        self.execution = execution
        self.past: list[Any] = []
        start = helpers.new_execution_started_event(name, "x", json.dumps(given))
        self.inbox: list[Any] = [start]

    def turn(self, *, held: int | None = None) -> Any:
        """A turn with all that has arrived. ``held``: events that the worker has."""
        started = pb.HistoryEvent(eventId=-1, workflowStarted=pb.WorkflowStartedEvent())
        started.timestamp.seconds = next(self._seconds)
        request = pb.WorkflowRequest(instanceId="x", newEvents=[started, *self.inbox])
        request.executionId.value = self.execution
        if held is not None:
            request.cachedHistory.eventCount = held
        request.pastEvents.extend(self.past[held or 0 :])
        return request

    def done(self, request: Any, reply: Any) -> None:
        """``reply`` to ``request`` counts."""
        self.past += request.newEvents
        for action in reply.actions:
            event = pb.HistoryEvent(eventId=action.id)
            event.taskScheduled.name = action.scheduleTask.name
            self.past.append(event)
        self.inbox = []

    def arrives(self, results: Iterable[tuple[int, Any]]) -> None:
        """Results of activities arrive, by their numbers."""
        for number, result in results:
            self.inbox.append(helpers.new_task_completed_event(number, json.dumps(result)))


def kept() -> int:
    """Executions that this process holds on to."""
    gc.collect()
    return sum(isinstance(each, Execution) for each in gc.get_objects())


def started(reply: Any) -> list[int]:
    return [action.id for action in reply.actions]


def output(reply: Any) -> Any:
    (action,) = reply.actions
    return json.loads(action.completeWorkflow.result.value)


def turn(process: Process, history: History, **how: Any) -> Any:
    request = history.turn(**how)
    reply = process.take(request)
    assert reply is not None
    assert (reply.instanceId, reply.completionToken) == ("x", "token")
    history.done(request, reply)
    return reply


def test_it_is_begun_once() -> None:
    process, history = Process(), History(steps=3)
    for number in (1, 2, 3):
        assert started(turn(process, history)) == [number]
        history.arrives([(number, f"r{number}")])
    assert output(turn(process, history)) == ["r1", "r2", "r3"]
    assert process.begun == 1


@needs_deltas
def test_it_goes_on_from_what_is_sent_of_its_history() -> None:
    process, history = Process(), History(steps=6)
    held = None
    for number in range(1, 7):
        before = len(history.past)
        assert started(turn(process, history, held=held)) == [number]
        history.arrives([(number, f"r{number}")])
        held = before
    assert output(turn(process, history, held=held)) == [f"r{number}" for number in range(1, 7)]
    assert process.begun == 1


@needs_deltas
@pytest.mark.parametrize("held", [0, 1, 3])
def test_what_another_has_begun_is_left_to_the_sdk(held: int) -> None:
    process, history = Process(), History(steps=3)
    turn(process, history)
    history.arrives([(1, "r1")])
    second = history.turn()
    history.done(second, process.take(second))
    history.arrives([(2, "r2")])
    other = Process()
    assert other.take(history.turn(held=held)) is None


def test_a_turn_that_was_not_answered_comes_again_with_more() -> None:
    process, history = Process(), History(steps=2)
    turn(process, history)
    history.arrives([(1, "lost")])
    process.take(history.turn())
    history.inbox = []
    history.arrives([(1, "counts")])
    assert started(turn(process, history)) == [2]
    history.arrives([(2, "r2")])
    assert output(turn(process, history)) == ["counts", "r2"]
    assert process.begun == 2


def test_another_worker_took_turns_in_between() -> None:
    here, there, history = Process(), Process(), History(steps=3)
    turn(here, history)
    history.arrives([(1, "ours")])
    here.take(history.turn())
    history.inbox = []
    history.arrives([(1, "theirs")])
    turn(there, history)
    history.arrives([(2, "r2")])
    turn(here, history)
    history.arrives([(3, "r3")])
    assert output(turn(here, history)) == ["theirs", "r2", "r3"]


@pytest.mark.parametrize(("execution", "steps"), [("1", 2), ("2", 1)])
def test_another_execution_of_its_id(execution: str, steps: int) -> None:
    process, other = Process(), Process()
    turn(process, History(steps=1))
    history = History(steps=steps, execution=execution)
    turn(other, history)
    history.arrives([(1, "r1")])
    turn(process, history)
    assert process.begun == 2


def test_suspended_and_resumed_twice_it_goes_on_once() -> None:
    process, history = Process(), History(steps=2)
    turn(process, history)
    for _ in range(2):
        history.inbox.append(helpers.new_suspend_event())
    history.arrives([(1, "r1")])
    assert started(turn(process, history)) == []
    history.inbox.append(helpers.new_resume_event())
    assert started(turn(process, history)) == [2]
    history.inbox.append(helpers.new_resume_event())
    assert started(turn(process, history)) == []
    history.arrives([(2, "r2")])
    replayed = Process()
    assert output(turn(replayed, history)) == ["r1", "r2"]


def test_one_that_has_ended_is_not_kept() -> None:
    process, history = Process(), History(steps=1)
    assert kept() == 0
    turn(process, history)
    assert kept() == 1
    history.arrives([(1, "r1")])
    turn(process, history)
    assert kept() == 0


@pytest.mark.parametrize("is_replayed", [False, True])
def test_it_is_suspended_in_the_turn_in_which_it_goes_on(*, is_replayed: bool) -> None:
    process, history = Process(), History(steps=2)
    turn(process, history)
    history.arrives([(1, "r1")])
    history.inbox.append(helpers.new_suspend_event())
    assert started(turn(process, history)) == [2]
    process = Process() if is_replayed else process
    history.arrives([(2, "r2")])
    assert started(turn(process, history)) == []
    for _ in range(2):  # the second finds it at work
        history.inbox.append(helpers.new_resume_event())
    assert output(turn(process, history)) == ["r1", "r2"]


def test_it_is_resumed_without_being_suspended() -> None:
    process, history = Process(), History(steps=1)
    turn(process, history)
    history.inbox.append(helpers.new_resume_event())
    assert started(turn(process, history)) == []
    history.arrives([(1, "r1")])
    assert output(turn(process, history)) == ["r1"]


def test_that_of_others_is_left_to_the_sdk() -> None:
    process, history = Process(), History("theirs", steps=1)
    assert process.take(history.turn()) is None
    assert process.begun == 0


@pytest.mark.parametrize(
    ("given", "kind"), [({"raises": "gone"}, "LookupError"), ({"odd": True}, "TypeError")]
)
def test_one_that_fails_says_with_what(given: Any, kind: str) -> None:
    process, history = Process(), History(steps=1, **given)
    turn(process, history)
    history.arrives([(1, "r1")])
    (action,) = turn(process, history).actions
    ended = action.completeWorkflow
    assert ended.workflowStatus == pb.ORCHESTRATION_STATUS_FAILED
    assert ended.failureDetails.errorType == kind


def test_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_executions, "_KEPT", 0)
    process, history = Process(), History(steps=2)
    for number in (1, 2):
        turn(process, history)
        history.arrives([(number, f"r{number}")])
    assert output(turn(process, history)) == ["r1", "r2"]
    assert process.begun == 3


def gone_on(process: Process, steps: int) -> History:
    """An execution, two of whose ``steps`` have begun."""
    history = History(steps=steps)
    turn(process, history)
    history.arrives([(1, "r1")])
    turn(process, history)
    history.arrives([(2, "r2")])
    return history


@needs_deltas
def test_what_was_kept_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_executions, "_KEPT", 0)
    process = Process()
    history = gone_on(process, 3)
    process.history = history.past
    assert started(turn(process, history, held=2)) == [3]
    history.arrives([(3, "r3")])
    assert output(turn(process, history, held=6)) == ["r1", "r2", "r3"]


@needs_deltas
def test_a_history_that_went_another_way_is_asked_for() -> None:
    process = Process()
    history = gone_on(process, 3)
    process.take(history.turn())
    process.history = history.past
    assert started(turn(process, history, held=2)) == [3]
    assert process.begun == 2


@needs_deltas
def test_without_its_history_it_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_executions, "_KEPT", 0)
    process = Process()
    history = gone_on(process, 2)
    assert process.take(history.turn(held=2)) is None
    assert process.lost == 1
    assert output(turn(process, history)) == ["r1", "r2"]  # the whole comes with it now

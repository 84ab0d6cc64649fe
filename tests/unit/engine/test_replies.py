"""What activities gave is sent together, in the background, and never lost in silence."""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from dapr.ext import workflow as sdk
from dapr.ext.workflow._durabletask.internal import protos as pb

from dapr_runners.engine._replies import Replies
from dapr_runners.engine._sdk import lift_message_limit, reply_channel

pytestmark = pytest.mark.timeout(120)


class Sidecar:
    """Takes replies. ``refuse``: how the next ones are answered instead; ``gate`` holds all up."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.refuse: list[grpc.StatusCode] = []
        self.gate = threading.Event()
        self.gate.set()
        self.came = threading.Semaphore(0)
        self.lost = threading.Semaphore(0)
        self.peers: set[str] = set()
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._complete,
                request_deserializer=message.FromString,
                response_serializer=pb.CompleteTaskResponse.SerializeToString,
            )
            for name, message in (
                ("CompleteActivityTask", pb.ActivityResponse),
                ("CompleteOrchestratorTask", pb.WorkflowResponse),
            )
        }
        service = grpc.method_handlers_generic_handler("TaskHubSidecarService", handlers)
        self._server = grpc.server(futures.ThreadPoolExecutor(64))
        self._server.add_generic_rpc_handlers((service,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _complete(self, reply: Any, context: grpc.ServicerContext) -> Any:
        self.peers.add(context.peer())
        if self.refuse:
            context.abort(self.refuse.pop(0), "not this one")
        self.taken.append(reply)
        self.came.release()
        assert self.gate.wait(60)
        return pb.CompleteTaskResponse()

    def wait(self, count: int) -> None:
        for _ in range(count):
            assert self.came.acquire(timeout=60)

    def stop(self) -> None:
        self.gate.set()
        self._server.stop(None).wait()


@pytest.fixture
def sidecar() -> Iterator[Sidecar]:
    sidecar = Sidecar()
    yield sidecar
    sidecar.stop()


@pytest.fixture
def replies(sidecar: Sidecar) -> Iterator[Replies]:
    replies = Replies(sidecar.lost.release)
    replies.open(grpc.insecure_channel(sidecar.address))
    yield replies
    sidecar.gate.set()
    replies.close()


def activity(task: int) -> Any:
    return pb.ActivityRequest(
        name="r/step", taskId=task, workflowInstance=pb.WorkflowInstance(instanceId="run")
    )


def test_a_result_and_a_failure(sidecar: Sidecar, replies: Replies) -> None:
    replies.send(activity(1), "token", {"k": "plan"}, None)
    sidecar.wait(1)
    replies.send(activity(2), "token", None, LookupError("gone"))
    sidecar.wait(1)
    result, failure = sidecar.taken
    assert (result.instanceId, result.taskId, result.completionToken) == ("run", 1, "token")
    assert result.result.value == '{"k": "plan"}'
    assert (failure.taskId, failure.failureDetails.errorType) == (2, "LookupError")
    assert failure.failureDetails.errorMessage == "gone"


def test_others_do_not_wait_for_one_that_is_not_answered(
    sidecar: Sidecar, replies: Replies
) -> None:
    sidecar.gate.clear()
    replies.send(activity(0), "token", {}, None)
    sidecar.wait(1)
    for task in (1, 2):
        replies.send(activity(task), "token", {}, None)
    sidecar.wait(2)  # although none of them is answered yet
    assert {reply.taskId for reply in sidecar.taken} == {0, 1, 2}


class Interrupted(threading.Condition):
    """A lock after whose ``number``-th release by a sender ``then`` is called, before that goes
    on."""

    def __init__(self, number: int, then: Callable[[], None]) -> None:
        super().__init__()
        self._number = number
        self._then = then

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        if threading.current_thread().name.startswith("dapr-runners-reply"):
            self._number -= 1
            if self._number == 0:
                self._then()


def test_none_is_left_when_it_comes_as_the_last_sender_finds_no_more(
    sidecar: Sidecar, replies: Replies
) -> None:
    # The sender takes the first, and then looks for more.
    lock = Interrupted(2, lambda: replies.send(activity(2), "token", {}, None))
    vars(replies)["_lock"] = lock
    replies.send(activity(1), "token", {}, None)
    sidecar.wait(2)
    assert [reply.taskId for reply in sidecar.taken] == [1, 2]


def test_a_result_that_is_too_large_fails_its_step(sidecar: Sidecar, replies: Replies) -> None:
    sidecar.refuse.append(grpc.StatusCode.RESOURCE_EXHAUSTED)
    replies.send(activity(1), "token", {}, None)
    sidecar.wait(1)
    (reply,) = sidecar.taken
    assert (reply.instanceId, reply.taskId, reply.completionToken) == ("run", 1, "token")
    assert reply.failureDetails.errorMessage == "the result of a step is too large: not this one"


def test_a_turn_that_is_too_large_fails_its_workflow(sidecar: Sidecar, replies: Replies) -> None:
    sidecar.refuse.append(grpc.StatusCode.RESOURCE_EXHAUSTED)
    replies.leave(pb.WorkflowResponse(instanceId="run", completionToken="token"))
    sidecar.wait(1)
    (reply,) = sidecar.taken
    assert (reply.instanceId, reply.completionToken) == ("run", "token")
    (action,) = reply.actions
    failure = action.completeWorkflow.failureDetails
    assert failure.errorMessage == "what a workflow does next is too large: not this one"


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.ABORTED]
)
def test_one_that_may_be_lost_is_not_sent_again_but_asked_for(
    sidecar: Sidecar, replies: Replies, caplog: pytest.LogCaptureFixture, code: grpc.StatusCode
) -> None:
    sidecar.refuse.append(code)
    with caplog.at_level(logging.WARNING, "dapr_runners"):
        replies.send(activity(1), "token", {}, None)
        assert sidecar.lost.acquire(timeout=60)
        replies.close()
    assert not sidecar.taken
    assert "run run may not have reached the sidecar, and is asked for again: not this one" in (
        caplog.text
    )


def test_one_that_nobody_waits_for_is_dropped(
    sidecar: Sidecar, replies: Replies, caplog: pytest.LogCaptureFixture
) -> None:
    sidecar.refuse.append(grpc.StatusCode.UNKNOWN)
    with caplog.at_level(logging.WARNING, "dapr_runners"):
        replies.send(activity(1), "token", {}, None)
        replies.close()
    assert not sidecar.taken
    assert not caplog.text
    assert not sidecar.lost.acquire(blocking=False)


def test_they_share_the_connection_of_the_stream(sidecar: Sidecar, replies: Replies) -> None:
    host, _, port = sidecar.address.partition(":")
    runtime = sdk.WorkflowRuntime(host=host, port=port)
    lift_message_limit(runtime)
    several = [Replies(sidecar.lost.release) for _ in range(2)]
    for number, each in enumerate(several):
        each.open(reply_channel(runtime))
        each.send(activity(number), "token", {}, None)
        sidecar.wait(1)
    assert len(sidecar.peers) == 1
    for each in several:
        each.close()


@pytest.mark.parametrize(
    ("result", "error", "said"),
    [
        (object(), None, "not JSON serializable"),
        (None, ValueError("\ud800"), "surrogates not allowed"),
    ],
)
def test_what_cannot_be_sent_fails_its_step(
    sidecar: Sidecar, replies: Replies, result: Any, error: Exception | None, said: str
) -> None:
    replies.send(activity(1), "token", result, error)
    sidecar.wait(1)
    assert said in sidecar.taken[0].failureDetails.errorMessage


def test_what_is_ready_goes_out_at_the_end(sidecar: Sidecar, replies: Replies) -> None:
    for task in range(20):
        replies.send(activity(task), "token", {}, None)
    replies.close()
    assert len(sidecar.taken) == 20
    replies.send(activity(20), "token", {}, None)
    assert len(sidecar.taken) == 20

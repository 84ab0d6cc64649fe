"""Results that are recorded, and get lost on their way to the sidecar."""

from typing import Any

import grpc
import pytest
from dapr.ext.workflow._durabletask.internal import protos as pb
from run_helpers import MakeRunner, Node, chain

from dapr_runners.engine import _replies


class LostError(grpc.RpcError):
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.INTERNAL

    def details(self) -> str:
        return "RST_STREAM"


def losing(count: int, lost: type) -> Any:
    """Like ``reply_calls``, of a connection on which the first ``count`` replies of the type
    ``lost`` are lost."""
    real = _replies.reply_calls
    left = [count]

    def reply_calls(channel: grpc.Channel) -> Any:
        calls = real(channel)
        call = calls[lost]

        class Call:
            def __call__(self, reply: Any, **options: Any) -> Any:
                if left[0]:
                    left[0] -= 1
                    raise LostError
                return call(reply, **options)

            def future(self, reply: Any, **options: Any) -> Any:
                return call.future(reply, **options)

        return {**calls, lost: Call()}

    return reply_calls


@pytest.mark.parametrize("of", [pb.ActivityResponse, pb.WorkflowResponse])
@pytest.mark.parametrize("lost", [1, 3])
def test_the_run_goes_on_and_nothing_runs_again(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch, lost: int, of: type
) -> None:
    monkeypatch.setattr(_replies, "reply_calls", losing(lost, of))
    nodes = [Node("first"), Node("second")]
    runner = make_runner(chain(*nodes))
    assert runner.invoke({"x": 1})["log"] == ["first", "second"]
    assert [node.executions for node in nodes] == [1, 1]

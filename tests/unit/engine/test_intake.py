"""A worker's own activities are taken off its stream; the SDK gets all else."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dapr.ext.workflow._durabletask.internal import protos as pb

from dapr_runners.engine import _intake
from dapr_runners.engine._hands import Cut
from dapr_runners.engine._intake import Intake
from dapr_runners.engine._replies import Replies


class Answers:
    def __init__(self) -> None:
        self.sent: list[tuple[int, str, Any, Any]] = []

    def send(self, request: Any, token: str, result: Any, error: Any) -> None:
        self.sent.append((request.taskId, token, result, error))


class Begun:
    def __init__(self) -> None:
        self.all: list[tuple[str, Any, Any]] = []

    def __call__(self, name: str, item: Any, done: Any) -> None:
        if item is None:
            raise LookupError("no item")
        self.all.append((name, item, done))


def activity(name: str, number: int, item: Any) -> Any:
    request = pb.ActivityRequest(name=name, taskId=number)
    request.input.value = json.dumps(item)
    return pb.WorkItem(activityRequest=request, completionToken=f"token {number}")


def stream(intake: Intake, items: list[Any], method: Any = b"/TaskHub/GetWorkItems") -> Any:
    async def open_it() -> Any:
        details = SimpleNamespace(method=method)
        return intake.intercept_unary_stream(lambda *_: iter(items), details, None)

    return asyncio.run(open_it())


def make() -> tuple[Intake, Begun, Answers]:
    begun, answers = Begun(), Answers()
    intake = Intake(
        lambda name: name if name.startswith("ours/") else None,
        begun,
        cast(Replies, answers),
        lambda request, token: request.instanceId.startswith("ours"),
    )
    return intake, begun, answers


def test_only_own_activities_are_taken() -> None:
    intake, begun, answers = make()
    workflow = pb.WorkItem(workflowRequest=pb.WorkflowRequest(instanceId="x"))
    theirs = activity("theirs/a", 1, {})
    rest = list(stream(intake, [activity("ours/a", 2, {"n": 2}), workflow, theirs]))
    assert rest == [workflow, theirs]
    ((name, item, done),) = begun.all
    assert (name, item) == ("ours/a", {"n": 2})
    done({"k": "end"}, None)
    assert answers.sent == [(2, "token 2", {"k": "end"}, None)]


def test_a_turn_is_taken_or_goes_to_the_sdk() -> None:
    intake, _, _ = make()
    ours, theirs = (
        pb.WorkItem(workflowRequest=pb.WorkflowRequest(instanceId=name))
        for name in ("ours 1", "theirs 1")
    )
    assert list(stream(intake, [ours, theirs])) == [theirs]


def test_another_stream_is_left_alone() -> None:
    intake, begun, _ = make()
    items = [activity("ours/a", 2, {})]
    assert list(stream(intake, items, "/TaskHub/StreamInstanceHistory")) == items
    assert not begun.all


def test_so_many_are_begun_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_intake, "AT_ONCE", 2)
    intake, begun, answers = make()
    assert not list(stream(intake, [activity("ours/a", n, {"n": n}) for n in range(5)]))
    assert [item["n"] for _, item, _ in begun.all] == [0, 1]
    for number in range(5):  # each that ends lets the next begin, in order
        begun.all[number][2]({"n": number}, None)
    assert [item["n"] for _, item, _ in begun.all] == [0, 1, 2, 3, 4]
    assert [result["n"] for _, _, result, _ in answers.sent] == [0, 1, 2, 3, 4]


def test_one_that_was_cancelled_is_not_answered_and_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_intake, "AT_ONCE", 1)
    intake, begun, answers = make()
    assert not list(stream(intake, [activity("ours/a", n, {"n": n}) for n in range(2)]))
    begun.all[0][2](None, Cut())
    assert not answers.sent
    assert len(begun.all) == 2


def test_one_that_cannot_begin_fails_and_the_stream_goes_on() -> None:
    intake, begun, answers = make()
    items = [activity("ours/a", 1, None), activity("ours/a", 2, {})]
    items[0].activityRequest.input.value = "null"
    assert not list(stream(intake, items))
    assert [(number, type(error)) for number, _, _, error in answers.sent] == [(1, LookupError)]
    assert len(begun.all) == 1


def test_what_waits_when_the_stream_is_opened_again_is_given_out_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_intake, "AT_ONCE", 1)
    intake, begun, _ = make()
    assert not list(stream(intake, [activity("ours/a", n, {"n": n}) for n in range(2)]))
    assert not list(stream(intake, [activity("ours/a", 1, {"n": 1})]))
    for number in range(2):
        begun.all[number][2]({}, None)
    assert [item["n"] for _, item, _ in begun.all] == [0, 1]

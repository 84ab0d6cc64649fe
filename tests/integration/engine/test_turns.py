"""What a call on a thread is for: the active run, a result nobody has received, or a new turn."""

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.types import interrupt
from run_helpers import Gate, MakeRunner, Node, State, chain, collect

from dapr_runners.engine import RunNotFoundError


async def leave_at(events: Any, kind: str) -> dict[str, Any]:
    """Read the events up to the first one of ``kind``, and go away."""
    async for event in events:
        if event["type"] == kind:
            await events.aclose()
            return event
    raise AssertionError(f"there was no event {kind}")


async def test_a_result_nobody_received_is_delivered_once(
    make_runner: MakeRunner, wait_for_end: Callable[[str], str]
) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    left = await leave_at(runner.run_async({"x": 1}, thread_id="t"), "step_planned")
    gate.open()
    assert wait_for_end(left["workflow_id"]) == "COMPLETED"
    delivered = await collect(runner.run_async({"x": 1}, thread_id="t"))
    assert {event["workflow_id"] for event in delivered} == {left["workflow_id"]}
    assert delivered[-1]["output"] == {"x": 1, "log": ["gate"]}
    assert gate.executions == 1
    new_turn = await collect(runner.run_async({"x": 1}, thread_id="t"))
    assert new_turn[0]["workflow_id"] != left["workflow_id"]
    assert new_turn[-1]["output"] == {"x": 1, "log": ["gate", "gate"]}
    assert gate.executions == 2


async def test_a_failure_nobody_received_is_delivered_once(
    make_runner: MakeRunner, wait_for_end: Callable[[str], str]
) -> None:
    executions: list[State] = []

    def bad(state: State) -> State:
        executions.append(state)
        raise ValueError("bad")

    runner = make_runner(chain(Node("first"), bad))
    left = await leave_at(runner.run_async({"x": 1}, thread_id="t"), "workflow_started")
    wait_for_end(left["workflow_id"])
    for times in (1, 2):
        with pytest.raises(ValueError, match=r"^bad"):
            await runner.ainvoke({"x": 1}, thread_id="t")
        assert len(executions) == times


async def test_a_question_nobody_received_is_delivered_once(
    make_runner: MakeRunner, wait_for_end: Callable[[str], str]
) -> None:
    executions: list[State] = []

    def ask(state: State) -> State:
        executions.append(state)
        return {"log": [interrupt("ok?")]}

    runner = make_runner(chain(ask))
    left = await leave_at(runner.run_async({"x": 1}, thread_id="t"), "workflow_started")
    wait_for_end(left["workflow_id"])
    for times in (1, 2):
        result = await runner.ainvoke({"x": 1}, thread_id="t")
        assert [asked.value for asked in result["__interrupt__"]] == ["ok?"]
        assert len(executions) == times


def test_another_input_is_a_new_turn_of_the_thread(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("node")))
    runner.invoke({"x": 1}, thread_id="t")
    assert runner.invoke({"x": 2}, thread_id="t") == {"x": 2, "log": ["node", "node"]}


async def test_the_turns_of_a_thread_are_numbered(make_runner: MakeRunner) -> None:
    """So that a caller that knows nothing but its thread finds its run again."""
    runner = make_runner(chain(Node("node")))
    thread = "any ||name/of a~thread"
    runs = [await collect(runner.run_async({"x": 1}, thread_id=thread)) for _ in range(2)]
    ids = [run[0]["workflow_id"] for run in runs]
    assert [run_id.rpartition("-")[2] for run_id in ids] == ["1", "2"]
    assert len({run_id.rpartition("-")[0] for run_id in ids}) == 1
    assert {run[0]["thread_id"] for run in runs} == {thread}


def test_threads_of_two_runners_are_two_threads(make_runner: MakeRunner) -> None:
    one, two = make_runner(chain(Node("one"))), make_runner(chain(Node("two")))
    one.invoke({"x": 1}, thread_id="t")
    assert two.invoke({"x": 1}, thread_id="t") == {"x": 1, "log": ["two"]}
    assert one.get_state({"configurable": {"thread_id": "t"}}).values["log"] == ["one"]


def test_a_thread_without_runs(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("node")))
    with pytest.raises(RunNotFoundError):
        runner.cancel(thread_id="never used")

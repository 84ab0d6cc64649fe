"""Runs are purged some time after they have ended, but for what may still be asked for."""

import pytest
from langgraph.types import Command, interrupt
from place import Place
from run_helpers import MakeRunner, Node, State, chain, collect, eventually
from test_purge import rows_about

from dapr_runners.langgraph import DaprWorkflowGraphRunner

pytestmark = pytest.mark.timeout(240)


def status(runner: DaprWorkflowGraphRunner, run: str) -> str | None:
    found = runner.get_workflow_status(run)
    return None if found is None else found["status"]


async def run_of(runner: DaprWorkflowGraphRunner, thread: str) -> str:
    """A run whose result is received."""
    events = await collect(runner.run_async({"x": 1}, thread_id=thread))
    return events[0]["workflow_id"]


async def test_a_run_is_purged(make_runner: MakeRunner, place: Place) -> None:
    runner = make_runner(chain(Node("node"), checkpointer=False), retention=0.3)
    run = await run_of(runner, "thread")
    await eventually(lambda: status(runner, run) is None)
    assert (await run_of(runner, "thread")).endswith("-2")
    await eventually(lambda: not [key for key in rows_about(place, run) if f"/{run}/" in key])


async def test_a_result_that_nobody_has_received_stays(make_runner: MakeRunner) -> None:
    node = Node("node")
    runner = make_runner(chain(node), retention=0.3)
    waiting = runner.run_async({"x": 1}, thread_id="left")
    left = (await anext(waiting))["workflow_id"]
    await waiting.aclose()
    await eventually(lambda: status(runner, left) == "COMPLETED")
    # One that ended later, and was received, is purged: so this one was looked at.
    other = await run_of(runner, "received")
    await eventually(lambda: status(runner, other) is None)
    assert status(runner, left) == "COMPLETED"
    events = await collect(runner.run_async({"x": 1}, thread_id="left"))
    assert events[-1]["output"] == {"x": 1, "log": ["node"]}
    assert node.executions == 2, "once in each run"
    await eventually(lambda: status(runner, left) is None)


async def test_a_question_stays_until_it_is_answered(make_runner: MakeRunner) -> None:
    def ask(state: State) -> State:
        return {"log": [interrupt("go on?") if state["x"] else "done"]}

    runner = make_runner(chain(ask), retention=0.3)
    asked, other = await run_of(runner, "asking"), await run_of(runner, "another")
    # One that ended later, and asks nothing, is purged: so these were looked at.
    events = await collect(runner.run_async({"x": 0}, thread_id="done"))
    await eventually(lambda: status(runner, events[0]["workflow_id"]) is None)
    config = {"configurable": {"thread_id": "asking"}}
    assert (await runner.ainvoke(Command(resume="yes"), config))["log"] == ["yes"]
    await eventually(lambda: status(runner, asked) is None)
    assert status(runner, other) == "COMPLETED"

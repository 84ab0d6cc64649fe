"""Who has been told that a run is over finds it over, though its workflow ends a moment later."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from run_helpers import MakeRunner, Node, State, chain

from dapr_runners.engine._keys import run_id
from dapr_runners.langgraph import DaprWorkflowGraphRunner

pytestmark = pytest.mark.timeout(300)
THREADS = [f"thread-{number}" for number in range(40)]


def bad(state: State) -> State:
    raise ValueError("bad")


def status_after(runner: DaprWorkflowGraphRunner, thread: str) -> str | None:
    """What is told of a run at the moment its caller has its result."""
    config = {"configurable": {"thread_id": thread}}
    with suppress(ValueError):
        runner.invoke({"x": 1}, config)
    run = run_id(runner.name, thread, 1)
    found = runner.get_workflow_status(run)
    return None if found is None else found["status"]


@pytest.mark.parametrize("node", [Node("node"), bad])
def test_its_status(make_runner: MakeRunner, node: object) -> None:
    runner = make_runner(chain(node))
    with ThreadPoolExecutor(len(THREADS)) as callers:
        found = set(callers.map(lambda thread: status_after(runner, thread), THREADS))
    assert found == {"COMPLETED"}

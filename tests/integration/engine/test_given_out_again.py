"""A sidecar that was away gives out again what it has not seen the end of, some of it twice."""

from typing import Any

from langgraph.graph import START, StateGraph
from run_helpers import MakeRunner, Node, State


def give_out_again(runner: Any, first: str, second: str) -> None:
    """Let the step ``first`` come again before ``second``, and after it."""
    execute = runner._journal.execute
    seen: list[Any] = []

    async def execute_more(item: Any, io: Any) -> Any:
        if item["name"] == first:
            seen.append(dict(item))
        if item["name"] != second:
            return await execute(item, io)
        await execute(dict(seen[0]), io)
        outcome = await execute(item, io)
        await execute(dict(seen[0]), io)
        return outcome

    runner._journal.execute = execute_more


def test_a_recorded_step_is_not_done_again(make_runner: MakeRunner) -> None:
    """Neither by the loop that made its plan, nor by one that was thawed for the step beside it."""
    left, right = Node("left"), Node("right")
    builder = StateGraph(State)
    for node in (left, right):
        builder.add_node(node.name, node)
        builder.add_edge(START, node.name)
    runner = make_runner(builder.compile())
    give_out_again(runner, "left", "right")
    one_by_one: Any = {"max_concurrency": 1}
    assert runner.invoke({"log": []}, one_by_one)["log"] == ["left", "right"]
    assert (left.executions, right.executions) == (1, 1)

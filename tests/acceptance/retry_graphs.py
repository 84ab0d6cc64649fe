"""Graphs with a node that fails as often as the test says."""

import operator
from typing import Annotated, Any, TypedDict

from harness.effects import Outside
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def _graph(outside: Outside, is_async: bool, **options: Any) -> Any:
    def run(state: State) -> dict[str, Any]:
        outside.report("flaky start")
        outside.report("flaky in")
        return {"log": ["flaky"]}

    async def run_async(state: State) -> dict[str, Any]:
        return run(state)

    graph = StateGraph(State)
    graph.add_node("flaky", run_async if is_async else run, **options)
    graph.add_edge(START, "flaky")
    return graph


def plain(outside: Outside, is_async: bool) -> Any:
    """The node has no policy of its own."""
    return _graph(outside, is_async).compile()


def with_policy(outside: Outside, is_async: bool) -> Any:
    """LangGraph's policy: two attempts, within one step."""
    policy = RetryPolicy(
        max_attempts=2, initial_interval=0.01, jitter=False, retry_on=lambda error: True
    )
    return _graph(outside, is_async, retry_policy=policy).compile()


def in_subgraph(outside: Outside, is_async: bool) -> Any:
    """The node is a step of a subgraph, beside another."""
    inner = _graph(outside, is_async)

    def calm(state: State) -> dict[str, Any]:
        outside.report("calm start")
        return {"log": ["calm"]}

    inner.add_node("calm", calm)
    inner.add_edge(START, "calm")
    outer = StateGraph(State)
    outer.add_node("sub", inner.compile())
    outer.add_edge(START, "sub")
    return outer.compile()

"""Graphs with a node that hangs for as long as the test holds it."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from harness.effects import Outside
from langgraph.graph import START, StateGraph


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def _graph(outside: Outside, is_async: bool, edges: list[tuple[str, str]], into: Any) -> Any:
    def node(name: str) -> Any:
        def run(state: State) -> dict[str, Any]:
            outside.report(f"{name} start")
            outside.report(f"{name} in")
            outside.report(f"{name} end")
            return {"log": [name]}

        async def run_async(state: State) -> dict[str, Any]:
            outside.report(f"{name} start")
            # Another thread is held: the loop goes on, this node awaits without end.
            await asyncio.to_thread(outside.report, f"{name} in")
            outside.report(f"{name} end")
            return {"log": [name]}

        return run_async if is_async else run

    for _, name in edges:
        if name not in into.nodes:
            into.add_node(name, node(name))
    for start, end in edges:
        into.add_edge(start, end)
    return into


def lone(outside: Outside, is_async: bool) -> Any:
    """``first -> slow``."""
    edges = [(START, "first"), ("first", "slow")]
    return _graph(outside, is_async, edges, StateGraph(State)).compile()


def fan_out(outside: Outside, is_async: bool) -> Any:
    """``first -> (slow, healthy) -> last``."""
    edges = [(START, "first"), ("first", "slow"), ("first", "healthy")]
    graph = _graph(outside, is_async, edges, StateGraph(State))
    graph = _graph(outside, is_async, [("slow", "last"), ("healthy", "last")], graph)
    return graph.compile()


def in_subgraph(outside: Outside, is_async: bool) -> Any:
    """``first -> sub(slow)``."""
    graph = _graph(outside, is_async, [(START, "first")], StateGraph(State))
    inner = _graph(outside, is_async, [(START, "slow")], StateGraph(State))
    graph.add_node("sub", inner.compile())
    graph.add_edge("first", "sub")
    return graph.compile()

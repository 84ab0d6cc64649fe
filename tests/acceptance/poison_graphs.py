"""Graphs with a node that kills its process."""

import operator
import os
import signal
from typing import Annotated, Any, TypedDict

from harness.effects import Outside
from langgraph.graph import START, StateGraph


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def _graph(outside: Outside, is_async: bool, nodes: list[str], edges: list[Any]) -> StateGraph:
    def node(name: str) -> Any:
        def run(state: State) -> dict[str, Any]:
            outside.report(f"{name} start")
            if name == "poison":
                os.kill(os.getpid(), signal.SIGKILL)
            return {"log": [name]}

        async def run_async(state: State) -> dict[str, Any]:
            return run(state)

        return run_async if is_async else run

    graph = StateGraph(State)
    for name in nodes:
        graph.add_node(name, node(name))
    for start, end in edges:
        graph.add_edge(start, end)
    return graph


def lone(outside: Outside, is_async: bool) -> Any:
    """The poison is one step of a chain."""
    edges = [(START, "first"), ("first", "poison"), ("poison", "last")]
    return _graph(outside, is_async, ["first", "poison", "last"], edges).compile()


def first(outside: Outside, is_async: bool) -> Any:
    """The poison is the first step."""
    return _graph(outside, is_async, ["poison"], [(START, "poison")]).compile()


def fan_out(outside: Outside, is_async: bool) -> Any:
    """The poison has siblings."""
    nodes = ["first", "poison", "left", "right"]
    edges = [(START, "first"), *(("first", name) for name in nodes[1:])]
    return _graph(outside, is_async, nodes, edges).compile()


def in_subgraph(outside: Outside, is_async: bool) -> Any:
    """The poison is a step of a subgraph."""
    outer = _graph(outside, is_async, ["first"], [(START, "first")])
    inner = _graph(outside, is_async, ["poison"], [(START, "poison")])
    outer.add_node("sub", inner.compile())
    outer.add_edge("first", "sub")
    return outer.compile()


def _die(outside: Outside) -> Any:
    def reduce(left: list[str], right: list[str]) -> list[str]:
        if right:
            outside.report("poison start")
            os.kill(os.getpid(), signal.SIGKILL)
        return left

    return reduce


def reducer(outside: Outside, is_async: bool) -> Any:
    """The poison is in a reducer, which the commit of a fan-out runs."""

    class Poisoned(TypedDict):
        log: Annotated[list[str], _die(outside)]

    graph = StateGraph(Poisoned)
    for name in ("left", "right"):
        graph.add_node(name, lambda state: {"log": ["x"]})
        graph.add_edge(START, name)
    return graph.compile()


def router(outside: Outside, is_async: bool) -> Any:
    """The poison is in the router of START, which the begin runs."""

    def route(state: State) -> str:
        outside.report("poison start")
        os.kill(os.getpid(), signal.SIGKILL)
        return "only"

    graph = _graph(outside, is_async, ["only"], [])
    graph.add_conditional_edges(START, route, ["only"])
    return graph.compile()

"""A chain of three nodes, and what becomes of it when its program is changed."""

import operator
from typing import Annotated, Any, TypedDict

from harness.effects import Outside
from langgraph.graph import START, StateGraph


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def _chain(outside: Outside, is_async: bool, names: list[str], into: Any = None) -> Any:
    def node(name: str) -> Any:
        def run(state: State) -> dict[str, Any]:
            outside.report(f"{name} start")
            outside.report(f"{name} in")
            outside.report(f"{name} end")
            return {"log": [name]}

        async def run_async(state: State) -> dict[str, Any]:
            return run(state)

        return run_async if is_async else run

    graph = into or StateGraph(State)
    for start, name in zip((START, *names), names, strict=False):
        graph.add_node(name, node(name))
        graph.add_edge(start, name)
    return graph


def chain(outside: Outside, is_async: bool) -> Any:
    """``first -> middle -> last``."""
    return _chain(outside, is_async, ["first", "middle", "last"]).compile()


def without_middle(outside: Outside, is_async: bool) -> Any:
    """The same program, later: the node in the middle is gone."""
    return _chain(outside, is_async, ["first", "last"]).compile()


def nested(outside: Outside, is_async: bool) -> Any:
    """``first -> sub(inner)``."""
    graph = _chain(outside, is_async, ["first"])
    graph.add_node("sub", _chain(outside, is_async, ["inner"]).compile())
    graph.add_edge("first", "sub")
    return graph.compile()


def no_longer_nested(outside: Outside, is_async: bool) -> Any:
    """The same program, later: what was a subgraph is a plain node."""
    return _chain(outside, is_async, ["first", "sub"]).compile()


def fan_out(outside: Outside, is_async: bool) -> Any:
    """``first -> (left, right)``."""
    graph = _chain(outside, is_async, ["first"])
    for name in ("left", "right"):
        _chain(outside, is_async, [name], into=graph)
        graph.edges.discard((START, name))
        graph.add_edge("first", name)
    return graph.compile()


def without_right(outside: Outside, is_async: bool) -> Any:
    """The same program, later: one of the two is gone."""
    return _chain(outside, is_async, ["first", "left"]).compile()


def twenty(outside: Outside, is_async: bool) -> Any:
    """``first -> (n0, ..., n19) -> last``."""
    graph = _chain(outside, is_async, ["first"])
    for name in (f"n{number}" for number in range(20)):
        _chain(outside, is_async, [name], into=graph)
        graph.edges.discard((START, name))
        graph.add_edge("first", name)
    graph.add_node("last", lambda state: {"log": ["last"]})
    graph.add_edge([f"n{number}" for number in range(20)], "last")
    return graph.compile()

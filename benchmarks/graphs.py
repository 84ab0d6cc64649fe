"""The graphs that are timed: a chain of trivial nodes, and a fan-out of them."""

import operator
import time
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict


class Chain(TypedDict, total=False):
    """``n``: steps done; ``steps``: steps to do."""

    n: int
    steps: int


class Fan(TypedDict, total=False):
    """``width``: how many parallel nodes; ``out``: what they gave."""

    width: int
    out: Annotated[list[int], operator.add]


def chain(clock: list[float] | None = None, **compile_with: Any) -> Any:
    """One node after the other, ``steps`` times: a superstep each. ``clock`` gets the time (s) at
    which each begins."""

    def node(state: Chain) -> Chain:
        if clock is not None:
            clock.append(time.perf_counter())
        return {"n": state["n"] + 1}

    builder = StateGraph(Chain)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", _more, ["node", END])
    return builder.compile(**compile_with)


def fan(**compile_with: Any) -> Any:
    """A superstep of ``width`` parallel nodes, after one that plans them."""
    builder = StateGraph(Fan)
    builder.add_node("plan", _plan)
    builder.add_node("work", _work)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", _spread, ["work"])
    return builder.compile(**compile_with)


def three(**compile_with: Any) -> Any:
    """Three trivial nodes in a row."""
    builder = StateGraph(Chain)
    for name in ("one", "two", "three"):
        builder.add_node(name, _count)
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", "three")
    return builder.compile(**compile_with)


def _count(state: Chain) -> Chain:
    return {"n": state["n"] + 1}


def _more(state: Chain) -> str:
    return "node" if state["n"] < state["steps"] else END


def _plan(state: Fan) -> Fan:
    return {"width": state["width"]}


def _spread(state: Fan) -> list[Send]:
    return [Send("work", {"number": number}) for number in range(state["width"])]


def _work(state: dict[str, int]) -> Fan:
    return {"out": [state["number"]]}

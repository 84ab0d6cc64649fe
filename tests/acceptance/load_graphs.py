"""Runs of many short steps, each told of before it works."""

import time
from typing import Any, TypedDict

from harness.effects import Outside
from langgraph.graph import END, START, StateGraph

WORK_SECONDS = 0.15


class State(TypedDict):
    name: str
    done: int
    steps: int


def loop(outside: Outside, is_async: bool) -> Any:
    """One node, ``steps`` times. It reports ``"<name> <number>"``."""

    def work(state: State) -> dict[str, Any]:
        outside.report(f"{state['name']} {state['done']}")
        time.sleep(WORK_SECONDS)
        return {"done": state["done"] + 1}

    graph = StateGraph(State)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", lambda s: "work" if s["done"] < s["steps"] else END)
    return graph.compile()

"""A program whose result is another one in each run."""

import random
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from dapr_runners.langgraph import DaprWorkflowGraphRunner


class State(TypedDict, total=False):
    number: float


def throw(state: State) -> State:
    return {"number": random.random()}


graph = StateGraph(State)
graph.add_node("throw", throw)
graph.add_edge(START, "throw")
graph.add_edge("throw", END)

runner = DaprWorkflowGraphRunner(graph.compile(), name="varies")
with runner:
    runner.invoke({}, {"configurable": {"thread_id": "one"}})

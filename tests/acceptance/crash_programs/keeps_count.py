"""A program whose result depends on what its process has seen: a crash changes it."""

import sys
import time
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from dapr_runners.langgraph import DaprWorkflowGraphRunner


class State(TypedDict, total=False):
    seen: int


seen: list[str] = []


def first(state: State) -> State:
    seen.append("first")
    return {"seen": len(seen)}


def second(state: State) -> State:
    seen.append("second")
    if "slow" in sys.argv:
        time.sleep(0.3)
    return {"seen": len(seen)}


graph = StateGraph(State)
graph.add_node("first", first)
graph.add_node("second", second)
graph.add_edge(START, "first")
graph.add_edge("first", "second")
graph.add_edge("second", END)

runner = DaprWorkflowGraphRunner(graph.compile(), name="counts")
with runner:
    # With "anew" each start of the program is a run of its own.
    thread = {} if "anew" in sys.argv else {"thread_id": "one"}
    runner.invoke({}, {"configurable": thread})
if "fails" in sys.argv and len(seen) < 2:
    sys.exit("what was there before is gone")

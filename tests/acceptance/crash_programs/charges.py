"""A program that charges as an effect. ``charges.py FILE [ask | retry | reconcile] [bad]``: a line
in the file is a charge. With ``bad``, what reconcile is asked it does not know."""

import sys
from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from dapr_runners.effects import NOT_DONE, done, effect
from dapr_runners.langgraph import DaprWorkflowGraphRunner

charges, how = Path(sys.argv[1]), sys.argv[2]


class State(TypedDict, total=False):
    charge: str


def find(key: str, record: object) -> object:
    is_there = charges.exists() and "charge" in charges.read_text() and "bad" not in sys.argv
    return done("charge-1") if is_there else NOT_DONE


options = {"reconcile": {"reconcile": find}, "ask": {}, "retry": {"on_unknown": "retry"}}[how]


@effect(**options)
def charge() -> str:
    with charges.open("a") as file:
        file.write("charge\n")
    return "charge-1"


def pay(state: State) -> State:
    return {"charge": charge()}


graph = StateGraph(State)
graph.add_node("pay", pay)
graph.add_edge(START, "pay")
graph.add_edge("pay", END)

runner = DaprWorkflowGraphRunner(graph.compile(), name="charges")
with runner:
    runner.invoke({}, {"configurable": {"thread_id": "one"}})

"""The graph of the demo: process, validate, finalize, over a list of messages and a counter.

It is plain LangGraph. Each node begins with an outside action, ``tell``: a line to a process that
counts (``tally.py``), so that what ran is known from outside.
"""

import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from tally import tell


class State(TypedDict):
    messages: Annotated[list[str], operator.add]
    counter: int


def process(state: State) -> dict:
    tell("process")
    return {"messages": ["processed"], "counter": state["counter"] + 1}


def validate(state: State) -> dict:
    tell("validate")
    return {"messages": ["validated"], "counter": state["counter"] + 1}


def finalize(state: State) -> dict:
    tell("finalize")
    return {"messages": ["finalized"], "counter": state["counter"] + 1}


builder = StateGraph(State)
builder.add_node(process)
builder.add_node(validate)
builder.add_node(finalize)
builder.add_edge(START, "process")
builder.add_edge("process", "validate")
builder.add_edge("validate", "finalize")
builder.add_edge("finalize", END)

graph = builder.compile()

"""A plain LangGraph graph. Nothing in it knows that it runs durably."""

import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    messages: Annotated[list[str], operator.add]
    counter: int


def process(state: State) -> dict:
    return {"messages": [f"processed {state['messages'][0]}"], "counter": state["counter"] + 1}


def validate(state: State) -> dict:
    return {"messages": ["validated"], "counter": state["counter"] + 1}


def finalize(state: State) -> dict:
    return {"messages": ["done"], "counter": state["counter"] + 1}


builder = StateGraph(State)
builder.add_node(process)
builder.add_node(validate)
builder.add_node(finalize)
builder.add_edge(START, "process")
builder.add_edge("process", "validate")
builder.add_edge("validate", "finalize")
builder.add_edge("finalize", END)

graph = builder.compile()

"""Runners of two programs that take each other for one."""

from collections.abc import Iterator

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from dapr_runners.langgraph import DaprWorkflowGraphRunner


class State(TypedDict):
    number: int


def make(*names: str) -> Iterator[DaprWorkflowGraphRunner]:
    """A runner of each name."""
    builder = StateGraph(State)
    builder.add_node("node", lambda state: state)
    builder.add_edge(START, "node")
    for name in names:
        yield DaprWorkflowGraphRunner(graph=builder.compile(), name=name)

"""Runners that several processes of a test make, each for itself."""

import os
import threading
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from run_helpers import Node, State, chain

from dapr_runners.engine import process_worker
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.state import StateStore, sidecar_address

WORKED = "ENGINE_TEST_WORKED"
"""Environment variable that names the file of those who worked."""


def who(state: State) -> State:
    """Tells which process works."""
    with Path(os.environ[WORKED]).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return {"log": [os.getpid()]}


def hold(state: State) -> State:
    """Tells which process works, and does not end, but for a state with ``x`` 0."""
    told = who(state)
    if state.get("x"):
        threading.Event().wait()
    return told


def ask(state: State) -> State:
    return {"log": [interrupt("go on?")]}


def asking() -> Any:
    builder = StateGraph(State)
    builder.add_node("who", who)
    builder.add_node("ask", ask)
    builder.add_node("beside", Node("beside"))
    builder.add_node("last", Node("last"))
    builder.add_edge(START, "who")
    builder.add_edge("who", "ask")
    builder.add_edge("who", "beside")
    builder.add_edge(["ask", "beside"], "last")
    return builder.compile()


GRAPHS = {
    "who": lambda: chain(who, Node("last")),
    "held": lambda: chain(hold, Node("last")),
    "asking": asking,
}


def make(name: str, port: int | None = None) -> DaprWorkflowGraphRunner:
    """A runner of one of the graphs, named after it."""
    address = sidecar_address() if port is None else f"127.0.0.1:{port}"
    return DaprWorkflowGraphRunner(
        GRAPHS[name](),
        name=name,
        store=StateStore(address=address),
        worker=process_worker(address),
    )


def make_all() -> list[DaprWorkflowGraphRunner]:
    """For worker processes."""
    return [make(name) for name in GRAPHS]

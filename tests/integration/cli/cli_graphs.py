"""Graphs for worker processes of these tests: nodes that tests hold, and that ask, fail and die."""

import operator
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from dapr_runners.langgraph import DaprWorkflowGraphRunner

FOLDER = "CLI_TEST_FOLDER"
"""Environment variable that names the folder of the pipes, and of the files of who worked."""


@dataclass
class Odd:
    """A class that the commands have never heard of."""

    number: int


class State(TypedDict, total=False):
    number: int
    odd: Odd
    log: Annotated[list[Any], operator.add]


def _folder() -> Path:
    return Path(os.environ[FOLDER])


def worked(name: str) -> None:
    """Tell outside that a node begins."""
    with (_folder() / "worked").open("a") as file:
        file.write(f"{name}\n")


def first(state: State) -> State:
    worked("first")
    return {"log": ["first"], "odd": Odd(state.get("number", 0))}


def gate(state: State) -> State:
    """Waits until the test opens the gate."""
    worked("gate")
    get_stream_writer()({"said": "at the gate"})
    with (_folder() / "gate").open() as pipe:
        pipe.read()
    return {"log": ["gate"]}


def last(state: State) -> State:
    worked("last")
    if (_folder() / "broken").exists():
        raise ValueError("the last one is broken")
    return {"log": ["last"]}


def ask(state: State) -> State:
    return {"log": [interrupt({"sure?": state.get("number", 0)})]}


def ask_too(state: State) -> State:
    return {"log": [interrupt("and this?")]}


def chain(*nodes: Any) -> Any:
    """A graph of ``nodes``, one after another."""
    builder = StateGraph(State)
    before = START
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(before, node.__name__)
        before = node.__name__
    return builder.compile()


def asking_twice() -> Any:
    """Two nodes that ask at once."""
    builder = StateGraph(State)
    for node in (ask, ask_too):
        builder.add_node(node.__name__, node)
        builder.add_edge(START, node.__name__)
        builder.add_edge(node.__name__, END)
    return builder.compile()


GRAPHS = {
    "held": lambda: chain(first, gate, last),
    "steps": lambda: chain(first, last),
    "asking": lambda: chain(first, ask, last),
    "asking-twice": asking_twice,
}


def make(name: str, port: int | None = None) -> DaprWorkflowGraphRunner:
    """A runner of one of the graphs, named after it."""
    return DaprWorkflowGraphRunner(GRAPHS[name](), name=name, port=port)


def make_all() -> list[DaprWorkflowGraphRunner]:
    """For worker processes."""
    return [make(name) for name in GRAPHS]

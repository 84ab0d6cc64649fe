"""Graphs for worker processes of these tests: nodes that tests hold, and that ask, fail and die."""

import operator
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from dapr_runners.effects import effect, webhook
from dapr_runners.langgraph import DaprWorkflowGraphRunner

FOLDER = "CLI_TEST_FOLDER"
"""Environment variable that names the folder of the pipes, and of the files of who worked."""
_LAST, _TILL = "the last one is broken", "the till is broken"


@dataclass
class Odd:
    """A class that the commands have never heard of."""

    number: int


class State(TypedDict, total=False):
    number: int
    note: str
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
    if _is_broken():
        raise ValueError(_LAST)
    return {"log": ["last"]}


def ask(state: State) -> State:
    return {"log": [interrupt({"sure?": state.get("number", 0)})]}


def ask_too(state: State) -> State:
    return {"log": [interrupt("and this?")]}


def _is_broken() -> bool:
    """Whether a node is to fail; it waits while it is held."""
    while (_folder() / "held").exists():
        time.sleep(0.01)
    return (_folder() / "broken").exists()


@effect
def charge(cents: int) -> int:
    worked("charged")
    return cents


def pay(state: State) -> State:
    worked("pay")
    paid = charge(7)
    if _is_broken():
        raise ValueError(_TILL)
    return {"log": [paid]}


def beside(state: State) -> State:
    worked("beside")
    return {"log": ["beside"]}


class BreakingSaver(InMemorySaver):
    """A checkpointer that may be out of order."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if _is_broken() and metadata["step"] > 0:
            raise OSError("the disk is full")
        return super().put(config, checkpoint, metadata, new_versions)


def inner() -> Any:
    """A subgraph that may fail."""
    return chain(last)


def _tell(state: State) -> State:
    webhook("http://127.0.0.1:9/hook?token=a-token", {"done": True})
    return {}


def _mend(state: State, error: NodeError) -> State:
    return {"log": [f"mended {error.node}"]}


def mending() -> Any:
    """A node that may fail, and what is done about it, beside another one."""
    builder = StateGraph(State)
    builder.add_node("last", last, error_handler=_mend)
    builder.add_node("beside", beside)
    for node in ("last", "beside"):
        builder.add_edge(START, node)
    return builder.compile()


def telling() -> Any:
    """Tells a service that is not there."""
    builder = StateGraph(State)
    builder.add_node("tell", _tell)
    builder.add_edge(START, "tell")
    return builder.compile()


def paying() -> Any:
    """Three steps at once: one has an effect and may fail, one is a subgraph that may fail."""
    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("pay", pay)
    builder.add_node("beside", beside)
    builder.add_node("inner", inner())
    builder.add_edge(START, "first")
    for node in ("pay", "beside", "inner"):
        builder.add_edge("first", node)
    return builder.compile()


def chain(*nodes: Any, **options: Any) -> Any:
    """A graph of ``nodes``, one after another."""
    builder = StateGraph(State)
    before = START
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(before, node.__name__)
        before = node.__name__
    return builder.compile(**options)


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
    "paying": paying,
    "telling": telling,
    "mending": mending,
    "saved": lambda: chain(first, beside, last, checkpointer=BreakingSaver()),
}


def make(name: str, port: int | None = None) -> DaprWorkflowGraphRunner:
    """A runner of one of the graphs, named after it."""
    return DaprWorkflowGraphRunner(GRAPHS[name](), name=name, port=port)


def make_all() -> list[DaprWorkflowGraphRunner]:
    """For worker processes."""
    return [make(name) for name in GRAPHS]

"""Graphs whose nodes a test can hold, and what tests ask of runs."""

import asyncio
import operator
import threading
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Protocol

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from dapr_runners.langgraph import DaprWorkflowGraphRunner

_PATIENCE = 60.0


class MakeRunner(Protocol):
    """Makes a runner of a graph, under a name of its own unless one is given."""

    def __call__(self, graph: Any, **options: Any) -> DaprWorkflowGraphRunner: ...


class State(TypedDict, total=False):
    x: int
    log: Annotated[list[Any], operator.add]


class Node:
    """A node that counts its executions."""

    def __init__(self, name: str, **update: Any) -> None:
        self.name = name
        self.executions = 0
        self._update = update

    def __call__(self, state: State) -> dict[str, Any]:
        self.executions += 1
        return {"log": [self.name], **self._update}


class Gate(Node):
    """A node that waits for the test; ``entered`` tells that it does."""

    def __init__(self, name: str = "gate", **update: Any) -> None:
        super().__init__(name, **update)
        self.entered = threading.Event()
        self._opened = threading.Event()

    def wait_until_entered(self) -> None:
        assert self.entered.wait(_PATIENCE), f"{self.name} was not executed"

    def open(self) -> None:
        self._opened.set()

    def __call__(self, state: State) -> dict[str, Any]:
        update = super().__call__(state)
        self.entered.set()
        assert self._opened.wait(_PATIENCE), f"{self.name} was not opened"
        return update


def chain(*nodes: Any, **options: Any) -> Any:
    """A graph of ``nodes``, one after another; functions go by their names."""
    builder = StateGraph(State)
    before = START
    for node in nodes:
        name = node.name if isinstance(node, Node) else node.__name__
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder.compile(**options)


async def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(_PATIENCE):
        while not is_so():  # noqa: ASYNC110 - what is so is in another process
            await asyncio.sleep(0.005)


async def collect(events: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """All events of a run."""
    return [event async for event in events]


def without_replayed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events, but for whether they were recorded before the call."""
    return [{key: value for key, value in event.items() if key != "replayed"} for event in events]

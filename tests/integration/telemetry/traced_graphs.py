"""Graphs that processes of a test trace, each for itself."""

import operator
import os
import signal
import threading
from pathlib import Path
from typing import Annotated, Any

from exported import FileExporter, provider_to
from langgraph.graph import START, StateGraph
from opentelemetry import trace
from typing_extensions import TypedDict

from dapr_runners.engine import process_worker
from dapr_runners.langgraph import DaprWorkflowGraphRunner, StepRetry
from dapr_runners.state import StateStore, sidecar_address
from dapr_runners.telemetry import instrument

SPANS, HOLD = "TRACED_SPANS", "TRACED_HOLD"
"""Environment variables: the file that spans are exported to, and the one that holds nodes while it
is there."""


class State(TypedDict, total=False):
    x: int
    log: Annotated[list[str], operator.add]


def own_span(name: str) -> Any:
    """As a user's instrumentation makes them."""
    return trace.get_tracer("the user's").start_as_current_span(name)


def one(state: State) -> State:
    with own_span("in one"):
        return {"log": ["one"]}


def held(state: State) -> State:
    with own_span("in held"):
        pass
    hold = Path(os.environ[HOLD])
    if hold.exists():
        hold.with_suffix(".entered").touch()
        threading.Event().wait()
    return {"log": ["held"]}


async def last(state: State) -> State:
    with own_span("in last"):
        return {"log": ["last"]}


def last_sync(state: State) -> State:
    with own_span("in last"):
        return {"log": ["last"]}


def dying(state: State) -> State:
    """Takes its worker down at once, the first time."""
    with own_span("in dying"):
        pass
    hold = Path(os.environ[HOLD])
    if hold.exists():
        hold.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"log": ["dying"]}


def beside(state: State) -> State:
    with own_span("in beside"):
        return {"log": ["beside"]}


def inner() -> Any:
    builder = StateGraph(State)
    builder.add_node("a", one)
    builder.add_node("b", beside)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    return builder.compile()


def chain(**nodes: Any) -> Any:
    builder = StateGraph(State)
    before = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder.compile()


def fan_out() -> Any:
    builder = StateGraph(State)
    builder.add_node("one", one)
    builder.add_node("beside", beside)
    builder.add_node("last", last_sync)
    for name in ("one", "beside"):
        builder.add_edge(START, name)
        builder.add_edge(name, "last")
    return builder.compile()


def held_graph() -> Any:
    return chain(one=one, held=held, last=last_sync)


def quick() -> Any:
    return chain(one=one, dying=dying)


def make(name: str, graph: Any, **options: Any) -> DaprWorkflowGraphRunner:
    address = sidecar_address()
    return DaprWorkflowGraphRunner(
        graph,
        name=name,
        store=StateStore(address=address),
        worker=process_worker(address),
        **options,
    )


def traced() -> list[DaprWorkflowGraphRunner]:
    """For worker processes."""
    provider = provider_to(FileExporter(Path(os.environ[SPANS])))
    trace.set_tracer_provider(provider)
    instrument()
    return [make("held", held_graph()), make("quick", quick())]


def retry() -> StepRetry:
    return StepRetry(max_attempts=2, first_interval=0.01)

"""Graphs that keep secrets wherever a value can be kept. ``planted`` is in each of them."""

import operator
import os
import time
from pathlib import Path
from typing import Annotated, Any

from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from dapr_runners.effects import effect, webhook
from dapr_runners.langgraph import DaprWorkflowGraphRunner, StepRetry

PLANTED = "planted-9c41e7f2"


def planted(where: str) -> str:
    """A secret that is found again, in text and in base64."""
    return f"<<{PLANTED} {where} {PLANTED}>>"


class State(TypedDict, total=False):
    url: str
    heard: str
    log: Annotated[list[Any], operator.add]


class Refused(Exception):
    """Carries a secret besides its message."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message, detail)
        self.detail = detail


@effect
def charge(card: str) -> str:
    return planted("result of an effect")


@effect
def charge_badly(card: str) -> str:
    raise Refused(planted("error of an effect"), planted("detail"))


def _wait_for(file: str) -> None:
    while not Path(file).exists():
        time.sleep(0.01)


def speak(state: State) -> dict[str, Any]:
    """Says three things, and waits for a file that tells that they were heard, if one is named."""
    write = get_stream_writer()
    for number in range(3):
        write(planted(f"token {number}"))
    if "heard" in state:
        _wait_for(state["heard"])
    return {"log": [planted("large value") * 3000, planted("update")]}


def act(state: State) -> dict[str, Any]:
    webhook(f"{state['url']}?{PLANTED}", {"body": planted("message")})
    return {"log": [charge(planted("argument of an effect"))]}


def ask(state: State) -> dict[str, Any]:
    return {"log": [interrupt(planted("question"))]}


def refuse(state: State) -> dict[str, Any]:
    charge_badly(planted("argument"))
    return {}


def fail(state: State) -> dict[str, Any]:
    raise Refused(planted("message of an error"), planted("attribute of an error"))


def wait(state: State) -> dict[str, Any]:
    """Waits for a file, whose name it is given, and says that it does with another."""
    Path(f"{state['url']}.waits").touch()
    _wait_for(state["url"])
    return {"log": [planted("waited")]}


def graph_of(*nodes: Any) -> Any:
    builder = StateGraph(State)
    before = START
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(before, node.__name__)
        before = node.__name__
    return builder.compile()


@task
def part(number: int) -> str:
    return planted(f"result of a task {number}")


@entrypoint()
def of_tasks(value: str) -> str:
    if len([part(number).result() for number in range(3)]) == 3:
        raise Refused(planted("after the tasks"), value)
    return ""


def plain(state: State) -> dict[str, Any]:
    return {"log": [planted("plain")]}


GRAPHS: dict[str, Any] = {
    "speaking": graph_of(speak, act, ask),
    "plain": graph_of(plain),
    "refusing": graph_of(refuse),
    "failing": graph_of(fail),
    "tasks": of_tasks,
    "waiting": graph_of(speak, wait, ask),
}
RETRY = StepRetry(max_attempts=2, first_interval=0.01, retry_on=[Refused])


def runners() -> list[DaprWorkflowGraphRunner]:
    """The runners of all graphs, on the sidecar and with the keys that the environment names."""
    return [
        DaprWorkflowGraphRunner(
            graph, name=name, port=os.environ["DAPR_GRPC_PORT"], retry=RETRY, artifact_limit=1000
        )
        for name, graph in GRAPHS.items()
    ]

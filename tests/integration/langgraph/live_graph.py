"""A graph whose node says something, and then waits until somebody has heard it."""

import os
import time
from pathlib import Path
from typing import Any

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from dapr_runners.langgraph import DaprWorkflowGraphRunner

WORDS = ("one", "two", "three")


class State(TypedDict, total=False):
    said: list[str]


def make(live_pubsub: str = "") -> list[Any]:
    """The runner, for the caller and for its worker process."""
    builder = StateGraph(State)
    builder.add_node("speak", speak)
    builder.add_edge(START, "speak")
    runner = DaprWorkflowGraphRunner(
        builder.compile(), name="speaker", live_pubsub=live_pubsub or None
    )
    return [runner]


def speak(state: State) -> State:
    write = get_stream_writer()
    for word in WORDS:
        write(word)
        wait_for(heard(word))
    return {"said": list(WORDS)}


def heard(word: str) -> Path:
    """The file that tells that ``word`` was heard."""
    return Path(os.environ["HEARD"]) / word


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody heard {path.name}")
        time.sleep(0.005)


def make_fickle() -> list[Any]:
    """A runner of a node that says something else, and less, when it runs again."""
    builder = StateGraph(State)
    builder.add_node("mutter", mutter)
    builder.add_edge(START, "mutter")
    return [DaprWorkflowGraphRunner(builder.compile(), name="mutterer")]


def mutter(state: State) -> State:
    write = get_stream_writer()
    if heard("again").exists():
        write("one")
        write("then")
        return {"said": ["one", "then"]}
    for word in WORDS:
        write(word)
    wait_for(heard("again"))
    raise AssertionError("it was to be killed")


def listen(live_pubsub: str = "") -> list[Any]:
    """A caller that attaches to the run of another process, and tells what it has heard."""
    [runner] = make(live_pubsub)
    runner.connect()
    call: Any = {"input": {"said": []}, "config": {"configurable": {"thread_id": "t"}}}
    for word in runner.stream(**call, stream_mode="custom"):
        heard(word).touch()
    return [runner]

"""The program that is killed: a graph with a fan-out, an interrupt and a subgraph, on a runner."""

import asyncio
import json
import operator
import sqlite3
from typing import Annotated, Any, TypedDict

from harness.effects import Outside
from harness.hooks import Points, StoreWithPoints, turn, with_points
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from dapr_runners.engine import Worker, run_in_thread
from dapr_runners.engine._keys import run_id
from dapr_runners.langgraph import DaprSaver, DaprWorkflowGraphRunner

NODES = ("read", "plan", "left", "right", "review", "draft", "check", "grade")


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    text: str
    answer: str


def build(outside: Outside, is_async: bool, checkpointer: Any) -> Any:
    """``read -> plan -> (left, right) -> review -> sub(draft -> (check, grade))``; review asks
    first."""

    def effect(name: str) -> None:
        for phase in ("start", "in", "end"):
            outside.report(f"{turn.get()} {name} {phase}")

    def node(name: str, writes: dict[str, Any]) -> Any:
        def run(state: State) -> dict[str, Any]:
            effect(name)
            return {"log": [name], **writes}

        async def run_async(state: State) -> dict[str, Any]:
            return run(state)

        return run_async if is_async else run

    def review(state: State) -> dict[str, Any]:
        effect("review")
        return {"log": ["review"], "answer": interrupt("Good?")}

    async def review_async(state: State) -> dict[str, Any]:
        return review(state)

    inner = StateGraph(State)
    for name in ("draft", "check", "grade"):
        inner.add_node(name, node(name, {"text": name * 600} if name == "draft" else {}))
    inner.add_edge(START, "draft")
    for name in ("check", "grade"):
        inner.add_edge("draft", name)
    outer = StateGraph(State)
    outer.add_node("read", node("read", {}))
    # Over 1 KB and unchanged for some steps, so that it becomes an artifact.
    outer.add_node("plan", node("plan", {"text": "x" * 3000}))
    outer.add_node("left", node("left", {}))
    outer.add_node("right", node("right", {}))
    outer.add_node("review", review_async if is_async else review)
    outer.add_node("sub", inner.compile())
    outer.add_edge(START, "read")
    outer.add_edge("read", "plan")
    for name in ("left", "right"):
        outer.add_edge("plan", name)
        outer.add_edge(name, "review")
    outer.add_edge("review", "sub")
    outer.add_edge("sub", END)
    return outer.compile(checkpointer=checkpointer)


class Program:
    """A worker that is also the caller; ``mode`` is ``sync``, ``async`` or ``fast``."""

    def __init__(self, settings: dict[str, Any]) -> None:
        address = settings["address"]
        self._is_async = settings["mode"] == "async"
        self._outside = Outside(settings["effects"], settings["case"])
        points = Points(self._outside)
        points.tells_of = self._is_of_case
        store = StoreWithPoints(address=address)
        store.points = points
        if settings["mode"] == "sync":
            database = sqlite3.connect(settings["saver"], check_same_thread=False)
            self._saver: Any = with_points(SqliteSaver, points)(database)
        else:
            from dapr_runners.state import StateStore

            self._saver = with_points(DaprSaver, points)(StateStore(address=address))
        self._runner = DaprWorkflowGraphRunner(
            build(self._outside, self._is_async, self._saver),
            name="matrix",
            store=store,
            worker=Worker(address),
            steps_per_activity=10 if settings["mode"] == "fast" else 1,
        )
        points.wrap(self._runner)
        self._runner.start()

    def _is_of_case(self, run: str) -> bool:
        return run in [run_id("matrix", self._outside.case, turn) for turn in (1, 2)]

    def begin(self, case: str) -> None:
        """What comes belongs to ``case``."""
        self._outside.case = case

    def call(self, thread: str, number: int) -> Any:
        """The call of turn ``number`` on ``thread``."""
        input = {"log": ["input"]} if number == 1 else Command(resume="yes")
        config: Any = {"configurable": {"thread_id": thread}}
        turn.set(number)  # a node runs in the context of its caller, where that is this process
        if self._is_async:
            result = asyncio.run(self._runner.ainvoke(input, config))
        else:
            result = self._runner.invoke(input, config)
        return {
            key: [one.value for one in value] if key == "__interrupt__" else value
            for key, value in result.items()
        }

    def status(self, run: str) -> str | None:
        """The workflow's status."""
        found = self._runner.get_workflow_status(run)
        return None if found is None else found["status"]

    def has_result(self, thread: str) -> bool:
        """Whether a caller has the result of the thread's newest run: it may have died with it."""
        io = self._runner._blocking()
        pointer = run_in_thread(self._runner._turns.pointer(io, thread))
        return pointer is not None and pointer.delivered

    def history(self, thread: str) -> list[Any]:
        """What the saver holds of ``thread``, without the ids, times and hashes in it."""
        found = list(self._saver.list({"configurable": {"thread_id": thread}}))
        return normalised(found)


def normalised(found: list[Any]) -> list[Any]:
    """Checkpoints in a form that two runs of one graph have in common, oldest first."""
    found.sort(key=lambda one: one.checkpoint["id"])
    order = [one.checkpoint["id"] for one in found]
    spaces = list(dict.fromkeys(one.config["configurable"]["checkpoint_ns"] for one in found))
    return [
        {
            "space": spaces.index(one.config["configurable"]["checkpoint_ns"]),
            "parent": _parent(one, order),
            "source": one.metadata["source"],
            "step": one.metadata["step"],
            "values": _plain(one.checkpoint["channel_values"]),
            "channels": sorted(one.checkpoint["channel_versions"]),
            "writes": sorted(
                json.dumps([channel, _plain(value)]) for _, channel, value in one.pending_writes
            ),
        }
        for one in found
    ]


def _parent(one: Any, order: list[str]) -> int | None:
    if one.parent_config is None:
        return None
    return order.index(one.parent_config["configurable"]["checkpoint_id"])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "interrupts"):
        return [each.value for each in value.interrupts]
    return value.value if hasattr(value, "value") else value

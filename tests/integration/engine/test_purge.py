"""Purging a run leaves nothing of it."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from langgraph.config import get_stream_writer
from langgraph.func import task
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from place import Place
from run_helpers import Gate, MakeRunner, Node, State, chain, collect, eventually

from dapr_runners.engine import RunCancelledError, RunNotEndedError, RunNotFoundError
from dapr_runners.langgraph import StepRetry

LARGE = "large " * 30_000


def rows_about(place: Place, *texts: str) -> list[str]:
    """Keys of the state whose key or value contains one of ``texts``."""
    wanted = [text.encode() for text in texts]
    return [
        key
        for key, value in place.stored().items()
        if any(text in key.encode() or text in value for text in wanted)
    ]


@task
def recorded_call(x: int) -> int:
    return x + 1


def large(state: State) -> State:
    get_stream_writer()("live")
    return {"log": [LARGE, recorded_call(1).result()]}


def small(state: State) -> State:
    return {"log": ["small"]}


def ask(state: State) -> State:
    return {"log": [interrupt("?")]}


def bad(state: State) -> State:
    raise ValueError("bad")


def with_subgraph() -> Any:
    builder = StateGraph(State)
    builder.add_node("inner", chain(small, large))
    builder.add_node("beside", small)
    builder.add_edge(START, "inner")
    builder.add_edge(START, "beside")
    return builder.compile()


def with_sends() -> Any:
    builder = StateGraph(State)
    builder.add_node("large", large)
    builder.add_conditional_edges(START, lambda _: [Send("large", {}) for _ in range(3)])
    return builder.compile()


GRAPHS = {
    "chain": lambda: chain(small, large),
    "parallel": with_sends,
    "subgraph": with_subgraph,
    "interrupted": lambda: chain(large, ask),
    "failed": lambda: chain(large, bad),
}


@pytest.mark.parametrize("name", GRAPHS)
async def test_all_its_state_is_gone(make_runner: MakeRunner, place: Place, name: str) -> None:
    runner = make_runner(
        GRAPHS[name](), retry=StepRetry(max_attempts=2, first_interval=0, retry_on=[ValueError])
    )
    run_id, secret = f"purged-{name}", f"a secret of {name}"
    events = await collect(
        runner.run_async({"log": [secret]}, stream_mode=["custom"], subgraphs=True, run_id=run_id)
    )
    assert {event["type"] for event in events} >= {"custom"}
    assert rows_about(place, run_id, secret)
    runner.purge(run_id)
    assert rows_about(place, run_id, secret) == []


class Cut(Exception):
    """Stands for a kill in the middle of a purge."""


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.9, 1.0])
async def test_a_purge_that_was_cut_can_be_done_again(
    make_runner: MakeRunner,
    place: Place,
    name: str,
    part: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = make_runner(
        GRAPHS[name](), retry=StepRetry(max_attempts=2, first_interval=0, retry_on=[ValueError])
    )
    run_id = f"cut-{name}-{part * 10:.0f}"
    await collect(
        runner.run_async({"log": []}, stream_mode=["custom"], subgraphs=True, run_id=run_id)
    )
    delete_many = runner.store.delete_many

    def cut(keys: Iterable[str]) -> None:
        keys = list(keys)
        delete_many(keys[: int(len(keys) * part)])
        if len(keys) > 1:
            raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(runner.store, "delete_many", cut)
        with pytest.raises(Cut):
            runner.purge(run_id)
    assert runner.get_workflow_status(run_id) is not None, "it is still listed"
    runner.purge(run_id)
    assert rows_about(place, run_id) == []
    assert runner.get_workflow_status(run_id) is None


async def test_a_cancelled_run_can_be_purged(make_runner: MakeRunner, place: Place) -> None:
    """What was running then records nothing more."""
    gate = Gate()
    runner = make_runner(chain(small, gate))
    waiting = asyncio.create_task(collect(runner.run_async({"x": 1}, run_id="purged-7")))
    await asyncio.to_thread(gate.wait_until_entered)
    runner.cancel("purged-7")
    with pytest.raises(RunCancelledError):
        await waiting
    runner.purge("purged-7")
    gate.open()
    await eventually(lambda: not rows_about(place, "purged-7"))
    runner.shutdown()
    assert rows_about(place, "purged-7") == []


async def test_an_active_run_is_not_purged(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    active = asyncio.create_task(collect(runner.run_async({"x": 1}, run_id="active")))
    await asyncio.to_thread(gate.wait_until_entered)
    with pytest.raises(RunNotEndedError) as refused:
        runner.purge("active")
    assert str(refused.value) == (
        "The run 'active' is still active, so nothing of it was deleted. Wait for its end, or "
        "cancel it first."
    )
    gate.open()
    assert (await active)[-1]["output"] == {"x": 1, "log": ["gate"]}


def test_the_thread_goes_on(make_runner: MakeRunner) -> None:
    """With its checkpoints, which are the saver's, and with ids that were never used."""
    node = Node("node")
    runner = make_runner(chain(node))
    runner.invoke({"x": 1}, thread_id="t")
    runner.purge(thread_id="t")
    assert runner.invoke({"x": 1}, thread_id="t") == {"x": 1, "log": ["node", "node"]}
    assert node.executions == 2


async def test_a_result_nobody_received_is_gone_too(
    make_runner: MakeRunner, wait_for_end: Callable[[str], str]
) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    events = runner.run_async({"x": 1}, thread_id="t")
    first = await anext(events)
    await events.aclose()
    wait_for_end(first["workflow_id"])
    runner.purge(thread_id="t")
    again = await collect(runner.run_async({"x": 1}, thread_id="t"))
    assert again[0]["workflow_id"] != first["workflow_id"]
    assert node.executions == 2


async def test_its_id_names_nothing_then(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("node")))
    await collect(runner.run_async({"x": 1}, run_id="once"))
    runner.purge("once")
    assert runner.get_workflow_status("once") is None
    with pytest.raises(RunNotFoundError):
        runner.purge("once")
    again = await collect(runner.run_async({"x": 2}, run_id="once"))
    assert again[-1]["output"] == {"x": 2, "log": ["node"]}

"""Calls on a thread with an active run and the same input are calls for that run."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from run_helpers import Gate, MakeRunner, Node, State, chain, collect, eventually, without_replayed
from typing_extensions import TypedDict

from dapr_runners.engine import RunActiveError
from dapr_runners.langgraph import StreamModeNotRecordedError


class Output(TypedDict):
    x: int


async def first_events(events: Any, kind: str) -> list[dict[str, Any]]:
    """The events up to the first one of ``kind``."""
    seen: list[dict[str, Any]] = []
    async for event in events:
        seen.append(event)
        if event["type"] == kind:
            break
    return seen


async def test_two_callers_see_one_run_and_all_its_events(make_runner: MakeRunner) -> None:
    first, gate, last = Node("first"), Gate(), Node("last")
    runner = make_runner(chain(first, gate, last))
    one = asyncio.create_task(collect(runner.run_async({"x": 1}, thread_id="t")))
    await asyncio.to_thread(gate.wait_until_entered)
    two = runner.run_async({"x": 1}, thread_id="t")
    seen_by_two = await first_events(two, "step_planned")
    gate.open()
    seen_by_two += [event async for event in two]
    seen_by_one = await one
    assert without_replayed(seen_by_two) == without_replayed(seen_by_one)
    assert [node.executions for node in (first, gate, last)] == [1, 1, 1]
    assert seen_by_one[-1]["output"] == {"x": 1, "log": ["first", "gate", "last"]}


async def test_events_are_told_apart_by_when_they_were_recorded(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(Node("first"), gate))
    one = asyncio.create_task(collect(runner.run_async({"x": 1}, thread_id="t")))
    await asyncio.to_thread(gate.wait_until_entered)
    two = runner.run_async({"x": 1}, thread_id="t")
    before = await first_events(two, "step_completed")
    gate.open()
    after = [event async for event in two]
    assert {event["replayed"] for event in before} == {True}
    assert after[-1]["replayed"] is False
    assert {event["replayed"] for event in await one} == {False}


async def test_a_caller_that_comes_back_gets_the_same_ids(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(Node("first"), gate, Node("last")))
    left_early = runner.run_async({"x": 1}, thread_id="t")
    seen = await first_events(left_early, "step_completed")
    await left_early.aclose()
    gate.open()
    again = await collect(runner.run_async({"x": 1}, thread_id="t"))
    assert [event["id"] for event in again[: len(seen)]] == [event["id"] for event in seen]
    assert len({event["id"] for event in again}) == len(again)


def test_two_blocking_callers_get_one_result(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    config = {"configurable": {"thread_id": "t"}}
    with ThreadPoolExecutor(1) as pool:
        one = pool.submit(runner.invoke, {"x": 1}, config)
        gate.wait_until_entered()
        two = runner.stream({"x": 1}, config, stream_mode="values")
        next(two)
        gate.open()
        assert one.result() == {"x": 1, "log": ["gate"]}
        assert list(two)[-1] == {"x": 1, "log": ["gate"]}
    assert gate.executions == 1


async def test_an_async_caller_attaches_to_a_blocking_one(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    one = asyncio.create_task(asyncio.to_thread(runner.invoke, {"x": 1}, thread_id="t"))
    await asyncio.to_thread(gate.wait_until_entered)
    config = {"configurable": {"thread_id": "t"}}
    two = runner.astream({"x": 1}, config, stream_mode="values")
    await anext(two)
    gate.open()
    last = [values async for values in two][-1]
    assert await one == last == {"x": 1, "log": ["gate"]}
    assert gate.executions == 1


def test_the_same_input_on_another_thread_is_another_run(make_runner: MakeRunner) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    runner.invoke({"x": 1}, thread_id="one")
    runner.invoke({"x": 1}, thread_id="two")
    assert node.executions == 2


def test_calls_without_a_thread_are_runs_of_their_own(make_runner: MakeRunner) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    assert runner.invoke({"x": 1}) == runner.invoke({"x": 1}) == {"x": 1, "log": ["node"]}
    assert node.executions == 2


async def test_modes_that_were_recorded_are_shown(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    config = {"configurable": {"thread_id": "t"}}
    one = asyncio.create_task(collect(runner.run_async({"x": 1}, config=config)))
    await asyncio.to_thread(gate.wait_until_entered)
    two = runner.astream({"x": 1}, config, stream_mode="updates")
    gate.open()
    assert [chunk async for chunk in two] == [{"gate": {"log": ["gate"]}}]
    await one


async def test_a_mode_that_was_not_recorded_is_refused(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    config = {"configurable": {"thread_id": "t"}}
    one = asyncio.create_task(collect(runner.run_async({"x": 1}, config=config)))
    await asyncio.to_thread(gate.wait_until_entered)
    with pytest.raises(StreamModeNotRecordedError) as refused:
        await anext(runner.astream({"x": 1}, config, stream_mode="messages"))
    gate.open()
    run_id = (await one)[0]["workflow_id"]
    assert str(refused.value) == (
        f"The run {run_id!r} was started with stream_mode=['updates', 'values'], so what "
        "stream_mode=['messages'] would show was not recorded. Call with the arguments it was "
        "started with to attach to it (run_async needs the modes 'updates' and 'values' beside "
        "those it shows)."
    )


async def test_events_are_of_the_modes_that_were_asked_for(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("node")))
    events = await collect(runner.run_async({"x": 1}, thread_id="t", stream_mode="updates"))
    kinds = ["workflow_started", "step_planned", "updates", "step_completed", "workflow_completed"]
    assert [event["type"] for event in events] == kinds
    assert events[-1]["output"] == {"x": 1, "log": ["node"]}


async def test_calls_that_tracers_tell_apart_are_one(make_runner: MakeRunner) -> None:
    """``astream_events`` gives each call a run id of its own. The callbacks it works with are those
    of the call that started the run, so the other one sees no events."""
    gate = Gate()
    runner = make_runner(chain(gate))
    config = {"configurable": {"thread_id": "t"}}
    calls = [
        asyncio.create_task(collect(runner.astream_events({"x": 1}, config, version="v2")))
        for _ in "ab"
    ]
    await asyncio.to_thread(gate.wait_until_entered)
    run = runner._resolve(None, "t")
    await eventually(lambda: len(runner._bus._listeners.get(run, ())) == 2)
    gate.open()
    events = [event for call in calls for event in await call]
    ends = [event["data"]["output"] for event in events if event["event"] == "on_chain_end"]
    assert ends[-1] == {"x": 1, "log": ["gate"]}
    assert gate.executions == 1


async def test_a_result_has_the_keys_of_the_output_schema(make_runner: MakeRunner) -> None:
    """Whichever method started the run: its events show the whole state, invoke does not."""
    gate = Gate()
    builder = StateGraph(State, output_schema=Output)
    builder.add_node("gate", gate)
    builder.add_edge(START, "gate")
    runner = make_runner(builder.compile())
    one = asyncio.create_task(collect(runner.run_async({"x": 1}, thread_id="t")))
    await asyncio.to_thread(gate.wait_until_entered)
    two = asyncio.create_task(runner.ainvoke({"x": 1}, thread_id="t"))
    gate.open()
    assert (await one)[-1]["output"] == {"x": 1, "log": ["gate"]}
    assert await two == {"x": 1}


def test_a_call_that_stops_elsewhere_is_another_call(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate, Node("last")))
    with ThreadPoolExecutor(1) as pool:
        one = pool.submit(runner.invoke, {"x": 1}, thread_id="t")
        gate.wait_until_entered()
        with pytest.raises(RunActiveError):
            runner.invoke({"x": 1}, thread_id="t", interrupt_before=["last"])
        gate.open()
        assert one.result() == {"x": 1, "log": ["gate", "last"]}

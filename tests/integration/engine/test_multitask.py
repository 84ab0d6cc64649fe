"""A call with another input while its thread has an active run."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from run_helpers import Gate, MakeRunner, Node, State, chain, collect

from dapr_runners.engine import RunActiveError, RunCancelledError


async def test_it_is_refused_by_default(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    active = asyncio.create_task(collect(runner.run_async({"x": 1}, thread_id="t")))
    await asyncio.to_thread(gate.wait_until_entered)
    with pytest.raises(RunActiveError) as refused:
        await collect(runner.run_async({"x": 2}, thread_id="t"))
    gate.open()
    events = await active
    assert events[-1]["output"] == {"x": 1, "log": ["gate"]}
    run_id = events[0]["workflow_id"]
    assert str(refused.value) == (
        f"The thread 't' of {runner.name!r} already has an active run ({run_id}) with a different "
        "input, so this one was refused and nothing was started. Wait for the run, cancel it, or "
        'pass multitask_strategy="enqueue" or "interrupt".'
    )
    assert (refused.value.thread, refused.value.run_id) == ("t", run_id)
    assert gate.executions == 1


async def test_it_waits_for_its_turn(make_runner: MakeRunner) -> None:
    gate, last = Gate(), Node("last")
    runner = make_runner(chain(gate, last))
    active = asyncio.create_task(collect(runner.run_async({"x": 1}, thread_id="t")))
    await asyncio.to_thread(gate.wait_until_entered)
    waiting = asyncio.create_task(
        collect(runner.run_async({"x": 2}, thread_id="t", multitask_strategy="enqueue"))
    )
    gate.open()
    assert (await active)[-1]["output"] == {"x": 1, "log": ["gate", "last"]}
    after = (await waiting)[-1]["output"]
    assert after == {"x": 2, "log": ["gate", "last", "gate", "last"]}


async def test_many_that_wait_have_a_turn_each(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate), multitask_strategy="enqueue")
    active = asyncio.create_task(collect(runner.run_async({"x": 0}, thread_id="t")))
    await asyncio.to_thread(gate.wait_until_entered)
    waiting = [
        asyncio.create_task(collect(runner.run_async({"x": x}, thread_id="t"))) for x in (1, 2, 3)
    ]
    gate.open()
    outputs = [(await run)[-1]["output"] for run in (active, *waiting)]
    assert [output["x"] for output in outputs] == [0, 1, 2, 3]
    assert sorted(len(output["log"]) for output in outputs) == [1, 2, 3, 4]


async def test_it_takes_the_place_of_the_active_run(make_runner: MakeRunner) -> None:
    gate, last = Gate(), Node("last")
    runner = make_runner(chain(gate, last))
    active = asyncio.create_task(collect(runner.run_async({"x": 1}, thread_id="t")))
    await asyncio.to_thread(gate.wait_until_entered)
    first_entry = gate.entered
    first_entry.clear()
    other = asyncio.create_task(
        collect(runner.run_async({"x": 2}, thread_id="t", multitask_strategy="interrupt"))
    )
    await asyncio.to_thread(gate.wait_until_entered)
    gate.open()
    assert (await other)[-1]["output"] == {"x": 2, "log": ["gate", "last"]}
    with pytest.raises(RunCancelledError):
        await active
    state = await runner.aget_state({"configurable": {"thread_id": "t"}})
    assert state.values == {"x": 2, "log": ["gate", "last"]}
    assert last.executions == 1


def test_blocking_calls_are_queued_too(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate), multitask_strategy="enqueue")
    with ThreadPoolExecutor(2) as pool:
        active = pool.submit(runner.invoke, {"x": 1}, thread_id="t")
        gate.wait_until_entered()
        waiting = pool.submit(runner.invoke, {"x": 2}, thread_id="t")
        gate.open()
        assert active.result() == {"x": 1, "log": ["gate"]}
        assert waiting.result() == {"x": 2, "log": ["gate", "gate"]}


class GateOfFirst(Gate):
    """Holds the first run only."""

    def __call__(self, state: State) -> dict[str, Any]:
        return super().__call__(state) if state["x"] == 1 else {"log": ["passed"]}


def test_what_the_interrupted_run_was_doing_comes_to_nothing(make_runner: MakeRunner) -> None:
    """Its step ends after the other run: the thread's newest state stays the other run's."""
    gate, last = GateOfFirst(), Node("last")
    runner = make_runner(chain(gate, last), multitask_strategy="interrupt")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(runner.invoke, {"x": 1}, thread_id="t")
        gate.wait_until_entered()
        assert runner.invoke({"x": 2}, thread_id="t") == {"x": 2, "log": ["passed", "last"]}
        with pytest.raises(RunCancelledError):
            first.result()
    gate.open()
    runner.shutdown()  # waits for the step
    config = {"configurable": {"thread_id": "t"}}
    assert runner.get_state(config).values == {"x": 2, "log": ["passed", "last"]}
    logs = [state.values.get("log", []) for state in runner.get_state_history(config)]
    assert ["gate"] not in logs
    assert last.executions == 1

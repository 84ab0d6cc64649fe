"""Cancelling a run."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from run_helpers import Gate, MakeRunner, Node, chain, collect

from dapr_runners.engine import RunCancelledError, RunNotFoundError


async def test_a_waiting_caller_is_told(
    make_runner: MakeRunner, wait_for_end: Callable[[str], str]
) -> None:
    gate, last = Gate(), Node("last")
    runner = make_runner(chain(Node("first"), gate, last))
    waiting = asyncio.create_task(collect(runner.run_async({"x": 1}, run_id="cancelled-1")))
    await asyncio.to_thread(gate.wait_until_entered)
    runner.cancel("cancelled-1")
    with pytest.raises(RunCancelledError) as told:
        await waiting
    assert str(told.value) == (
        "The run 'cancelled-1' was cancelled before it ended, so it has no result. Steps "
        "recorded until then stay recorded."
    )
    assert wait_for_end("cancelled-1") == "TERMINATED"
    status = runner.get_workflow_status("cancelled-1")
    assert status is not None and status["status"] == "TERMINATED"
    gate.open()
    runner.shutdown()
    assert last.executions == 0


def test_a_blocking_caller_is_told(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(runner.invoke, {"x": 1}, thread_id="t")
        gate.wait_until_entered()
        runner.cancel(thread_id="t")
        with pytest.raises(RunCancelledError):
            waiting.result()
        gate.open()


async def test_its_result_is_not_delivered_later(
    make_runner: MakeRunner, wait_for_end: Callable[[str], str]
) -> None:
    """Not even when the step that was running has ended since."""
    gate = Gate()
    runner = make_runner(chain(gate))
    waiting = asyncio.create_task(collect(runner.run_async({"x": 1}, thread_id="t")))
    await asyncio.to_thread(gate.wait_until_entered)
    runner.cancel(thread_id="t")
    gate.open()
    with pytest.raises(RunCancelledError):
        await waiting
    again = await collect(runner.run_async({"x": 1}, thread_id="t"))
    assert again[0]["replayed"] is False
    assert again[-1]["type"] == "workflow_completed"
    assert gate.executions == 2


async def test_a_cancelled_run_id_stays_cancelled(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    waiting = asyncio.create_task(collect(runner.run_async({"x": 1}, run_id="cancelled-2")))
    await asyncio.to_thread(gate.wait_until_entered)
    runner.cancel("cancelled-2")
    gate.open()
    for call in (waiting, collect(runner.run_async({"x": 1}, run_id="cancelled-2"))):
        with pytest.raises(RunCancelledError):
            await call
    assert gate.executions == 1


def test_a_finished_run_is_left_as_it_is(
    make_runner: MakeRunner, wait_for_end: Callable[[str], str]
) -> None:
    runner = make_runner(chain(Node("node")))
    runner.invoke({"x": 1}, thread_id="t")
    runner.cancel(thread_id="t")
    assert runner.invoke({"x": 1}, thread_id="t") == {"x": 1, "log": ["node", "node"]}


async def test_a_finished_run_id_keeps_its_result(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("node")))
    first = await collect(runner.run_async({"x": 1}, run_id="finished"))
    runner.cancel("finished")
    again = await collect(runner.run_async({"x": 1}, run_id="finished"))
    assert again[-1]["output"] == first[-1]["output"]


@pytest.mark.parametrize("operation", ["cancel", "purge"])
def test_an_unknown_run(make_runner: MakeRunner, operation: str) -> None:
    runner = make_runner(chain(Node("node")))
    with pytest.raises(RunNotFoundError) as told:
        getattr(runner, operation)("never-started")
    assert str(told.value) == (
        "There is no run 'never-started': it never existed or was purged. Check the id with "
        "`dapr-runners list`."
    )


def test_without_naming_a_run(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("node")))
    with pytest.raises(TypeError, match="pass run_id or thread_id"):
        runner.cancel()


def test_the_status_of_an_unknown_run(make_runner: MakeRunner) -> None:
    assert make_runner(chain(Node("node"))).get_workflow_status("never-started") is None

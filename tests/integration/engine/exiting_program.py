"""A program that ends in one of several ways: ``exiting_program.py <port> <way> [<run id>]``."""

import asyncio
import sys
import threading
import time
from typing import Any, cast

from run_helpers import State, chain, collect

from dapr_runners.langgraph import DaprWorkflowGraphRunner

IN_FLIGHT = threading.Event()


def node(state: State) -> State:
    return {"log": ["node"]}


def endless(state: State) -> State:
    IN_FLIGHT.set()
    time.sleep(3600)
    return {}


async def aendless(state: State) -> State:
    IN_FLIGHT.set()
    await asyncio.sleep(3600)
    return {}


def begin(runner: DaprWorkflowGraphRunner, way: str) -> None:
    """Begin a run, and leave when its step is in flight."""

    def call() -> None:
        if way == "in a step":
            runner.invoke({"x": 1})
        else:
            asyncio.run(cast(Any, runner.ainvoke({"x": 1})))

    threading.Thread(target=call, daemon=True).start()
    IN_FLIGHT.wait()


def ending() -> None:
    """What follows is the end of the program."""
    sys.stdout.write("ending\n")
    sys.stdout.flush()


def main(port: str, way: str, run_id: str | None = None) -> None:
    nodes: dict[str, Any] = {"in a step": endless, "in an async step": aendless}
    runner = DaprWorkflowGraphRunner(chain(nodes.get(way, node)), name="exiting", port=port)
    if way == "with":
        with runner:
            assert runner.invoke({"x": 1})["log"] == ["node"]
        assert not runner.is_running
    elif way == "async with":
        asyncio.run(in_async_with(runner))
    else:
        runner.start()
        if way in nodes:
            begin(runner, way)
        else:
            events = asyncio.run(collect(runner.run_async({"x": 1}, run_id=run_id)))
            assert events[-1]["output"]["log"] == ["node"]
    ending()
    if way == "raises":
        raise ValueError("the program's own")


async def in_async_with(runner: DaprWorkflowGraphRunner) -> None:
    async with runner as entered:
        assert entered is runner
        assert (await runner.ainvoke({"x": 1}))["log"] == ["node"]
    assert not runner.is_running


if __name__ == "__main__":
    main(*sys.argv[1:])

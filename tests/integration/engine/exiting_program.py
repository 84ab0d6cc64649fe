"""A program that ends in one of several ways: ``exiting_program.py <port> <way>``."""

import asyncio
import sys
import time
from typing import Any

from run_helpers import State, chain

from dapr_runners.langgraph import DaprWorkflowGraphRunner


def node(state: State) -> State:
    return {"log": ["node"]}


def endless(state: State) -> State:
    sys.stdout.write("in flight\n")
    sys.stdout.flush()
    time.sleep(3600)
    return {}


async def aendless(state: State) -> State:
    sys.stdout.write("in flight\n")
    sys.stdout.flush()
    await asyncio.sleep(3600)
    return {}


async def begin(runner: Any) -> None:
    """Begin a run, and leave when its step has begun."""
    async for event in runner.run_async({"x": 1}):
        if event["type"] == "step_planned":
            return


def main(port: str, way: str) -> None:
    nodes: dict[str, Any] = {"in a step": endless, "in an async step": aendless}
    runner = DaprWorkflowGraphRunner(chain(nodes.get(way, node)), name="exiting", port=port)
    if way == "with":
        with runner:
            assert runner.invoke({"x": 1})["log"] == ["node"]
            assert runner.is_running
        assert not runner.is_running
        return
    if way == "async with":
        asyncio.run(in_async_with(runner))
        return
    runner.start()
    if way in nodes:
        asyncio.run(begin(runner))
        return
    assert runner.invoke({"x": 1})["log"] == ["node"]
    if way == "raises":
        raise ValueError("the program's own")


async def in_async_with(runner: DaprWorkflowGraphRunner) -> None:
    async with runner as entered:
        assert entered is runner
        assert (await runner.ainvoke({"x": 1}))["log"] == ["node"]
    assert not runner.is_running


if __name__ == "__main__":
    main(*sys.argv[1:])

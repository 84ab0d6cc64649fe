"""Nodes that leave by what is no Exception, as ``sys.exit`` in a tool does.

Their caller gets it, and the worker works on.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.func import (
    entrypoint,  # pyright: ignore[reportUnknownVariableType]
    task,  # pyright: ignore[reportUnknownVariableType]
)
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy
from run_helpers import MakeRunner, State, chain

from dapr_runners.langgraph import StepRetry

pytestmark = pytest.mark.timeout(240)


class Left(BaseException):
    """As test frameworks and event loops have them."""


ran: list[str] = []


def leave(state: State) -> State:
    ran.append("leave")
    match state.get("x"):
        case 1:
            sys.exit(3)
        case 2:
            raise KeyboardInterrupt
        case 3:
            raise Left("left")
        case _:
            return {"log": ["stayed"]}


async def aleave(state: State) -> State:
    return leave(state)


def alone(node: Any) -> Any:
    return chain(node)


def beside_another(node: Any) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("leave", node)
    builder.add_node("other", lambda state: {"log": ["other"]})  # pyright: ignore
    builder.add_edge(START, "leave")
    builder.add_edge(START, "other")
    return builder.compile()


def with_policy(node: Any) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("leave", node, retry_policy=RetryPolicy(max_attempts=3, initial_interval=0.01))
    builder.add_edge(START, "leave")
    return builder.compile()


def in_a_subgraph(node: Any) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("inner", beside_another(node))
    builder.add_edge(START, "inner")
    return builder.compile()


def in_a_graph_called_by_a_node(node: Any) -> Any:
    inner = beside_another(node)

    def call(state: State) -> Any:
        return inner.invoke(state)

    async def acall(state: State) -> Any:
        return await inner.ainvoke(state)

    return chain(acall if node is aleave else call)


def in_a_router(node: Any) -> Any:
    def route(state: State) -> str:
        leave(state)
        return "stay"

    async def aroute(state: State) -> str:
        return route(state)

    builder: Any = StateGraph(State)
    builder.add_node("stay", lambda state: {"log": ["stayed"]})  # pyright: ignore
    builder.add_conditional_edges(START, aroute if node is aleave else route, ["stay"])
    return builder.compile()


def in_a_task(node: Any) -> Any:
    if node is aleave:

        @entrypoint()
        async def workflow(state: State) -> Any:
            return await task(aleave)(state)

    else:

        @entrypoint()
        def workflow(state: State) -> Any:
            return task(leave)(state).result()

    return workflow


@pytest.mark.parametrize(
    "build",
    [
        alone,
        beside_another,
        with_policy,
        in_a_subgraph,
        in_a_graph_called_by_a_node,
        in_a_router,
        in_a_task,
    ],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_the_caller_gets_it_and_the_worker_works_on(
    make_runner: MakeRunner, build: Callable[[Any], Any], is_async: bool
) -> None:
    runner = make_runner(
        build(aleave if is_async else leave), retry=StepRetry(max_attempts=2, first_interval=0.01)
    )

    async def call(x: int) -> Any:
        input: State = {"x": x, "log": []}
        return await runner.ainvoke(input) if is_async else runner.invoke(input)

    ran.clear()
    for x, (kind, arguments) in enumerate(
        [(SystemExit, (3,)), (KeyboardInterrupt, ()), (Left, ("left",))], start=1
    ):
        with pytest.raises(kind) as raised:
            # asyncio lets the first two through, as it does in a program: they end its loop.
            await _in_a_loop_of_its_own(call, x, is_async)
        assert raised.value.args == arguments
    assert ran == ["leave"] * 3
    assert "stayed" in (await call(0))["log"]


async def _in_a_loop_of_its_own(call: Callable[[int], Any], x: int, is_async: bool) -> Any:
    if not is_async:
        return await call(x)
    return await asyncio.to_thread(lambda: asyncio.run(call(x)))

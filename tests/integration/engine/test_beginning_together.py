"""Asynchronous nodes of a superstep begin together, as in LangGraph."""

import asyncio
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from run_helpers import MakeRunner, State, chain

from dapr_runners.engine import _together

pytestmark = pytest.mark.timeout(120)

WIDTH = 30


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take its time between two activities."""
    monkeypatch.setattr(_together, "_TICK", 60.0)


def graph(log: list[str]) -> Any:
    async def node(state: State) -> State:
        log.append("begins")
        await asyncio.sleep(0)
        log.append("goes on")
        return {"log": [state["x"]]}

    def fan_out(state: State) -> list[Send]:
        return [Send("node", {"x": number}) for number in range(WIDTH)]

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_conditional_edges(START, fan_out)
    return builder.compile()


def test_all_begin_before_any_goes_on(make_runner: MakeRunner) -> None:
    plain: list[str] = []
    durable: list[str] = []
    expected = asyncio.run(graph(plain).ainvoke({}))
    assert asyncio.run(make_runner(graph(durable)).ainvoke({})) == expected
    assert durable == plain == ["begins"] * WIDTH + ["goes on"] * WIDTH


def test_as_many_as_may_run_at_once(make_runner: MakeRunner) -> None:
    log: list[str] = []
    runner = make_runner(graph(log))
    asyncio.run(runner.ainvoke({}, {"max_concurrency": 10}))
    assert log[:20] == ["begins"] * 10 + ["goes on"] * 10
    assert sorted(log) == ["begins"] * WIDTH + ["goes on"] * WIDTH


def test_nobody_waits_for_steps_that_are_planned_for_later(make_runner: MakeRunner) -> None:
    begun = asyncio.Event()

    async def inner(state: State) -> State:
        await begun.wait()
        return {"log": ["inner"]}

    async def node(state: State) -> State:
        begun.set()
        return {"log": ["node"]}

    builder: Any = StateGraph(State)
    nodes = {"a_graph": chain(inner), "b_node": node, "c_node": node}
    for name, action in nodes.items():
        builder.add_node(name, action)
        builder.add_edge(START, name)
    runner = make_runner(builder.compile())

    async def run() -> Any:
        async with asyncio.timeout(30):
            return await runner.ainvoke({}, {"max_concurrency": 2})

    assert asyncio.run(run())["log"] == ["inner", "node", "node"]

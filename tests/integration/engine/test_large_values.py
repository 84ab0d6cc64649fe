"""Runs of values that are larger than what a sidecar takes in one call."""

from typing import Any

import pytest
from langgraph.func import entrypoint, task
from place import Place
from run_helpers import MakeRunner, Node, State, chain

LARGE = 5_000_000


def weigh(state: State) -> State:
    return {"x": sum(len(value) for value in state["log"])}


def bring(state: State) -> State:
    return {"log": ["x" * LARGE]}


def bring_many(state: State) -> State:
    return {"log": [str(number) * 1_000_000 for number in range(8)]}


@pytest.mark.parametrize(("node", "weight"), [(bring, LARGE), (bring_many, 8_000_000)])
@pytest.mark.parametrize("thread", [None, "t"])
def test_a_large_state(make_runner: MakeRunner, node: Any, weight: int, thread: str | None) -> None:
    counter = Node("counter", log=[])
    runner = make_runner(chain(node, counter, weigh))
    assert runner.invoke({"x": 0}, thread_id=thread)["x"] == weight
    assert counter.executions == 1


async def test_a_large_state_of_an_asynchronous_run(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(bring, weigh))
    assert (await runner.ainvoke({"x": 0}))["x"] == LARGE


def test_a_large_input_on_every_turn(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(weigh))
    for turn in (1, 2, 3):
        values = ["x" * LARGE + str(turn)]
        assert runner.invoke({"log": values}, thread_id="t")["x"] == turn * (LARGE + 1)


def test_a_call_that_returns_much(make_runner: MakeRunner) -> None:
    executions: list[int] = []

    @task
    def fetch(size: int) -> str:
        executions.append(size)
        return "x" * size

    @entrypoint()
    def work(size: int) -> int:
        return len(fetch(size).result()) + len(fetch(size + 1).result())

    assert make_runner(work).invoke(LARGE) == 2 * LARGE + 1
    assert sorted(executions) == [LARGE, LARGE + 1]


def test_purge_leaves_no_part(make_runner: MakeRunner, place: Place) -> None:
    runner = make_runner(chain(bring, weigh))
    runner.invoke({"x": 0, "log": ["x" * LARGE]}, thread_id="t")
    assert _rows(place, runner.name) > 10
    runner.purge(thread_id="t")
    assert _rows(place, runner.name) == 0


def _rows(place: Place, runner: str) -> int:
    """Rows of the runs of ``runner``."""
    return sum(f"dr/run/{runner}-" in key for key in place.stored())

"""A node reads which step it is, and the key of its effects."""

import operator
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from run_helpers import MakeRunner
from typing_extensions import TypedDict

from dapr_runners import CurrentStep, current_step
from dapr_runners.langgraph import StepRetry

pytestmark = pytest.mark.timeout(240)


def _highest(one: int, other: int) -> int:
    return max(one, other)


class State(TypedDict, total=False):
    n: Annotated[int, _highest]
    done: Annotated[int, operator.add]


class Seen:
    """A node that keeps which step it was, and fails the first ``failures`` times."""

    def __init__(self, failures: int = 0) -> None:
        self.steps: list[CurrentStep] = []
        self._failures = failures

    def __call__(self, state: State) -> State:
        step = current_step()
        assert step is not None
        self.steps.append(step)
        if len(self.steps) <= self._failures:
            raise ConnectionError("not yet")
        return {"n": state.get("n", 0) + 1, "done": 1}

    async def later(self, state: State) -> State:
        return self(state)

    @property
    def keys(self) -> list[str]:
        return [step.idempotency_key for step in self.steps]


def looping(node: Any, times: int) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", lambda s: "node" if s["n"] < times else "__end__")
    return builder


def spread(node: Any, width: int) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_conditional_edges(
        START, lambda _: [Send("node", {"n": number}) for number in range(width)], ["node"]
    )
    return builder


@pytest.mark.parametrize("steps", [1, 10], ids=["each", "fast lane"])
async def test_every_iteration_branch_and_turn_has_a_key_of_its_own(
    make_runner: MakeRunner, steps: int
) -> None:
    seen = Seen()
    builder = StateGraph(State)
    builder.add_node("loop", looping(seen, 3).compile())
    builder.add_node("fan", spread(seen.later, 3).compile())
    builder.add_edge(START, "loop")
    builder.add_edge("loop", "fan")
    runner = make_runner(builder.compile(), steps_per_activity=steps)
    for _ in range(2):
        await runner.ainvoke({"n": 0}, {"configurable": {"thread_id": "t"}})
    assert len(seen.steps) == 10  # the second turn begins where the first has stopped
    assert len(set(seen.keys)) == 10
    assert {step.attempt for step in seen.steps} == {1}
    assert current_step() is None


@pytest.mark.parametrize("build", [looping, spread], ids=["lone", "parallel"])
def test_every_attempt_has_the_same_key(make_runner: MakeRunner, build: Any) -> None:
    seen = Seen(failures=2)
    retry = StepRetry(max_attempts=3, first_interval=0.01, retry_on=ConnectionError)
    runner = make_runner(build(seen, 1).compile(), retry=retry)
    assert runner.invoke({"n": 0})["done"] == 1
    assert [step.attempt for step in seen.steps] == [1, 2, 3]
    assert len(set(seen.keys)) == 1

"""Effects in the nodes of a graph: retries, tasks, tenants, and what they cost."""

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from effect_helpers import Charges, CountingStore
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from dapr_runners import current_step
from dapr_runners.effects import EffectMismatchError, EffectStatus, current_effect, effect
from dapr_runners.langgraph import DaprWorkflowGraphRunner, StepRetry
from dapr_runners.state import UnstorableValueError

pytestmark = pytest.mark.timeout(240)
MakeRunner = Callable[..., DaprWorkflowGraphRunner]


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def _graph(node: Any, **options: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("before", lambda state: {"log": ["before"]})
    graph.add_node("node", node, **options)
    graph.add_edge(START, "before")
    graph.add_edge("before", "node")
    return graph.compile()


@pytest.mark.parametrize("by_langgraph", [True, False])
def test_a_node_that_is_retried_has_what_its_effects_gave(
    by_langgraph: bool, make_runner: MakeRunner
) -> None:
    charges, notices, failures = Charges(), Charges(ConnectionError("no")), [ValueError("first")]
    charge, notify = effect(name="charge")(charges), effect(name="notify")(notices)

    def node(state: State) -> State:
        receipt = charge("a")
        if failures:
            raise failures.pop()
        return {"log": [receipt, notify("b")]}

    policy = RetryPolicy(max_attempts=3, initial_interval=0.01, retry_on=Exception)
    retry = StepRetry(max_attempts=3, first_interval=0.01, retry_on=[Exception])
    options: dict[str, Any] = {"retry_policy": policy} if by_langgraph else {}
    runner = make_runner(_graph(node, **options), retry=None if by_langgraph else retry)
    assert runner.invoke({"log": []})["log"] == ["before", "receipt 1", "receipt 2"]
    assert charges.made == ["a"]
    assert notices.made == ["b", "b"]  # it had raised the first time


def test_a_node_that_was_answered_begins_anew(make_runner: MakeRunner) -> None:
    charges = Charges()
    charge = effect(name="charge")(charges)

    def node(state: State) -> State:
        return {"log": [charge("a"), interrupt("sure?")]}

    runner = make_runner(_graph(node))
    asked = runner.invoke({"log": []}, thread_id="t")
    assert [each.value for each in asked["__interrupt__"]] == ["sure?"]
    answered = runner.invoke(Command(resume="yes"), thread_id="t")
    assert answered["log"] == ["before", "receipt 2", "yes"]
    assert charges.made == ["a", "a"]


def test_the_parts_of_a_step_have_effects_of_their_own(make_runner: MakeRunner) -> None:
    keys: list[str] = []

    @effect
    def charge(order: int) -> int:
        running = current_effect()
        assert running is not None
        keys.append(running.idempotency_key)
        return order

    failures = [ConnectionError("no")]

    @task
    def pay(order: int) -> int:
        return charge(order)

    @entrypoint()
    def whole(orders: list[int]) -> list[int]:
        paid = [future.result() for future in [pay(order) for order in orders]]
        if failures:
            raise failures.pop()
        return [*paid, charge(9)]

    retry = StepRetry(max_attempts=2, first_interval=0.01, retry_on=[ConnectionError])
    assert make_runner(whole, retry=retry).invoke([1, 2, 3]) == [1, 2, 3, 9]
    assert len(keys) == len(set(keys)) == 4


@pytest.mark.parametrize("steps", [1, 10], ids=["each", "fast lane"])
def test_what_it_costs(steps: int, make_runner: MakeRunner, store: CountingStore) -> None:
    charge = effect(name="charge")(Charges())

    def writes(node: Any) -> int:
        runner = make_runner(_graph(node), steps_per_activity=steps)
        store.writes.clear()
        runner.invoke({"log": []})
        runner.shutdown()
        # Who works for the app is said every so often, run or no run.
        counted = [keys for keys in store.writes if keys[0] != "dr/processes"]
        return len([keys for keys in counted if "attempts" not in keys[0]])

    without = writes(lambda state: {"log": ["x"]})
    assert writes(lambda state: {"log": [charge("a")]}) == without + 3
    assert [key for keys in store.writes for key in keys if "begun" in key] != []


def test_a_step_knows_its_tenant(make_runner: MakeRunner) -> None:
    seen: list[Any] = []

    @effect(key=lambda order: order)
    def charge(order: str) -> str:
        running, step = current_effect(), current_step()
        assert running is not None and step is not None
        record = running.record
        assert record.execution_status is EffectStatus.EXECUTING
        assert (record.run_id, record.step_id, record.effect) == (step.run_id, step.key, "charge")
        assert record.graph_version
        seen.append((step.tenant_id, record.tenant_id, record.idempotency_key))
        return order

    runner = make_runner(_graph(lambda state: {"log": [charge("a")]}))
    for tenant in ("one", "one", "two"):
        runner.invoke({"log": []}, {"configurable": {"tenant_id": tenant}})
    assert [tenants[:2] for tenants in seen] == [("one", "one"), ("one", "one"), ("two", "two")]
    assert seen[0][2] == seen[1][2] != seen[2][2]


def test_what_must_not_be_tried_again_ends_the_run(make_runner: MakeRunner) -> None:
    charges = Charges()

    @effect
    def charge(order: str) -> Any:
        charges(order)
        return object()

    def node(state: State) -> State:
        try:
            return {"log": [charge("a")]}
        except Exception:
            return {"log": [charge("a")]}

    retry = StepRetry(max_attempts=3, first_interval=0.01, retry_on=[Exception])
    with pytest.raises(UnstorableValueError, match="what 'charge' returned"):
        make_runner(_graph(node), retry=retry).invoke({"log": []})
    assert charges.made == ["a"]


def test_other_arguments_end_the_run(make_runner: MakeRunner) -> None:
    charges, orders = Charges(), ["a", "b"]
    charge = effect(name="charge")(charges)

    def node(state: State) -> State:
        charge(orders.pop(0))
        raise ConnectionError("no")

    retry = StepRetry(max_attempts=3, first_interval=0.01, retry_on=[Exception])
    with pytest.raises(EffectMismatchError):
        make_runner(_graph(node), retry=retry).invoke({"log": []})
    assert charges.made == ["a"]


@pytest.mark.parametrize("key", [None, "", True, 1.5, {"a"}, object(), ("a", None)])
def test_a_key_that_names_nothing_is_refused(key: Any, make_runner: MakeRunner) -> None:
    charges = Charges()
    charge = effect(name="charge", key=lambda order: key)(charges)
    runner = make_runner(_graph(lambda state: {"log": [charge("a")]}))
    with pytest.raises(TypeError, match="key= of the effect 'charge' gave"):
        runner.invoke({"log": []})
    assert charges.made == []


def test_the_order_of_keyword_arguments_says_nothing(make_runner: MakeRunner) -> None:
    made: list[dict[str, int]] = []

    @effect
    def charge(**cents: int) -> int:
        made.append(cents)
        return sum(cents.values())

    failures = [ConnectionError("no")]

    def node(state: State) -> State:
        parts = {"a": 1, "b": 2} if failures else {"b": 2, "a": 1}
        total = charge(**parts)
        if failures:
            raise failures.pop()
        return {"log": [total]}

    runner = make_runner(_graph(node), retry=StepRetry(first_interval=0.01))
    assert runner.invoke({"log": []})["log"] == ["before", 3]
    assert made == [{"a": 1, "b": 2}]

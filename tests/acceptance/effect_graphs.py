"""Graphs whose node charges somebody. The charges are those that the outside has counted."""

import operator
from typing import Annotated, Any, TypedDict

from harness.effects import Outside
from langgraph.graph import START, StateGraph

from dapr_runners.effects import (
    NOT_DONE,
    STILL_UNKNOWN,
    EffectDroppedError,
    EffectRecord,
    current_effect,
    done,
    effect,
)


class State(TypedDict):
    log: Annotated[list[str], operator.add]


class Payments:
    """The outside, as a payment service: each report of ``charge`` is a charge."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside

    def charge(self, order: str) -> str:
        running = current_effect()
        key, token = (
            ("", 0) if running is None else (running.idempotency_key, running.fencing_token)
        )
        self.outside.report("about to charge", token=token)
        self.outside.report("charge", order=order, key=key, token=token)
        # Here the charge has happened; whoever is killed at this point has not recorded it.
        self.outside.report("charged")
        return f"receipt for {order}"

    def find(self, key: str, record: EffectRecord) -> Any:
        """What a lookup by key would find."""
        self.outside.report("lookup", key=key)
        events = self.outside.events()
        found = [e for e in events if e["point"] == "charge" and e.get("key") == key]
        return done(f"receipt for {found[0]['order']}") if found else NOT_DONE

    def shrug(self, key: str, record: EffectRecord) -> Any:
        self.outside.report("lookup", key=key)
        return STILL_UNKNOWN


def graph_of(
    outside: Outside, is_async: bool, options: dict[str, Any], parallel: bool = False
) -> Any:
    """prepare -> charge -> finalize; with ``parallel``, two steps beside the one that charges."""
    payments = Payments(outside)

    if is_async:

        @effect(**options, name="charge")
        async def charge_async(order: str) -> str:
            return payments.charge(order)

        async def run_async(state: State) -> dict[str, Any]:
            outside.report("node")
            receipt = await charge_async("order 7")
            outside.report("recorded")
            return {"log": [receipt]}

    @effect(**options, name="charge")
    def charge(order: str) -> str:
        return payments.charge(order)

    def run(state: State) -> dict[str, Any]:
        outside.report("node")
        try:
            receipt = charge("order 7")
        except Exception:
            outside.report("swallowed")
            raise
        outside.report("recorded")
        return {"log": [receipt]}

    graph = StateGraph(State)
    graph.add_node("prepare", lambda state: {"log": ["prepared"]})
    graph.add_node("charge", run_async if is_async else run)
    graph.add_node("finalize", lambda state: {"log": ["finalized"]})
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "charge")
    graph.add_edge("charge", "finalize")
    if parallel:
        graph.add_node("beside", lambda state: {"log": []})
        graph.add_edge("prepare", "beside")
        graph.add_edge("beside", "finalize")
    return graph.compile()


def reconciled(outside: Outside, is_async: bool) -> Any:
    """The outside tells by key what has happened."""
    return graph_of(outside, is_async, {"reconcile": Payments(outside).find})


def reconciled_beside(outside: Outside, is_async: bool) -> Any:
    """The same, in a step beside another."""
    return graph_of(outside, is_async, {"reconcile": Payments(outside).find}, parallel=True)


def undecided(outside: Outside, is_async: bool) -> Any:
    """The outside does not know."""
    return graph_of(outside, is_async, {"reconcile": Payments(outside).shrug})


def plain(outside: Outside, is_async: bool) -> Any:
    """Nothing tells what has happened."""
    return graph_of(outside, is_async, {})


def plain_beside(outside: Outside, is_async: bool) -> Any:
    """The same, in a step beside another."""
    return graph_of(outside, is_async, {}, parallel=True)


def retried(outside: Outside, is_async: bool) -> Any:
    """Whatever has happened, it is done again, with the same key."""
    return graph_of(outside, is_async, {"on_unknown": "retry"})


def failing(outside: Outside, is_async: bool) -> Any:
    """Not to know fails the run."""
    return graph_of(outside, is_async, {"on_unknown": "fail"})


def dropped(outside: Outside, is_async: bool) -> Any:
    """Nothing tells what has happened, and the node takes it if the charge is given up."""
    charge = effect(name="charge")(Payments(outside).charge)

    def run(state: State) -> dict[str, Any]:
        try:
            return {"log": [charge("order 7")]}
        except EffectDroppedError as error:
            return {"log": [f"dropped by {error.who}: {error.why}"]}

    graph = StateGraph(State)
    graph.add_node("charge", run)
    graph.add_edge(START, "charge")
    return graph.compile()


def with_router(outside: Outside, is_async: bool) -> Any:
    """A node that fails or kills as the test says, in a subgraph beside another node; what it gives
    decides where its graph goes."""

    def run(state: State) -> dict[str, Any]:
        outside.report("fragile")
        return {"log": ["fragile"]}

    async def run_async(state: State) -> dict[str, Any]:
        return run(state)

    inner = StateGraph(State)
    inner.add_node("fragile", run_async if is_async else run)
    inner.add_node("after", lambda state: {"log": ["after"]})
    inner.add_node("beside", lambda state: {"log": []})
    inner.add_edge(START, "fragile")
    inner.add_edge(START, "beside")
    inner.add_conditional_edges(
        "fragile", lambda state: "after" if state["log"] else "__end__", ["after", "__end__"]
    )
    outer = StateGraph(State)
    outer.add_node("first", lambda state: {"log": []})
    outer.add_node("sub", inner.compile())
    outer.add_edge(START, "first")
    outer.add_edge("first", "sub")
    return outer.compile()


def alone(outside: Outside, is_async: bool) -> Any:
    """A node that fails or kills as the test says, and one after it."""

    def run(state: State) -> dict[str, Any]:
        outside.report("fragile")
        return {"log": ["fragile"]}

    async def run_async(state: State) -> dict[str, Any]:
        return run(state)

    graph = StateGraph(State)
    graph.add_node("first", lambda state: {"log": []})
    graph.add_node("fragile", run_async if is_async else run)
    graph.add_node("after", lambda state: {"log": ["after"]})
    graph.add_edge(START, "first")
    graph.add_edge("first", "fragile")
    graph.add_edge("fragile", "after")
    return graph.compile()


def short_lease(outside: Outside, is_async: bool) -> Any:
    """The outside tells by key what has happened; a lease lasts for a second."""
    return graph_of(outside, is_async, {"reconcile": Payments(outside).find, "lease": 1.0})


def short_lease_undecided(outside: Outside, is_async: bool) -> Any:
    """Nobody tells what has happened; a lease lasts for a second."""
    return graph_of(outside, is_async, {"lease": 1.0})

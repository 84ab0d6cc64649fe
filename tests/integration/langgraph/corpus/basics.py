"""Supersteps, edges, routing and limits."""

import operator
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.managed import IsLastStep, RemainingSteps
from typing_extensions import TypedDict

from corpus.case import Services, case
from corpus.marks import mark
from corpus.probe import Probe
from corpus.state import State, logs


def linear(services: Services) -> Any:
    def add(state: State) -> State:
        mark("add")
        return {"x": state["x"] + 1, "log": ["add"]}

    def multiply(state: State) -> State:
        mark("multiply")
        return {"x": state["x"] * 10, "log": ["multiply"]}

    builder = StateGraph(State)
    builder.add_node("add", add)
    builder.add_node("multiply", multiply)
    builder.add_edge(START, "add")
    builder.add_edge("add", "multiply")
    builder.add_edge("multiply", END)
    return services.compile(builder)


@case(linear)
def one_turn(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_state()
    it.shows_history()


@case(linear)
def two_turns(it: Probe) -> None:
    it.invokes({"x": 1})
    it.invokes({"x": 5})
    it.shows_history()


@case(linear)
def no_input(it: Probe) -> None:
    it.invokes(None)
    it.invokes({})
    it.invokes({"unknown": 1})


def fan_out(services: Services) -> Any:
    builder = StateGraph(State)
    for name in "abcd":
        builder.add_node(name, logs(name))

    def join(state: State) -> State:
        mark("join")
        return {"x": len(state["log"])}

    builder.add_node("join", join)
    for name in "dcba":
        builder.add_edge(START, name)
    builder.add_edge(["a", "b", "c", "d"], "join")
    return services.compile(builder)


@case(fan_out)
def fan_out_and_join(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_history()


def routed(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"x": state["x"] + 1, "log": ["a"]})
    builder.add_node("low", logs("low"))
    builder.add_node("high", logs("high"))
    builder.add_conditional_edges(START, lambda state: "go", {"go": "a"})
    builder.add_conditional_edges(
        "a", lambda state: "L" if state["x"] < 5 else "H", {"L": "low", "H": "high"}
    )
    builder.add_conditional_edges("low", lambda state: "a")
    return services.compile(builder)


@case(routed)
def conditional_loop(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_history()


@case(routed)
def recursion_limit(it: Probe) -> None:
    it.invokes({"x": -100}, it.config(recursion_limit=7))
    it.shows_state()
    it.invokes(None, it.config(recursion_limit=4))
    it.shows_state()


class Managed(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    remaining: RemainingSteps
    last: IsLastStep


def managed(services: Services) -> Any:
    builder = StateGraph(Managed)
    builder.add_node("a", lambda state: {"log": [(state["remaining"], state["last"])]})
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: "a" if state["remaining"] > 2 else END)
    return services.compile(builder)


@case(managed)
def managed_values(it: Probe) -> None:
    it.invokes({"log": []}, it.config(recursion_limit=8))


def deferred(services: Services) -> Any:
    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, logs(name))
    builder.add_node("last", logs("last"), defer=True)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    builder.add_edge("a", "last")
    builder.add_edge("c", "last")
    return services.compile(builder)


@case(deferred)
def deferred_node(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_history()


def conflicting(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"x": 1})
    builder.add_node("b", lambda state: {"x": 2})
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    return services.compile(builder)


@case(conflicting)
def concurrent_update(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_state()


def wrong_return(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", lambda state: 7)
    builder.add_edge(START, "a")
    return services.compile(builder)


@case(wrong_return)
def invalid_return_value(it: Probe) -> None:
    it.invokes({"x": 0})

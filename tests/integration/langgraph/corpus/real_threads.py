"""Failures that people reported to LangGraph, as small cases: langchain-ai/langgraph#<number>."""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy
from pydantic import BaseModel

from corpus.basics import managed
from corpus.case import Services, case
from corpus.failures import AFTERWARDS
from corpus.marks import fail_once, mark, wait_for_mark
from corpus.probe import Probe
from corpus.state import State, logs


def with_failing_router(services: Services) -> Any:
    def route(state: State) -> str:
        mark("route")
        fail_once(ValueError("router"))
        return "sink"

    builder = StateGraph(State)
    builder.add_node("a", logs("a", x=1))
    builder.add_node("sink", logs("sink"))
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", route, ["sink"])
    return services.compile(builder)


@case(with_failing_router)
def issue_8834_router_raises_after_its_node_wrote(it: Probe) -> None:
    it.invokes({"x": 0})
    it.invokes(None)
    it.shows_state()


def with_handler_and_failing_sibling(services: Services) -> Any:
    def bad(state: State) -> State:
        mark("bad")
        raise ValueError("bad failed")

    def sibling(state: State) -> State:
        mark("sibling")
        wait_for_mark("handler")
        fail_once(ValueError("sibling failed"), AFTERWARDS)
        return {"log": ["sibling"]}

    builder = StateGraph(State)
    builder.add_node("bad", bad, error_handler=logs("handler"))
    builder.add_node("sibling", sibling)
    builder.add_edge(START, "bad")
    builder.add_edge(START, "sibling")
    return services.compile(builder)


@case(with_handler_and_failing_sibling)
def issue_9002_handler_runs_again_on_resume(it: Probe) -> None:
    it.invokes({"x": 0})
    it.invokes(None)


def with_handler_that_goes_on(services: Services) -> Any:
    def boom(state: State) -> State:
        mark("boom")
        raise RuntimeError("test")

    def handler(state: State) -> Any:
        return Command(update={"log": ["handled"]}, goto=END)

    builder = StateGraph(State)
    builder.add_node("boom", boom, error_handler=handler)
    builder.add_node("sibling", logs("sibling"))
    builder.add_edge(START, "boom")
    builder.add_edge(START, "sibling")
    return services.compile(builder)


@case(with_handler_that_goes_on)
def issue_8608_handled_error_is_raised_again(it: Probe) -> None:
    it.invokes({"x": 0})
    it.streams_in_any_order({"x": 0}, ["custom", "values"], config=it.config("2"))


def with_empty_step(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", logs("a"))
    builder.add_node("nothing", lambda state: None)
    builder.add_node("b", logs("b"))
    builder.add_edge(START, "a")
    builder.add_edge("a", "nothing")
    builder.add_edge("nothing", "b")
    return services.compile(builder)


@case(with_empty_step)
def issue_8672_values_of_a_step_that_returns_none(it: Probe) -> None:
    it.streams({"x": 0}, ["values", "updates"])


class Required(BaseModel):
    field: str


def with_validation_error(services: Services) -> Any:
    def validate(state: State) -> State:
        mark("validate")
        Required.model_validate({})
        return {}

    policy = RetryPolicy(max_attempts=3, initial_interval=0.01, jitter=False)
    builder = StateGraph(State)
    builder.add_node("validate", validate, retry_policy=policy)
    builder.add_edge(START, "validate")
    return services.compile(builder)


@case(with_validation_error)
def issue_6027_validation_error_and_retries(it: Probe) -> None:
    it.invokes({"x": 0})


def with_skipped_branch(services: Services) -> Any:
    builder = StateGraph(State)
    for name in "abc":
        builder.add_node(name, logs(name))
    builder.add_conditional_edges(
        START, lambda state: ["a"] if state["x"] else ["a", "b"], ["a", "b"]
    )
    builder.add_edge(["a", "b"], "c")
    return services.compile(builder)


@case(with_skipped_branch)
def issue_js2666_join_after_a_skipped_branch(it: Probe) -> None:
    it.invokes({"x": 1})
    it.invokes({"x": 0}, it.config("2"))


@case(managed)
def issue_2081_last_step_of_each_turn(it: Probe) -> None:
    it.invokes({"log": []}, it.config(recursion_limit=4))
    it.invokes({"log": []}, it.config(recursion_limit=4))

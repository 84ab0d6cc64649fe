"""Nodes that fail: retries, handlers, siblings, caches."""

from typing import Any

from langgraph.errors import NodeError
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import CachePolicy, RetryPolicy

from corpus.case import Services, case
from corpus.marks import fail_once, mark, wait_for_mark
from corpus.probe import Probe
from corpus.state import State, logs

AFTERWARDS = 1.0
"""Seconds from a node's return to the failure of its sibling: time enough for its result to count,
which plain LangGraph promises to none."""


class Transient(Exception):
    """Worth a retry."""


def retried(services: Services, *, attempts: int, failing: int) -> Any:
    def flaky(state: State, runtime: Runtime) -> State:
        assert runtime.execution_info is not None
        mark("flaky")
        attempt = runtime.execution_info.node_attempt
        if attempt <= failing:
            raise Transient("boom")
        return {"log": [f"attempt {attempt}"]}

    policy = RetryPolicy(
        max_attempts=attempts, initial_interval=0.01, jitter=False, retry_on=Transient
    )
    builder = StateGraph(State)
    builder.add_node("flaky", flaky, retry_policy=policy)
    builder.add_edge(START, "flaky")
    return services.compile(builder)


def retried_enough(services: Services) -> Any:
    return retried(services, attempts=3, failing=2)


@case(retried_enough)
def retry_that_helps(it: Probe) -> None:
    it.invokes({"x": 0})


def retried_too_little(services: Services) -> Any:
    return retried(services, attempts=2, failing=5)


@case(retried_too_little)
def retry_that_does_not_help(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_state()


def with_failing_sibling(services: Services) -> Any:
    def bad(state: State) -> State:
        mark("bad")
        wait_for_mark("good")
        fail_once(ValueError("bad"), AFTERWARDS)
        return {"log": ["bad recovered"]}

    builder = StateGraph(State)
    builder.add_node("good", logs("good"))
    builder.add_node("bad", bad)
    builder.add_edge(START, "good")
    builder.add_edge(START, "bad")
    return services.compile(builder)


@case(with_failing_sibling)
def finished_sibling_is_kept(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_state()
    it.invokes(None)
    it.shows_state()


def handled(services: Services) -> Any:
    def bad(state: State) -> State:
        mark("bad")
        raise Transient("kaput")

    def handler(state: State, error: NodeError) -> State:
        mark("handler")
        kind = type(error.error).__name__
        return {"log": [f"handled {error.node} {kind} {error.error}"]}

    builder = StateGraph(State)
    builder.add_node("bad", bad, error_handler=handler)
    builder.add_node("beside", logs("beside"))
    builder.add_node("after", logs("after"))
    builder.add_edge(START, "bad")
    builder.add_edge(START, "beside")
    builder.add_edge("bad", "after")
    return services.compile(builder)


@case(handled)
def error_handler(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_state()
    it.shows_history()


def cached(services: Services) -> Any:
    def costly(state: State) -> State:
        mark("costly")
        return {"log": ["costly"], "x": state["x"] + 1}

    builder = StateGraph(State)
    builder.add_node("costly", costly, cache_policy=CachePolicy(ttl=60))
    builder.add_edge(START, "costly")
    return services.compile(builder)


@case(cached)
def cached_node(it: Probe) -> None:
    it.invokes({"x": 0}, it.config("1"))
    it.invokes({"x": 0}, it.config("2"))
    it.streams({"x": 0}, "updates", it.config("3"))

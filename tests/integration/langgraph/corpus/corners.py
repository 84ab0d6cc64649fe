"""Corners: limits, bad routes, odd inputs, caches, nothing to do."""

import operator
from typing import Annotated, Any

from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, Command, Overwrite, Send, interrupt
from typing_extensions import TypedDict

from corpus.basics import linear
from corpus.case import Services, case
from corpus.marks import mark
from corpus.probe import Probe
from corpus.send_and_command import map_reduce
from corpus.state import State, logs


@case(map_reduce)
def few_at_once(it: Probe) -> None:
    it.invokes({"x": 0}, it.config(max_concurrency=2))


def going_nowhere(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", lambda state: Command(goto="nowhere", update={"log": ["a"]}))
    builder.add_edge(START, "a")
    return services.compile(builder)


@case(going_nowhere)
def goto_an_unknown_node(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_state()


class Picky(TypedDict, total=False):
    x: int
    total: Annotated[int, operator.add]


def with_failing_reducer(services: Services) -> Any:
    builder = StateGraph(Picky)
    builder.add_node("a", lambda state: {"total": "not a number"})
    builder.add_edge(START, "a")
    return services.compile(builder)


@case(with_failing_reducer)
def reducer_that_raises(it: Probe) -> None:
    it.invokes({"x": 0, "total": 1})
    it.shows_state()


def overwriting_in_parallel(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", logs("a"))
    builder.add_node("b", lambda state: {"log": Overwrite(["b"])})
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    return services.compile(builder)


@case(overwriting_in_parallel)
def overwrite_beside_an_update(it: Probe) -> None:
    it.invokes({"log": ["in"]})


def sending_and_waiting(services: Services) -> Any:
    def spread(state: State) -> Any:
        return Command(goto=[Send("work", {"x": x}) for x in range(3)], update={"log": ["spread"]})

    def work(state: State) -> State:
        mark("work")
        return {"log": [f"work {state['x']}"]}

    builder = StateGraph(State)
    builder.add_node("spread", spread)
    builder.add_node("work", work)
    builder.add_node("more", logs("more"))
    builder.add_node("last", logs("last"), defer=True)
    builder.add_edge(START, "spread")
    builder.add_edge("work", "more")
    builder.add_edge("more", "last")
    builder.add_edge("work", "last")
    return services.compile(builder)


@case(sending_and_waiting)
def sends_by_command_and_a_deferred_node(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_history()


def nothing_to_do(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", logs("a"))
    builder.add_conditional_edges(START, lambda state: "a" if state["x"] else END)
    return services.compile(builder)


@case(nothing_to_do)
def run_without_steps(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_history()
    it.streams({"x": 0}, ["values", "updates"])


@case(linear)
def thread_without_an_id(it: Probe) -> None:
    it.streams({"x": 1}, "values", {"configurable": {"thread_id": ""}})


@case(linear)
def durability_sync(it: Probe) -> None:
    it.invokes({"x": 1}, durability="sync")
    it.shows_history()


@case(linear)
def update_before_any_run(it: Probe) -> None:
    it.updates_state(it.config(), {"x": 7, "log": ["before"]})
    it.shows_state()
    it.invokes({"log": ["in"]})
    it.shows_history()


@case(linear)
def state_of_an_unused_thread(it: Probe) -> None:
    it.shows_state()
    it.shows_history()


@case(linear)
def output_of_some_keys(it: Probe) -> None:
    it.invokes({"x": 1}, output_keys=["log"])
    it.streams({"x": 1}, "updates", it.config("2"), output_keys=["x"])
    it.streams({"x": 1}, "values", it.config("3"), output_keys="x")


@task(cache_policy=CachePolicy())
def cached_task(x: int) -> int:
    mark("cached task")
    return x * 2


@task
def asking_task(x: int) -> str:
    mark(f"asking task {x}")
    return f"{x} {interrupt(x)}"


def with_odd_tasks(services: Services) -> Any:
    @entrypoint(checkpointer=services.saver, cache=services.cache)
    def flow(x: int) -> Any:
        mark("flow")
        doubled = cached_task(x).result()
        asked = [asking_task(x), asking_task(x + 1)]
        return [doubled, cached_task(x).result(), [future.result() for future in asked]]

    return flow


@case(with_odd_tasks)
def cached_and_asking_tasks(it: Probe) -> None:
    it.invokes(1)
    ids = it.interrupt_ids()
    it.sees(sorted(ids))
    it.invokes(Command(resume={id: f"answer {question}" for question, id in ids.items()}))
    it.invokes(1, it.config("2"))

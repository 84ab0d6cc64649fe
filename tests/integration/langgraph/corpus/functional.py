"""The functional API: entrypoints and tasks."""

from typing import Any

from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from corpus.case import Services, case
from corpus.failures import Transient
from corpus.marks import mark
from corpus.probe import Probe
from corpus.state import State


@task
def add(a: int, b: int) -> int:
    mark(f"add {a}")
    return a + b


@task
def square(i: int) -> int:
    mark(f"square {i}")
    return i * i


def with_tasks(services: Services) -> Any:
    @entrypoint(checkpointer=services.saver, store=services.store, cache=services.cache)
    def flow(x: int, *, previous: Any = None) -> Any:
        mark("flow")
        added = add(x, 1).result()
        squares = [square(i) for i in range(3)]
        total = sum(future.result() for future in squares)
        value = {"added": added, "total": total, "previous": previous}
        return entrypoint.final(value=value, save=added + total)

    return flow


@case(with_tasks)
def tasks_and_previous_value(it: Probe) -> None:
    it.invokes(1)
    it.invokes(2)
    it.streams_in_any_order(3, "updates")


def asking(services: Services) -> Any:
    @entrypoint(checkpointer=services.saver)
    def flow(x: int) -> Any:
        mark("flow")
        added = add(x, 1).result()
        answer = interrupt({"added": added})
        return [added, answer, add(added, 10).result()]

    return flow


@case(asking)
def question_between_tasks(it: Probe) -> None:
    it.invokes(1)
    it.shows_state()
    it.invokes(Command(resume="yes"))


@task(retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.01, jitter=False))
def fail(x: int) -> int:
    mark("fail")
    raise Transient("failed")


def with_failing_task(services: Services) -> Any:
    @entrypoint(checkpointer=services.saver)
    def flow(x: int) -> str:
        try:
            fail(x).result()
        except Transient as error:
            return f"caught {error}"
        return "not failed"

    return flow


@case(with_failing_task)
def caught_error_of_a_task(it: Probe) -> None:
    it.invokes(1)


def with_task_in_node(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"log": [add(state["x"], 5).result()]})
    builder.add_edge(START, "a")
    return services.compile(builder)


@case(with_task_in_node)
def task_called_in_a_node(it: Probe) -> None:
    it.invokes({"x": 1})

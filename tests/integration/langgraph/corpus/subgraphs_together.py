"""Subgraphs beside each other and inside each other, with failures, stops and limits."""

from typing import Any

from langgraph.errors import NodeError
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from corpus.case import Services, case
from corpus.failures import Transient
from corpus.marks import fail_once, mark
from corpus.probe import Probe
from corpus.state import State, logs
from corpus.subgraphs import around, inner


def sequence(*nodes: tuple[str, Any], **options: Any) -> Any:
    """A graph of named nodes, one after another."""
    builder = StateGraph(State)
    before = START
    for name, node in nodes:
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    return builder.compile(**options)


def asking(name: str) -> Any:
    def ask(state: State) -> State:
        mark(name)
        return {"log": [f"{name} {interrupt(name)}"]}

    return ask


def side_by_side(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("left", sequence(("l1", logs("l1")), ("l2", asking("l2"))))
    builder.add_node("middle", logs("middle"))
    builder.add_node("right", sequence(("r1", asking("r1")), ("r2", logs("r2"))))
    builder.add_node("join", logs("join"))
    for name in ("left", "middle", "right"):
        builder.add_edge(START, name)
    builder.add_edge(["left", "middle", "right"], "join")
    return services.compile(builder)


@case(side_by_side)
def questions_in_two_subgraphs_at_once(it: Probe) -> None:
    it.invokes({"x": 1})
    ids = it.interrupt_ids()
    it.invokes(Command(resume={ids["r1"]: "R"}))
    it.shows_state()
    it.invokes(Command(resume={it.interrupt_ids()["l2"]: "L"}))
    it.shows_history()


def failing_inside(services: Services) -> Any:
    def bad(state: State) -> State:
        mark("bad")
        fail_once(ValueError("bad"))
        return {"log": ["recovered"]}

    return around(services, sequence(("first", logs("first")), ("bad", bad)))


@case(failing_inside)
def failure_in_a_subgraph_and_resume(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_state()
    it.invokes(None)
    it.shows_history()


def handled_around(services: Services) -> Any:
    def bad(state: State) -> State:
        mark("bad")
        raise Transient("kaput")

    def handler(state: State, error: NodeError) -> State:
        return {"log": [f"handled {error.node} {type(error.error).__name__}"]}

    builder = StateGraph(State)
    subgraph = sequence(("first", logs("first")), ("bad", bad))
    builder.add_node("inner", subgraph, error_handler=handler)
    builder.add_node("after", logs("after"))
    builder.add_edge(START, "inner")
    builder.add_edge("inner", "after")
    return services.compile(builder)


@case(handled_around)
def error_handler_of_a_subgraph(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_history()


def retried_as_a_whole(services: Services) -> Any:
    def bad(state: State) -> State:
        mark("bad")
        fail_once(Transient("bad"))
        return {"log": ["recovered"]}

    policy = RetryPolicy(max_attempts=2, initial_interval=0.01, jitter=False, retry_on=Transient)
    builder = StateGraph(State)
    subgraph = sequence(("first", logs("first")), ("bad", bad))
    builder.add_node("inner", subgraph, retry_policy=policy)
    builder.add_edge(START, "inner")
    return services.compile(builder)


@case(retried_as_a_whole)
def retry_of_a_subgraph(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_history()


def stopping_inside(services: Services) -> Any:
    nodes = [(name, logs(name)) for name in "abc"]
    subgraph = sequence(*nodes, interrupt_before=["b"], interrupt_after=["b"])
    return around(services, subgraph)


@case(stopping_inside)
def stops_inside_a_subgraph(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_state()
    for _ in range(3):
        it.invokes(None)
    it.shows_history()


def looping_inside(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("again", logs("again"))
    builder.add_edge(START, "again")
    builder.add_conditional_edges("again", lambda state: "again")
    return around(services, builder.compile())


@case(looping_inside)
def recursion_limit_in_a_subgraph(it: Probe) -> None:
    it.invokes({"x": 1}, it.config(recursion_limit=5))
    it.shows_state()


def asking_inside(services: Services) -> Any:
    return around(services, inner(asks=True))


@case(asking_inside)
def state_of_a_subgraph_edited(it: Probe) -> None:
    it.invokes({"x": 1})
    inside = it.state(subgraphs=True).tasks[0].state
    it.updates_state(inside.config, {"x": 1000})
    it.invokes(Command(resume="!"))
    it.shows_history()


@case(asking_inside)
def durability_exit_with_a_subgraph(it: Probe) -> None:
    it.invokes({"x": 1}, durability="exit")
    it.shows_history()
    it.invokes(Command(resume="!"), durability="exit")
    it.shows_history()


@case(asking_inside)
def replay_before_a_subgraph(it: Probe) -> None:
    it.invokes({"x": 1})
    it.invokes(Command(resume="!"))
    before = next(state for state in it.history() if state.next == ("inner",))
    it.invokes(None, before.config)
    it.invokes(Command(resume="?"))
    it.shows_history()


def called_twice(services: Services) -> Any:
    subgraph = inner(asks=True)

    def call(state: State) -> State:
        mark("call")
        one = subgraph.invoke({"x": state["x"], "log": []})
        two = subgraph.invoke({"x": one["x"], "log": []})
        return {"x": two["x"], "log": [*one["log"], *two["log"]]}

    return services.compile(sequence(("call", call)).builder)


@case(called_twice)
def subgraph_called_twice_in_a_function(it: Probe) -> None:
    it.invokes({"x": 1})
    it.invokes(Command(resume="1"))
    it.invokes(Command(resume="2"))
    asked = [state for state in it.history() if state.next == ("call",)]
    it.invokes(None, asked[-1].config)
    it.shows_history()

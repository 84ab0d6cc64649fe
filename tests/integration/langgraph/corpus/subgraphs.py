"""Graphs in graphs: as nodes, called in functions, stateful, nested and sent to."""

import operator
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from corpus.case import Services, case
from corpus.marks import mark
from corpus.probe import Probe
from corpus.show import show_state
from corpus.state import State, logs


def inner(checkpointer: Any = None, *, asks: bool = False) -> Any:
    """A subgraph of two nodes."""

    def second(state: State) -> State:
        mark("second")
        answer = interrupt("inner?") if asks else ""
        return {"log": ["second" + answer], "x": state["x"] + 100}

    builder = StateGraph(State)
    builder.add_node("first", logs("first"))
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.compile(checkpointer=checkpointer)


def around(services: Services, subgraph: Any) -> Any:
    """A graph with ``subgraph`` as its middle node."""
    builder = StateGraph(State)
    builder.add_node("before", logs("before"))
    builder.add_node("inner", subgraph)
    builder.add_node("after", logs("after"))
    builder.add_edge(START, "before")
    builder.add_edge("before", "inner")
    builder.add_edge("inner", "after")
    return services.compile(builder)


def as_node(services: Services) -> Any:
    return around(services, inner())


@case(as_node)
def subgraph_as_a_node(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_history()


def with_paths_as_names(services: Services) -> Any:
    """Graphs in graphs, whose nodes have names that look like places in each other."""
    middle = StateGraph(State)
    middle.add_node("a/b", inner(asks=True))
    middle.add_node("first", logs("c"))
    middle.add_edge(START, "a/b")
    middle.add_edge("a/b", "first")
    builder = StateGraph(State)
    builder.add_node("a", middle.compile())
    builder.add_node("a/a/b", inner())
    builder.add_node("a/b/__start__", logs("d"))
    builder.add_edge(START, "a")
    builder.add_edge("a", "a/a/b")
    builder.add_edge("a/a/b", "a/b/__start__")
    return services.compile(builder)


@case(with_paths_as_names)
def names_with_slashes(it: Probe) -> None:
    config = it.config()
    it.streams({"x": 0, "log": []}, "updates", config, subgraphs=True)
    it.streams(Command(resume="!"), "updates", config, subgraphs=True)
    it.shows_state(config)


def asking_node(services: Services) -> Any:
    return around(services, inner(asks=True))


@case(asking_node)
def question_in_a_subgraph(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_state()
    with_subgraphs = it.state(subgraphs=True)
    it.trace.append([show_state(task.state) for task in with_subgraphs.tasks if task.state])
    it.invokes(Command(resume="!"))
    it.shows_history()


def stateful_node(services: Services) -> Any:
    return around(services, inner(True))


@case(stateful_node)
def stateful_subgraph_over_two_turns(it: Probe) -> None:
    it.invokes({"x": 1})
    it.invokes({"x": 2})


def calling(services: Services, subgraph: Any) -> Any:
    def call(state: State) -> State:
        mark("call")
        result = subgraph.invoke({"x": state["x"], "log": []})
        return {"x": result["x"], "log": ["call", *result["log"]]}

    builder = StateGraph(State)
    builder.add_node("call", call)
    builder.add_edge(START, "call")
    return services.compile(builder)


def called_in_function(services: Services) -> Any:
    return calling(services, inner())


@case(called_in_function)
def subgraph_called_in_a_function(it: Probe) -> None:
    it.invokes({"x": 1})


def asking_in_function(services: Services) -> Any:
    return calling(services, inner(asks=True))


@case(asking_in_function)
def question_in_a_called_subgraph(it: Probe) -> None:
    it.invokes({"x": 1})
    it.invokes(Command(resume="!"))


def nested(services: Services) -> Any:
    middle = StateGraph(State)
    middle.add_node("middle first", logs("middle first"))
    middle.add_node("innermost", inner(asks=True))
    middle.add_edge(START, "middle first")
    middle.add_edge("middle first", "innermost")
    return around(services, middle.compile())


@case(nested)
def question_two_graphs_deep(it: Probe) -> None:
    it.invokes({"x": 1})
    it.invokes(Command(resume="!"))
    it.shows_history()


class Summed(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    x: Annotated[int, operator.add]


def sent_to(services: Services) -> Any:
    receiver = StateGraph(Summed)
    receiver.add_node("receive", lambda state: {"log": [f"receive {state['x']}"]})
    receiver.add_node("ask", lambda state: {"log": ["ask " + interrupt(f"{state['x']}?")]})
    receiver.add_edge(START, "receive")
    receiver.add_edge("receive", "ask")
    builder = StateGraph(Summed)
    builder.add_node("receiver", receiver.compile())
    builder.add_node("plan", logs("plan"))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan",
        lambda state: [Send("receiver", {"x": i + 1, "log": []}) for i in range(2)],
        ["receiver"],
    )
    return services.compile(builder)


@case(sent_to)
def questions_in_subgraphs_sent_to(it: Probe) -> None:
    it.invokes({"x": 0})
    ids = it.interrupt_ids()
    it.invokes(Command(resume={id: f"= {question}" for question, id in ids.items()}))

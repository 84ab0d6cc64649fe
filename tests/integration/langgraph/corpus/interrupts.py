"""Questions to people, in nodes and before and after them."""

from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from corpus.basics import linear
from corpus.case import Services, case
from corpus.marks import mark
from corpus.probe import Probe
from corpus.state import State, logs


def asking_twice(services: Services) -> Any:
    def ask(state: State) -> State:
        mark("ask")
        first = interrupt({"question": "x?"})
        mark("first answer")
        return {"log": [first, interrupt("y?")]}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("after", logs("after"))
    builder.add_node("beside", logs("beside"))
    builder.add_edge(START, "ask")
    builder.add_edge(START, "beside")
    builder.add_edge("ask", "after")
    return services.compile(builder)


@case(asking_twice)
def two_questions_of_one_node(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_state()
    it.invokes(Command(resume="one"))
    it.shows_state()
    it.invokes(Command(resume="two"))
    it.shows_state()
    it.shows_history()


def asking_in_parallel(services: Services) -> Any:
    builder = StateGraph(State)
    for name in "ab":

        def ask(state: State, name: str = name) -> State:
            mark(name)
            return {"log": [name + interrupt(f"{name}?")]}

        builder.add_node(name, ask)
        builder.add_edge(START, name)
    return services.compile(builder)


@case(asking_in_parallel)
def answers_by_id(it: Probe) -> None:
    it.invokes({"x": 0})
    ids = it.interrupt_ids()
    it.invokes(Command(resume="for which of the two?"))
    it.invokes(Command(resume={ids["a?"]: "A"}))
    it.shows_state()
    it.invokes(Command(resume="B"))


def stopping_around_b(services: Services) -> Any:
    builder = StateGraph(State)
    for name in "abc":
        builder.add_node(name, logs(name))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    return services.compile(builder, interrupt_before=["b"], interrupt_after=["b"])


@case(stopping_around_b)
def stops_before_and_after_a_node(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_state()
    for _ in range(3):
        it.invokes(None)
        it.shows_state()
    it.shows_history()


@case(linear)
def stops_named_in_the_call(it: Probe) -> None:
    it.invokes({"x": 0}, interrupt_before="*")
    it.invokes(None, interrupt_before="*")
    it.invokes(None, interrupt_after=["multiply"])
    it.shows_state()
    it.invokes(None)


@case(stopping_around_b)
def state_edited_at_a_stop(it: Probe) -> None:
    it.invokes({"x": 0})
    it.updates_state(it.config(), {"log": ["edited"]}, as_node="b")
    it.shows_state()
    it.invokes(None)
    it.shows_history()

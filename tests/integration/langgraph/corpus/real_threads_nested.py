"""Failures that people reported to LangGraph, with questions and subgraphs:
langchain-ai/langgraph#<number>."""

import time
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.func import task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from corpus.case import Services, case
from corpus.interrupts import asking_twice
from corpus.marks import mark
from corpus.probe import Probe
from corpus.state import State, logs


@case(asking_twice)
def issue_6956_next_after_the_second_question(it: Probe) -> None:
    it.invokes({"x": 0})
    it.invokes(Command(resume="1"))
    it.sees((it.state().next, len(it.state().interrupts)))


def in_subgraph(services: Services, inner: Any, **options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("inner", inner.compile(**options))
    builder.add_edge(START, "inner")
    return services.compile(builder)


def asking_in_parallel_inside(services: Services) -> Any:
    inner = StateGraph(State)
    for name in ("left", "right"):
        inner.add_node(name, lambda _, name=name: {"log": [f"{name} {interrupt(name)}"]})
        inner.add_edge(START, name)
    return in_subgraph(services, inner)


@case(asking_in_parallel_inside)
def issue_8579_one_answer_to_two_questions(it: Probe) -> None:
    it.invokes({"x": 0})
    it.invokes(Command(resume="for which of the two?"))


@tool
def circle(color: str) -> str:
    """Draw a circle."""
    return "circle " + interrupt({"shape": "circle"})


@tool
def square(color: str) -> str:
    """Draw a square."""
    time.sleep(0.1)  # which of two parallel tools asks first is for LangGraph a matter of chance
    return "square " + interrupt({"shape": "square"})


def with_asking_tools(services: Services) -> Any:
    calls = [
        {"name": "circle", "args": {"color": "red"}, "id": "1"},
        {"name": "square", "args": {"color": "blue"}, "id": "2"},
    ]
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda _: {"messages": [AIMessage("", tool_calls=calls)]})
    builder.add_node("tools", ToolNode([circle, square]))
    builder.add_edge(START, "model")
    builder.add_edge("model", "tools")
    return services.compile(builder)


@case(with_asking_tools)
def issue_6626_questions_of_parallel_tools(it: Probe) -> None:
    it.invokes({"messages": []})
    for _ in range(2):
        asked = it.state().interrupts
        it.sees(sorted(str(question.value) for question in asked))
        if not asked:
            break
        answers = {question.id: f"ok {question.value['shape']}" for question in asked}
        it.invokes(Command(resume=answers))


@task
def increment(x: int) -> int:
    mark("increment")
    return x + 1


def with_task_before_question(services: Services) -> Any:
    inner = StateGraph(State)
    inner.add_node(
        "ask", lambda state: {"log": [str(increment(state["x"]).result()) + interrupt("?")]}
    )
    inner.add_edge(START, "ask")
    return in_subgraph(services, inner)


@case(with_task_before_question)
def issue_6792_task_before_a_question_in_a_subgraph(it: Probe) -> None:
    it.invokes({"x": 0})
    it.invokes(Command(resume="!"))


def asking_until_valid(services: Services) -> Any:
    def ask(state: State) -> State:
        question = "age?"
        while True:
            answer = interrupt(question)
            mark(f"got-{answer}")
            if isinstance(answer, int):
                return {"x": answer}
            question = f"{answer} is not a number"

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    return services.compile(builder)


@case(asking_until_valid)
def issue_7780_question_in_a_loop(it: Probe) -> None:
    it.invokes({"x": 0})
    it.invokes(Command(resume="ten"))
    it.invokes(Command(resume=10))


def jumping_out_of_stateful(services: Services) -> Any:
    def jump(state: State) -> Any:
        return Command(graph=Command.PARENT, goto="landing", update={"log": ["jump"]})

    inner = StateGraph(State)
    inner.add_node("first", logs("first"))
    inner.add_node("jump", jump)
    inner.add_edge(START, "first")
    inner.add_edge("first", "jump")
    builder = StateGraph(State)
    builder.add_node("landing", logs("landing"))
    builder.add_node("inner", inner.compile(checkpointer=True), destinations=("landing",))
    builder.add_edge(START, "inner")
    return services.compile(builder)


@case(jumping_out_of_stateful)
def issue_3570_jump_out_of_a_stateful_subgraph(it: Probe) -> None:
    it.invokes({"x": 0, "log": ["in"]})
    it.invokes({"x": 0, "log": ["in again"]})


def reviewed(services: Services) -> Any:
    def review(state: State) -> State:
        mark("review")
        return {"log": [interrupt("ok?")]}

    inner = StateGraph(State)
    inner.add_node("a", logs("a"))
    inner.add_node("b", logs("b"))
    inner.add_node("review", review)
    inner.add_edge(START, "a")
    inner.add_edge("a", "b")
    inner.add_edge("b", "review")
    return in_subgraph(services, inner)


@case(reviewed)
def issue_8458_replay_inside_a_subgraph(it: Probe) -> None:
    it.invokes({"x": 0})
    inside = dict(it.state(subgraphs=True).tasks[0].state.config["configurable"])
    del inside["checkpoint_id"]
    history = it.history({"configurable": inside})
    it.sees([state.next for state in history])
    before = next(state for state in history if state.next == ("b",))
    it.invokes(None, before.config)
    it.shows_history()


def same_subgraph_twice(services: Services) -> Any:
    inner = StateGraph(State)
    inner.add_node("nothing", lambda state: {})
    inner.add_edge(START, "nothing")
    builder = StateGraph(State)
    builder.add_node("one", inner.compile())
    builder.add_node("two", inner.compile())
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    return services.compile(builder)


@case(same_subgraph_twice)
def issue_6290_reducer_of_subgraph_and_parent(it: Probe) -> None:
    it.invokes({"x": 0, "log": ["in"]})

"""Stream modes, and durability modes."""

from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from corpus.basics import linear
from corpus.case import Services, case
from corpus.interrupts import asking_in_parallel, asking_twice
from corpus.probe import Probe
from corpus.state import State
from corpus.subgraphs import around, as_node


@case(linear)
def values(it: Probe) -> None:
    it.streams({"x": 1}, "values")


@case(linear)
def updates(it: Probe) -> None:
    it.streams({"x": 1}, "updates")


@case(linear)
def several_modes(it: Probe) -> None:
    it.streams({"x": 1}, ["values", "updates"])


def writing(services: Services) -> Any:
    def write(state: State) -> State:
        writer = get_stream_writer()
        writer({"progress": 1})
        writer({"progress": 2})
        return {"log": ["write"]}

    builder = StateGraph(State)
    builder.add_node("write", write)
    builder.add_edge(START, "write")
    return services.compile(builder)


@case(writing)
def custom(it: Probe) -> None:
    it.streams({"x": 1}, ["custom", "updates"])


def talking(services: Services) -> Any:
    def talk(state: MessagesState) -> Any:
        model = GenericFakeChatModel(messages=iter([AIMessage("hello big world")]))
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    return services.compile(builder)


@case(talking)
def messages(it: Probe) -> None:
    chunks = it.chunks({"messages": [("user", "hi")]}, "messages")
    it.sees(
        [
            (message.content, metadata["langgraph_node"], metadata["langgraph_step"])
            for message, metadata in chunks
        ]
    )


@case(linear)
def tasks(it: Probe) -> None:
    it.streams({"x": 1}, "tasks")


@case(linear)
def checkpoints(it: Probe) -> None:
    it.sees(
        [
            (
                chunk["metadata"]["step"],
                chunk["metadata"]["source"],
                chunk["values"],
                sorted(chunk["next"]),
            )
            for chunk in it.chunks({"x": 1}, "checkpoints")
        ]
    )


@case(linear)
def debug(it: Probe) -> None:
    it.sees([(chunk["type"], chunk["step"]) for chunk in it.chunks({"x": 1}, "debug")])


@case(as_node)
def chunks_of_subgraphs(it: Probe) -> None:
    chunks = it.chunks({"x": 1}, ["updates", "values"], subgraphs=True)
    it.sees([([part.split(":")[0] for part in path], mode, chunk) for path, mode, chunk in chunks])


@case(asking_in_parallel)
def questions(it: Probe) -> None:
    it.streams_in_any_order({"x": 1}, "updates")


@case(linear)
def durability_exit(it: Probe) -> None:
    it.invokes({"x": 1}, durability="exit")
    it.shows_history()


@case(asking_twice)
def durability_exit_with_questions(it: Probe) -> None:
    it.invokes({"x": 1}, durability="exit")
    it.shows_history()
    it.invokes(Command(resume="1"), durability="exit")
    it.invokes(Command(resume="2"), durability="exit")
    it.shows_history()


def talking_inside(services: Services) -> Any:
    inner = StateGraph(State)

    def talk(state: State) -> State:
        get_stream_writer()("talk")
        model = GenericFakeChatModel(messages=iter([AIMessage("hello world")]))
        return {"log": [model.invoke("hi").content]}

    inner.add_node("talk", talk)
    inner.add_node("again", talk)
    inner.add_edge(START, "talk")
    inner.add_edge("talk", "again")
    return around(services, inner.compile())


@case(talking_inside)
def chunks_from_inside_unasked(it: Probe) -> None:
    it.streams({"x": 1}, "custom")
    it.sees([chunk.content for chunk, _ in it.chunks({"x": 1}, "messages", it.config("2"))])
    it.streams({"x": 1}, ["custom", "updates"], it.config("3"))


@case(talking_inside)
def chunks_from_inside(it: Probe) -> None:
    chunks = it.chunks({"x": 1}, ["custom", "updates", "values", "tasks"], subgraphs=True)
    it.sees([([part.split(":")[0] for part in path], mode, chunk) for path, mode, chunk in chunks])


@case(talking)
def second_version(it: Probe) -> None:
    it.streams({"messages": [("user", "hi")]}, ["values", "updates", "custom"], version="v2")
    it.invokes({"messages": [("user", "hi")]}, it.config("2"), version="v2")


@case(asking_twice)
def second_version_with_questions(it: Probe) -> None:
    it.streams_in_any_order({"x": 1}, ["values", "updates"], version="v2")
    it.invokes(Command(resume="1"), version="v2")
    it.invokes(Command(resume="2"), version="v2")

"""Kinds of channels, schemas and state classes."""

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.channels import EphemeralValue, UntrackedValue
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer as messages_delta_reducer
from langgraph.types import Overwrite
from pydantic import BaseModel
from typing_extensions import TypedDict

from corpus.case import Services, case
from corpus.probe import Probe
from corpus.state import State, logs


class Fleeting(TypedDict, total=False):
    a: int
    untracked: Annotated[Any, UntrackedValue(object)]
    ephemeral: Annotated[int, EphemeralValue]
    log: Annotated[list[Any], operator.add]


def fleeting(services: Services) -> Any:
    def sees(state: Fleeting, name: str) -> tuple[Any, ...]:
        return (name, state.get("untracked"), state.get("ephemeral"))

    builder = StateGraph(Fleeting)
    builder.add_node(
        "one",
        lambda state: {"untracked": {"key": 5}, "ephemeral": 1, "log": [sees(state, "one")]},
    )
    builder.add_node("two", lambda state: {"log": [sees(state, "two")]})
    builder.add_node("three", lambda state: {"log": [sees(state, "three")]})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", "three")
    return services.compile(builder)


@case(fleeting)
def untracked_and_ephemeral(it: Probe) -> None:
    it.invokes({"a": 1})
    it.shows_state()


class Question(TypedDict):
    question: str


class Answer(TypedDict):
    answer: str


class Private(TypedDict):
    secret: str


class Overall(TypedDict, total=False):
    question: str
    answer: str
    middle: str


def with_schemas(services: Services) -> Any:
    def one(state: Question) -> Private:
        return {"secret": state["question"] + "!", "middle": "m"}  # type: ignore[typeddict-unknown-key]

    def two(state: Private) -> Answer:
        return {"answer": state["secret"]}

    builder = StateGraph(Overall, input_schema=Question, output_schema=Answer)
    builder.add_node("one", one)
    builder.add_node("two", two)
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    return services.compile(builder)


@case(with_schemas)
def input_output_and_private_schemas(it: Probe) -> None:
    it.invokes({"question": "hi"})
    it.shows_state()
    it.streams({"question": "yo"}, "values", output_keys=["middle", "secret"])


def with_messages(services: Services) -> Any:
    def two(state: MessagesState) -> Any:
        ids = {message.id for message in state["messages"]}
        count = f"{len(state['messages'])} messages, {len(ids)} ids"
        return {"messages": [RemoveMessage(id="T"), AIMessage("three"), AIMessage(count)]}

    builder = StateGraph(MessagesState)
    builder.add_node("one", lambda _: {"messages": [AIMessage("one"), AIMessage("two", id="T")]})
    builder.add_node("two", two)
    builder.add_node(
        "three", lambda state: {"messages": [AIMessage("edited", id=state["messages"][0].id)]}
    )
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", "three")
    return services.compile(builder)


@case(with_messages)
def messages_added_removed_and_edited(it: Probe) -> None:
    it.invokes({"messages": [("user", "hi")]})
    it.shows_history()


def overwriting(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", logs("a"))
    builder.add_node("b", lambda state: {"log": Overwrite(["only"])})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    return services.compile(builder)


@case(overwriting)
def overwrite(it: Probe) -> None:
    it.invokes({"log": ["x"]})


class Delta(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(messages_delta_reducer)]
    n: int


def with_delta(services: Services) -> Any:
    builder = StateGraph(Delta)
    for name in "ab":
        builder.add_node(
            name,
            lambda state, name=name: {
                "messages": [AIMessage(name)],
                "n": len(state["messages"]),
            },
        )
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    return services.compile(builder)


@case(with_delta)
def delta_channel_over_two_turns(it: Probe) -> None:
    it.invokes({"messages": [HumanMessage("one")]})
    it.invokes({"messages": [HumanMessage("two")]})
    it.shows_state()


class Model(BaseModel):
    x: int
    tags: Annotated[list[str], operator.add] = []


def with_model(services: Services) -> Any:
    builder = StateGraph(Model)
    builder.add_node("a", lambda state: {"x": state.x + 1, "tags": [type(state).__name__]})
    builder.add_node("b", lambda state: Model(x=state.x * 2, tags=["b"]))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    return services.compile(builder)


@case(with_model)
def pydantic_state(it: Probe) -> None:
    it.invokes({"x": "3"})
    it.invokes({"x": "not a number"}, it.config("2"))


@dataclass
class Data:
    x: int = 0
    log: Annotated[list[Any], operator.add] = field(default_factory=list)


def with_dataclass(services: Services) -> Any:
    builder = StateGraph(Data)
    builder.add_node("a", lambda state: {"x": state.x + 1, "log": [type(state).__name__]})
    builder.add_node("b", lambda state: Data(x=state.x * 2, log=["b"]))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    return services.compile(builder)


@case(with_dataclass)
def dataclass_state(it: Probe) -> None:
    it.invokes({"x": 3})
    it.invokes(Data(x=5))

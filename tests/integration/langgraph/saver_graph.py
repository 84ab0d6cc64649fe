"""A graph that uses much of what a checkpointer is for, and what can be seen of its threads."""

import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt, Send, StateSnapshot, interrupt


def joined(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*state, *(item for write in writes for item in write)]


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    facts: Annotated[list[str], operator.add]
    log: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=3)]
    document: str
    approved: bool


def make(saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[Any]:
    """A graph with a fan-out, a subgraph that asks a person, and a loop back."""
    inner = StateGraph(State)
    inner.add_node("ask", lambda state: {"approved": interrupt({"may": state["facts"][-1]})})
    inner.add_node("note", lambda state: {"log": [f"approved={state['approved']}"]})
    inner.add_edge(START, "ask")
    inner.add_edge("ask", "note")

    def plan(state: State) -> list[Send]:
        text = str(state["messages"][-1].content)
        return [Send("look", {"log": [], "document": word}) for word in text.split()]

    def look(state: State) -> dict[str, Any]:
        return {"facts": [state["document"].upper()], "log": [f"looked for {state['document']}"]}

    def answer(state: State) -> dict[str, Any]:
        return {"messages": [("ai", ", ".join(state["facts"]))], "log": ["answered"]}

    graph = StateGraph(State)
    graph.add_node("plan", lambda state: {"log": ["planned"]})
    graph.add_node("look", look)
    graph.add_node("review", inner.compile())
    graph.add_node("answer", answer)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", plan, ["look"])
    graph.add_edge("look", "review")
    graph.add_edge("review", "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver)


def turns(graph: CompiledStateGraph[Any], thread: str) -> list[Any]:
    """Several turns: interrupts and answers, a changed state, and going back in time."""
    config: Any = {"configurable": {"thread_id": thread}}
    seen: list[Any] = []

    def call(value: Any, at: Any = config) -> None:
        seen.append(visible(graph.invoke(value, at)))
        seen.append(shape(graph, config))

    call({"messages": [("user", "red green")], "document": "d" * 3000})
    call(Command(resume=True))
    graph.update_state(config, {"facts": ["said by hand"]}, as_node="look")
    call(None)
    call(Command(resume=False))
    call({"messages": [("user", "blue")]})
    earlier = [each for each in graph.get_state_history(config) if each.next == ("look", "look")][
        -1
    ]
    call(None, earlier.config)
    call(Command(resume="late"))
    seen.append(shape(graph, config, limit=3))
    seen.append(shape(graph, config, filter={"source": "update"}))
    return seen


def shape(graph: CompiledStateGraph[Any], config: Any, **query: Any) -> list[Any]:
    """The history of a thread, with ids told by their place."""
    history = list(graph.get_state_history(config, **query))
    places = {identity(each.config): place for place, each in enumerate(history)}
    state = graph.get_state(config, subgraphs=True)
    return [described(each, places) for each in [*history, state]]


def described(each: StateSnapshot, places: dict[str, int]) -> dict[str, Any]:
    metadata = {k: v for k, v in (each.metadata or {}).items() if k in ("source", "step")}
    return {
        "values": visible(each.values),
        "next": each.next,
        "metadata": metadata,
        "parent": places.get(identity(each.parent_config)) if each.parent_config else None,
        "tasks": [
            (
                task.name,
                task.error,
                [waiting.value for waiting in task.interrupts],
                described(task.state, {}) if isinstance(task.state, StateSnapshot) else None,
                visible(task.result),
            )
            for task in each.tasks
        ],
        "interrupts": [waiting.value for waiting in each.interrupts],
    }


def identity(config: Any) -> str:
    return config["configurable"]["checkpoint_id"]


def visible(values: Any) -> Any:
    """``values`` without ids, which differ between runs."""
    if isinstance(values, BaseMessage):
        return (values.type, values.content)
    if isinstance(values, Interrupt):
        return values.value
    if isinstance(values, dict):
        return {name: visible(value) for name, value in values.items()}
    if isinstance(values, list):
        return [visible(value) for value in values]
    return values

"""Prebuilt parts, and asynchronous nodes."""

import asyncio
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.runtime import Runtime

from corpus.case import Services, case
from corpus.marks import mark
from corpus.probe import Probe
from corpus.state import State


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    mark("multiply")
    return a * b


@tool
def peek(state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Count the messages."""
    return f"{len(state['messages'])} messages"


def tool_calling(services: Services) -> Any:
    def model(state: MessagesState) -> Any:
        mark("model")
        answers = [str(m.content) for m in state["messages"] if m.type == "tool"]
        if answers:
            return {"messages": [AIMessage("done: " + ", ".join(answers))]}
        calls = [
            {"name": "multiply", "args": {"a": 6, "b": 7}, "id": "1"},
            {"name": "peek", "args": {}, "id": "2"},
        ]
        return {"messages": [AIMessage("", tool_calls=calls)]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", ToolNode([multiply, peek]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return services.compile(builder)


@case(tool_calling)
def agent_with_two_tools(it: Probe) -> None:
    it.invokes({"messages": [("user", "hi")]})


def asynchronous(services: Services) -> Any:
    async def first(state: State, runtime: Runtime) -> State:
        await asyncio.sleep(0)
        mark("first")
        return {"log": ["first"], "x": state["x"] + 1}

    async def second(state: State) -> State:
        await asyncio.sleep(0)
        return {"log": ["second"]}

    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda state: "second" if state["x"] else END)
    return services.compile(builder)


@case(asynchronous)
def async_nodes(it: Probe) -> None:
    it.ainvokes({"x": 0})
    it.invokes({"x": 0}, it.config("2"))


def timed(services: Services) -> Any:
    async def slow(state: State) -> State:
        mark("slow")
        await asyncio.sleep(30)
        return {"log": ["slow"]}

    builder = StateGraph(State)
    builder.add_node("slow", slow, timeout=0.1)
    builder.add_edge(START, "slow")
    return services.compile(builder)


@case(timed)
def timeout_of_a_node(it: Probe) -> None:
    try:
        asyncio.run(it.graph.ainvoke({"x": 0}, it.config()))
    except Exception as error:
        it.sees((type(error).__name__, getattr(error, "node", None)))

"""A graph whose state has what graphs have: messages, times, text; with all kinds of steps."""

import operator
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

from harness.effects import Outside
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    at: datetime
    text: str


def whole(outside: Outside, is_async: bool) -> Any:
    """``plan -> (left, right) -> review? -> sub(draft -> (check * 2)) -> last``."""

    def node(name: str, **writes: Any) -> Any:
        def run(state: Any) -> dict[str, Any]:
            outside.report(f"{name} start")
            outside.report(f"{name} in")
            return {"log": [name], **writes}

        return run

    def review(state: State) -> Command[Any]:
        outside.report("review start")
        return Command(goto="sub", update={"log": [interrupt({"question": "Good?"})]})

    inner = StateGraph(State)
    inner.add_node("draft", node("draft", text="draft" * 500))
    inner.add_node("check", node("check"))
    inner.add_edge(START, "draft")
    checks = [Send("check", {"log": []}), Send("check", {"log": []})]
    inner.add_conditional_edges("draft", lambda state: checks, ["check"])
    graph = StateGraph(State)
    when = datetime(2026, 1, 2, tzinfo=UTC)
    graph.add_node("plan", node("plan", text="x" * 3000, at=when))
    graph.add_node("left", node("left", messages=[AIMessage("left", id="1")]))
    graph.add_node("right", node("right", messages=[AIMessage("right", id="2")]))
    graph.add_node("review", review, destinations=("sub",))
    graph.add_node("sub", inner.compile())
    graph.add_node("last", node("last"))
    for start, end in [
        (START, "plan"),
        *[("plan", "left"), ("plan", "right")],
        ("sub", "last"),
    ]:
        graph.add_edge(start, end)
    graph.add_edge(["left", "right"], "review")
    return graph.compile()

"""Spans of LangChain's chat models and tools, by GenAI's conventions."""

from typing import Any

import pytest
import traced_graphs as graphs
from exported import Instrumented
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from dapr_runners.telemetry import instrument

CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "mistral_ai",
    "gen_ai.system": "mistral_ai",
    "gen_ai.request.model": "scripted-1",
    "gen_ai.request.temperature": 0.5,
    "gen_ai.response.model": "scripted-1b",
    "gen_ai.response.id": "r-1",
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 2,
}


@tool
def look(what: str) -> str:
    """Look at something."""
    return f"saw {what}"


@tool
def fails(what: str) -> str:
    """Fail."""
    raise RuntimeError("a secret")


def agent(*tools: Any) -> Any:
    model = graphs.Model().bind_tools(tools)
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile()


def test_an_agent(told: Instrumented, make_runner: Any) -> None:
    make_runner(agent(look), name="agent").invoke({"messages": [("user", "a secret")]})
    spans = told.ended("agent")
    assert len(spans.all) == 1 + 3 * 3
    chats = spans.named("chat scripted-1")
    assert [span.attributes for span in chats] == [CHAT, CHAT]
    assert {spans.parent_of(span).name for span in chats} == {"attempt model"}
    called = spans.one("execute_tool look")
    assert called.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.description": "Look at something.",
    }
    assert spans.parent_of(called).name == "attempt tools"
    assert "secret" not in str(spans)


def test_their_metrics(told: Instrumented, make_runner: Any) -> None:
    make_runner(agent(look), name="metered").invoke({"messages": [("user", "hi")]})
    told.ended("metered")
    usage = {
        point.attributes["gen_ai.token.type"]: (point.count, point.sum)
        for point in told.points("gen_ai.client.token.usage")
    }
    assert usage == {"input": (2, 20), "output": (2, 4)}
    durations = {
        point.attributes["gen_ai.operation.name"]: point.count
        for point in told.points("gen_ai.client.operation.duration")
    }
    assert durations == {"chat": 2, "execute_tool": 1}


async def test_an_asynchronous_model(told: Instrumented, make_runner: Any) -> None:
    await make_runner(graphs.chain(asking=graphs.asking_async), name="async").ainvoke({"x": 1})
    spans = told.ended("async")
    chat = spans.one("chat scripted-1")
    assert chat.attributes == CHAT
    assert spans.parent_of(chat).name == "attempt asking"


def test_content_is_captured_on_demand(
    told: Instrumented, make_runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    instrument(told.provider)
    make_runner(agent(look), name="open").invoke({"messages": [("user", "a question")]})
    spans = told.ended("open")
    chat = spans.named("chat scripted-1")[0].attributes
    asked = '[{"role": "user", "parts": [{"type": "text", "content": "a question"}]}]'
    assert chat["gen_ai.input.messages"] == asked
    assert '"a secret"' in chat["gen_ai.output.messages"]
    called = spans.one("execute_tool look").attributes
    assert called["gen_ai.tool.call.arguments"] == '{"what": "a secret"}'
    assert called["gen_ai.tool.call.result"] == "saw a secret"


def test_a_model_and_a_tool_that_fail(told: Instrumented, make_runner: Any) -> None:
    def asking(state: graphs.State) -> graphs.State:
        graphs.Model().invoke([])
        return {}

    def calling(state: graphs.State) -> graphs.State:
        fails.invoke({"what": "a secret"})
        return {}

    for name, node, error in (
        ("asks", asking, "ValueError"),
        ("calls", calling, "RuntimeError"),
    ):
        with pytest.raises(Exception, match="a secret"):
            make_runner(graphs.chain(node=node), name=name).invoke({"x": 1})
        spans = told.ended(name)
        failed = spans.one("chat scripted-1" if name == "asks" else "execute_tool fails")
        assert failed.is_error
        assert failed.attributes["error.type"] == error
    assert "secret" not in str(told.spans)


def test_what_is_called_outside_of_steps_is_not_told(told: Instrumented, make_runner: Any) -> None:
    make_runner(graphs.chain(one=graphs.last_sync), name="quiet").invoke({"x": 1})
    graphs.Model().invoke("a question")
    assert told.ended("quiet").named("chat scripted-1") == []

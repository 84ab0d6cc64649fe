"""Graphs with a node that asks a model several times. The outside counts what is asked."""

import asyncio
import operator
import threading
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

from harness.effects import Outside
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy


class State(TypedDict):
    log: Annotated[list[BaseMessage], operator.add]


class Model(BaseChatModel):
    """Says how often it was asked so far, by anybody."""

    outside: Any

    @property
    def _llm_type(self) -> str:
        return "counted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {}

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {}

    def _say(self, messages: list[BaseMessage]) -> str:
        self.outside.report("asked", text=messages[-1].text)
        number = len([event for event in self.outside.events() if event["point"] == "asked"])
        return f"{messages[-1].text} {number}"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
        message = AIMessage(
            self._say(messages),
            usage_metadata=usage,
            tool_calls=[{"name": "look", "args": {"at": 1}, "id": "call-1"}],
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


class Streaming(Model):
    """Streams where it is listened to."""

    def _stream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for word in self._say(messages).split():
            yield ChatGenerationChunk(message=AIMessageChunk(word))


def _graph(outside: Outside, is_async: bool, model: Model, **options: Any) -> Any:
    questions = ["one", "two", "two"]

    def run(state: State) -> dict[str, Any]:
        answers: list[BaseMessage] = []
        for question in questions:
            answers.append(model.invoke(question))
            outside.report(f"answered {len(answers)}")
        return {"log": answers}

    async def run_async(state: State) -> dict[str, Any]:
        answers: list[BaseMessage] = []
        for question in questions:
            answers.append(await model.ainvoke(question))
            outside.report(f"answered {len(answers)}")
        return {"log": answers}

    graph = StateGraph(State)
    graph.add_node("ask", run_async if is_async else run, **options)
    graph.add_edge(START, "ask")
    return graph.compile()


def plain(outside: Outside, is_async: bool) -> Any:
    return _graph(outside, is_async, Model(outside=outside))


def streaming(outside: Outside, is_async: bool) -> Any:
    return _graph(outside, is_async, Streaming(outside=outside))


def retried(outside: Outside, is_async: bool) -> Any:
    """LangGraph tries the node again, in the same step."""
    policy = RetryPolicy(max_attempts=3, initial_interval=0.01, retry_on=lambda error: True)
    return _graph(outside, is_async, Model(outside=outside), retry_policy=policy)


class Sized(Model):
    """LangChain cannot tell one size from another: it is no identifying parameter."""

    size: str
    answered: Any

    def _say(self, messages: list[BaseMessage]) -> str:
        self.outside.report("asked", text=self.size)
        if self.size == "large":  # the other is asked later, and answers first
            self.answered.wait(60)
        return f"I am {self.size}"


def two_sizes(outside: Outside, is_async: bool) -> Any:
    """Two models are asked the same at once."""
    answered = threading.Event()
    large = Sized(outside=outside, size="large", answered=answered)
    small = Sized(outside=outside, size="small", answered=answered)

    async def ask_small() -> BaseMessage:
        answer = await small.ainvoke("who?")
        answered.set()
        return answer

    async def run(state: State) -> dict[str, Any]:
        answers = await asyncio.gather(large.ainvoke("who?"), ask_small())
        outside.report("answered both")
        return {"log": list(answers)}

    graph = StateGraph(State)
    graph.add_node("ask", run)
    graph.add_edge(START, "ask")
    return graph.compile()

"""Calls of models and of tools, by OpenTelemetry's conventions for generative AI."""

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind

from dapr_runners.telemetry._spans import fail

if TYPE_CHECKING:
    from dapr_runners.telemetry._telemetry import Telemetry

_REQUEST = {
    "model": "gen_ai.request.model",
    "temperature": "gen_ai.request.temperature",
    "max_tokens": "gen_ai.request.max_tokens",
    "agent": "gen_ai.agent.name",
}
_ANSWER = {
    "model": "gen_ai.response.model",
    "id": "gen_ai.response.id",
    "finish_reasons": "gen_ai.response.finish_reasons",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
}


class _Call:
    """A call, and its span. That of the attempt stays the current one, as it is known even if this
    process is lost in the middle of the call."""

    def __init__(self, telemetry: "Telemetry") -> None:
        self._telemetry = telemetry
        self._began = time.monotonic()
        self._span: trace.Span

    def forgotten(self) -> None:
        """Leave the span open: what does not end is not exported."""


class ModelCall(_Call):
    """A call of a chat model."""

    def __init__(
        self, telemetry: "Telemetry", request: dict[str, Any], content: Callable[[], Any]
    ) -> None:
        super().__init__(telemetry)
        model: str = request.get("model") or ""
        provider: str = request.get("provider") or "_OTHER"
        self._about: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            **({"gen_ai.request.model": model} if model else {}),
        }
        attributes = {
            **self._about,
            "gen_ai.system": provider,  # what the conventions called the provider before
            **_named(_REQUEST, request),
        }
        if telemetry.captures:
            attributes["gen_ai.input.messages"] = _text(content())
        self._span = telemetry.spans.start(
            f"chat {model}".strip(), None, attributes, kind=SpanKind.CLIENT
        )

    def answered(self, answer: dict[str, Any], content: Callable[[], Any]) -> None:
        """End the span with what the model answered."""
        self._span.set_attributes(_named(_ANSWER, answer))
        if self._telemetry.captures:
            self._span.set_attribute("gen_ai.output.messages", _text(content()))
        self._span.end()
        about = dict(self._about)
        if answer.get("model"):
            about["gen_ai.response.model"] = answer["model"]
        self._telemetry.metrics.chat(
            about,
            time.monotonic() - self._began,
            {"input": answer.get("input_tokens"), "output": answer.get("output_tokens")},
        )

    def failed(self, error: BaseException) -> None:
        """End the span with what the model raised."""
        fail(self._span, error, self._telemetry.captures)
        self._span.end()
        about = {**self._about, "error.type": type(error).__name__}
        self._telemetry.metrics.chat(about, time.monotonic() - self._began, {})


class ToolCall(_Call):
    """A call of a tool."""

    def __init__(
        self, telemetry: "Telemetry", tool: dict[str, Any], content: Callable[[], Any]
    ) -> None:
        super().__init__(telemetry)
        self._about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool["name"],
        }
        attributes: dict[str, Any] = {**self._about, "gen_ai.tool.type": "function"}
        for key, name in (
            ("call_id", "gen_ai.tool.call.id"),
            ("description", "gen_ai.tool.description"),
            ("agent", "gen_ai.agent.name"),
        ):
            if tool.get(key):
                attributes[name] = tool[key]
        if telemetry.captures:
            attributes["gen_ai.tool.call.arguments"] = _text(content())
        self._span = telemetry.spans.start(f"execute_tool {tool['name']}", None, attributes)

    def answered(self, answer: dict[str, Any], content: Callable[[], Any]) -> None:
        """End the span with what the tool returned."""
        if self._telemetry.captures:
            self._span.set_attribute("gen_ai.tool.call.result", _text(content()))
        self._span.end()
        self._telemetry.metrics.tool(self._about, time.monotonic() - self._began)

    def failed(self, error: BaseException) -> None:
        """End the span with what the tool raised."""
        fail(self._span, error, self._telemetry.captures)
        self._span.end()
        about = {**self._about, "error.type": type(error).__name__}
        self._telemetry.metrics.tool(about, time.monotonic() - self._began)


def _named(names: dict[str, str], values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[key] for key, name in names.items() if values.get(key) is not None}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, default=str)

"""Tells who watches a step of the chat models and tools of LangChain's that its code calls.

LangChain asks a context variable for a handler of callbacks wherever one is configured. This one
always holds ours, which passes over what is called outside of a watched step.
"""

import functools
import threading
from contextvars import ContextVar
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphBubbleUp

from dapr_runners._current_step import attempt_of, running_step
from dapr_runners.engine import Attempt, Call
from dapr_runners.langgraph._answers import is_recorded_answer

_PROVIDERS = {
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistralai": "mistral_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""What LangChain calls some providers, and OpenTelemetry's conventions do."""


class _Handler(BaseCallbackHandler):
    """Tells of models and tools. In the context of the call: nothing is handed to other threads."""

    run_inline = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[UUID, Call] = {}

    # -- models

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        attempt = _watched()
        if attempt is None:
            return
        call = attempt.chat(_request(kwargs), lambda: [_message(m) for m in messages[0]])
        with self._lock:
            self._calls[run_id] = call

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        call = self._take(run_id)
        if call is None:
            return
        given = [one for each in response.generations for one in each]
        if given and is_recorded_answer(given[0]):
            call.forgotten()  # the model was not asked: an attempt before this one was told of it
            return
        call.answered(_answer(given, response), lambda: [_said(one) for one in given])

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        if (call := self._take(run_id)) is not None:
            call.failed(error)

    # -- tools

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        attempt = _watched()
        if attempt is None:
            return
        tool = {
            "name": serialized.get("name") or kwargs.get("name") or "tool",
            "description": serialized.get("description"),
            "call_id": kwargs.get("tool_call_id"),
        }
        call = attempt.tool(tool, lambda: input_str if inputs is None else inputs)
        with self._lock:
            self._calls[run_id] = call

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if (call := self._take(run_id)) is not None:
            call.answered({}, lambda: str(getattr(output, "content", output)))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        call = self._take(run_id)
        if call is not None and isinstance(error, GraphBubbleUp):
            call.answered({}, lambda: "")  # it asks a person, say
        elif call is not None:
            call.failed(error)

    def _take(self, run_id: UUID) -> Call | None:
        with self._lock:
            return self._calls.pop(run_id, None)


@functools.cache
def watch_models() -> None:
    """From now on, who watches steps is told of the models and tools that they call."""
    handler = _Handler()
    always: ContextVar[Any] = ContextVar("dapr_runners_models", default=handler)
    register_configure_hook(always, inheritable=True)


def _watched() -> Attempt | None:
    return cast("Attempt | None", attempt_of(running_step.get()))


def _request(told: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = told.get("metadata") or {}
    provider: str | None = metadata.get("ls_provider")
    parameters: dict[str, Any] = told.get("invocation_params") or {}
    return {
        "model": metadata.get("ls_model_name") or parameters.get("model"),
        "provider": None if provider is None else _PROVIDERS.get(provider, provider),
        "temperature": metadata.get("ls_temperature"),
        "max_tokens": metadata.get("ls_max_tokens"),
    }


def _answer(given: list[Generation], response: LLMResult) -> dict[str, Any]:
    answer: dict[str, Any] = {"input_tokens": None, "output_tokens": None}
    for one in given:
        message = one.message if isinstance(one, ChatGeneration) else None
        usage: Any = getattr(message, "usage_metadata", None) or {}
        for kind in ("input_tokens", "output_tokens"):
            if kind in usage:
                answer[kind] = (answer[kind] or 0) + usage[kind]
    last = given[-1] if given else None
    metadata: dict[str, Any] = {}
    if isinstance(last, ChatGeneration):
        metadata = last.message.response_metadata
    told: dict[str, Any] = response.llm_output or {}
    answer["model"] = metadata.get("model_name") or told.get("model_name")
    answer["id"] = metadata.get("id") or told.get("id")
    reasons = [reason for one in given if (reason := _finish_reason(one)) is not None]
    answer["finish_reasons"] = reasons or None
    return answer


def _finish_reason(one: Generation) -> str | None:
    told = one.generation_info or {}
    metadata = one.message.response_metadata if isinstance(one, ChatGeneration) else {}
    reason = told.get("finish_reason") or metadata.get("finish_reason")
    return reason or metadata.get("stop_reason")


_ROLES = {"human": "user", "ai": "assistant"}


def _message(message: BaseMessage) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.text}]
    for call in getattr(message, "tool_calls", None) or ():
        told = {"id": call["id"], "name": call["name"], "arguments": call["args"]}
        parts.append({"type": "tool_call", **told})
    return {"role": _ROLES.get(message.type, message.type), "parts": parts}


def _said(one: Generation) -> dict[str, Any]:
    if isinstance(one, ChatGeneration):
        return {**_message(one.message), "finish_reason": _finish_reason(one) or "stop"}
    return {"role": "assistant", "parts": [{"type": "text", "content": one.text}]}

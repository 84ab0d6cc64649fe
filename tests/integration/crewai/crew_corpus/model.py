"""A model that follows a script: its answer follows from the request, and each call is logged."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from crewai.events.types.llm_events import LLMCallType
from crewai.llms.base_llm import BaseLLM, llm_call_context
from pydantic import PrivateAttr

from crew_corpus.log import Log


@dataclass(frozen=True)
class Request:
    """What a script answers."""

    messages: list[dict[str, Any]]
    tools: list[str]
    """Names of the tools that are offered natively."""
    model: str | None
    """Name of the pydantic class that the answer is to fill."""
    number: int
    """How many calls the case's models have had, this one included."""

    def count(self, text: str) -> int:
        """How many messages have ``text`` in them."""
        return sum(text in str(message.get("content")) for message in self.messages)

    @property
    def last(self) -> str:
        return str(self.messages[-1]["content"])


Script: TypeAlias = Callable[[Request], Any]


class ScriptedModel(BaseLLM):
    """``native`` says whether it takes tools natively, or in the text of the prompt (ReAct)."""

    native: bool = False
    _script: Script = PrivateAttr()
    _log: Log = PrivateAttr()
    _name: str = PrivateAttr()

    def __init__(self, script: Script, log: Log, name: str, native: bool = False) -> None:
        super().__init__(model="scripted/one", native=native)
        self._script, self._log, self._name = script, log, name

    def supports_function_calling(self) -> bool:
        return self.native

    def supports_stop_words(self) -> bool:
        return True

    def get_context_window_size(self) -> int:
        return 100_000

    def get_input_tokens_count(self, messages: Any, *_: Any, **__: Any) -> int:
        return len(str(messages)) // 4

    def call(
        self,
        messages: Any,
        tools: Any = None,
        callbacks: Any = None,
        available_functions: Any = None,
        from_task: Any = None,
        from_agent: Any = None,
        response_model: Any = None,
    ) -> Any:
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        origin = {"from_task": from_task, "from_agent": from_agent}
        with llm_call_context():
            self._emit_call_started_event(
                messages=messages,
                tools=tools,
                callbacks=callbacks,
                available_functions=available_functions,
                **origin,
            )
            request = {
                "model": self._name,
                "agent": getattr(from_agent, "role", None),
                "messages": messages,
                "tools": [tool["function"]["name"] for tool in tools or ()],
                "response_model": getattr(response_model, "__name__", None),
            }
            number = self._log.add("llm", request)
            answer = self._script(
                Request(messages, request["tools"], request["response_model"], number)
            )
            asked, answered = len(str(messages)) // 4, len(str(answer)) // 4
            usage = {
                "prompt_tokens": asked,
                "completion_tokens": answered,
                "total_tokens": asked + answered,
            }
            self._track_token_usage_internal(usage)
            if isinstance(answer, dict) and response_model is not None:
                answer = response_model.model_validate(answer)
            if isinstance(answer, str):
                answer = self._apply_stop_words(answer)
            self._emit_call_completed_event(
                response=answer,
                call_type=LLMCallType.LLM_CALL,
                messages=messages,
                usage=usage,
                **origin,
            )
            return answer

    async def acall(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(self.call, messages, *args, **kwargs)


def use(tool: str, **arguments: Any) -> str:
    """The answer that uses a tool, as a model without native tools writes it."""
    return f"Thought: t\nAction: {tool}\nAction Input: {json.dumps(arguments)}\n"


def call(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """A native tool call, in the shape of OpenAI's chat completions."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"id": id, "type": "function", "function": function}


def final(answer: Any) -> str:
    """The answer that ends a task."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return f"Thought: I now know\nFinal Answer: {text}"


def looks_up(times: int, answer: Any = "done", tool: str = "lookup") -> Script:
    """Looks up ``q0``, ``q1``, ... ``times`` times, then gives ``answer``."""

    def script(request: Request) -> str:
        if request.model is not None:
            return answer if isinstance(answer, str) else json.dumps(answer)
        known = request.count("fact<")
        return use(tool, q=f"q{known}") if known < times else final(answer)

    return script

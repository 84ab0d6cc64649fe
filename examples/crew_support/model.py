"""The agents' models: a real one where ``CREWAI_LLM`` names it, else one that follows a script.

``CREWAI_LLM`` is a model as CrewAI names it (``openai/gpt-4o-mini``, ``anthropic/claude-...``); its
provider's key is read from the usual variable.
"""

import json
import os
from typing import Any

from crewai import LLM
from crewai.llms.base_llm import BaseLLM, llm_call_context
from outside import tell

CLERK, WRITER = "Order clerk", "Support writer"


def model_of(role: str) -> BaseLLM:
    """The model of the agent with that role."""
    name = os.environ.get("CREWAI_LLM")
    return LLM(model=name) if name else ScriptedModel(role)


class ScriptedModel(BaseLLM):
    """Answers as a model would that does its job, so that the example needs no key and no network.

    The answer follows from the messages alone. A model object that counts its own calls would
    count from zero in the next process.
    """

    role: str = ""

    def __init__(self, role: str) -> None:
        super().__init__(model="scripted/support", role=role)

    def supports_function_calling(self) -> bool:
        return True

    def get_input_tokens_count(self, messages: Any, *_: Any, **__: Any) -> int:
        return len(str(messages)) // 4

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        results = [message["content"] for message in messages if message["role"] == "tool"]
        with llm_call_context():
            tell(f"{self.role.split()[-1]}/{len(results) + 1}")
            answer = _SCRIPTS[self.role](results)
            spent = len(str(messages)) // 4, len(str(answer)) // 4
            usage = {"prompt_tokens": spent[0], "completion_tokens": spent[1]}
            self._track_token_usage_internal({**usage, "total_tokens": sum(spent)})
            return answer


def _clerk(results: list[str]) -> Any:
    if not results:
        return _use("find_order", order="A-17")
    if len(results) == 1:
        return _use("refund", order="A-17", euros=49)
    return f"Order A-17 arrived broken. {results[-1]}"


def _writer(results: list[str]) -> Any:
    if not results:
        text = "We are sorry about your lamp. 49 EUR are on their way to you."
        return _use("send_reply", customer="Ada", text=text)
    return f"Refunded and told: {results[-1]}"


def _use(tool: str, **arguments: Any) -> list[dict[str, Any]]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return [{"id": f"call-{tool}", "type": "function", "function": function}]


_SCRIPTS = {CLERK: _clerk, WRITER: _writer}
